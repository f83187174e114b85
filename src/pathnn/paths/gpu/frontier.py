"""Extraction with torch operations, on any device: all paths grow by one step at a time.

The same definitions as in `walks.py`, for a GPU. Nothing is copied to the host but sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pathnn.paths.build import Tokens
from pathnn.paths.csr import Csr
from pathnn.paths.gpu.distances import Distances, expand
from pathnn.paths.options import PathCollection, PathOptions


@dataclass(frozen=True, eq=False)
class Walks:
    """Walks of one length, sorted: `vertex` `[n, length + 1]` from the root on, `edge` `[n, length]`, step by step."""

    vertex: Tensor
    edge: Tensor

    def __len__(self) -> int:
        return self.vertex.size(0)

    @property
    def length(self) -> int:
        """Number of edges."""
        return self.edge.size(1)


@dataclass(frozen=True, eq=False)
class Frontier:
    """Grow walks of a collection; `distances` are needed for SP and SP+, and for tokens with distances."""

    csr: Csr
    collection: PathCollection
    k: int
    distances: Distances | None

    @classmethod
    def of(cls, csr: Csr, options: PathOptions, *, distances: bool = False) -> Frontier:
        """Compute the distances that growing needs; with `distances`, also those of tokens."""
        found = Distances.of(csr, options.k) if distances or options.definition.by_distance else None
        return cls(csr, options.definition, options.k, found)

    def start(self, sources: Tensor) -> Walks:
        """Return the walks of length 0: the sources."""
        roots = sources.int()
        return Walks(roots[:, None], roots.new_empty(roots.numel(), 0))

    def step(self, walks: Walks) -> tuple[Walks, Tensor]:
        """All walks that are one step longer, sorted, and for each the walk that it continues."""
        owner, slot = expand(self.csr, walks.vertex[:, -1])
        new = self.csr.col[slot]
        allowed = self._allowed(walks, owner, new)
        owner, slot, new = owner[allowed], slot[allowed], new[allowed]
        longer = self._longer(walks, owner, slot, new)
        if self.collection.unique:
            chosen = _chosen(longer.vertex, self.csr.num_nodes)
            owner, longer = owner[chosen], Walks(longer.vertex[chosen], longer.edge[chosen])
        return longer, owner

    def _longer(self, walks: Walks, owner: Tensor, slot: Tensor, new: Tensor) -> Walks:
        vertex = torch.cat([walks.vertex[owner], new[:, None]], dim=1)
        return Walks(vertex, torch.cat([walks.edge[owner], self.csr.edge[slot][:, None]], dim=1))

    def _allowed(self, walks: Walks, owner: Tensor, new: Tensor) -> Tensor:
        if not self.collection.by_distance:
            return (walks.vertex[owner] != new[:, None]).all(dim=1)
        assert self.distances is not None
        return self.distances.distance(walks.vertex[owner, 0], new) == walks.length + 1

    def tokens(self, walks: Walks, distances: bool) -> Tokens:
        """What the LSTM reads when the walks' roots are the far ends, and edges are turned around."""
        if not distances:
            return Tokens(walks.vertex, walks.edge, None)
        assert self.distances is not None
        source = walks.vertex[:, -1:].expand_as(walks.vertex)
        return Tokens(walks.vertex, walks.edge, self.distances.distance(walks.vertex, source))

    def pieces(self, walks: Walks, limit: int) -> Iterator[Walks]:
        """All longer walks, of all lengths, in pieces that were grown from at most about `limit` steps each.

        Not for SP, which needs all walks of a root together to choose.
        """
        if walks.length == self.k or not len(walks):
            return
        for part in _parts(walks, self.csr, limit):
            longer, _ = self.step(part)
            yield longer
            yield from self.pieces(longer, limit)


def _parts(walks: Walks, csr: Csr, limit: int) -> Iterator[Walks]:
    """Cut walks into runs that have about `limit` steps out."""
    last = walks.vertex[:, -1].long()
    steps = (csr.rowptr[last + 1] - csr.rowptr[last]).cumsum(0)
    part = torch.div(steps, limit, rounding_mode="floor")
    sizes = torch.unique_consecutive(part, return_counts=True)[1].tolist()
    for vertex, edge in zip(torch.split(walks.vertex, sizes), torch.split(walks.edge, sizes), strict=True):
        yield Walks(vertex, edge)


def _chosen(paths: Tensor, num_nodes: int) -> Tensor:
    """Which of several shortest paths between two vertices SP takes: the one that avoids the largest ids."""
    pair = paths[:, 0].long() * num_nodes + paths[:, -1]
    _, which, count = torch.unique(pair, return_inverse=True, return_counts=True)
    contested = (count[which] > 1).nonzero().view(-1)
    chosen = torch.ones(paths.size(0), dtype=torch.bool, device=paths.device)
    if not contested.numel():
        return chosen
    descending = paths[contested].sort(dim=1, descending=True)[0]
    order = torch.arange(contested.numel(), device=paths.device)
    for column in [*descending.unbind(1)[::-1], pair[contested]]:
        order = order[torch.sort(column[order], stable=True)[1]]
    sorted_pair = pair[contested[order]]
    loses = torch.zeros_like(order, dtype=torch.bool)
    loses[1:] = sorted_pair[1:] == sorted_pair[:-1]
    chosen[contested[order[loses]]] = False
    return chosen
