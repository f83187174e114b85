"""What one step of the LSTM reads: the rows of the projected inputs that each entry of a level adds up."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pathnn.nn.backends.triton.requirements import on_triton
from pathnn.nn.backends.triton.tall_linear import tall_linear
from pathnn.nn.edge_types import EdgeTypes
from pathnn.paths.trie import LengthTrie


class ProjectedInputs(NamedTuple):
    """The projected inputs, computed once per layer; a gate before activation is a sum of one row of each.

    `vertex` is `[num_nodes, 4d]` with both biases added (one more row for the dummy token where there is
    one), `edge` is `[num_codes + 1, 4d]` whose last row, zeros, stands for "no edge", `distance` is `[rows,
    4d]`.
    """

    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None

    def zeros_like(self) -> ProjectedInputs:
        """ProjectedInputs of the same shapes, filled with zeros: where gradients are added up."""
        vertex, edge, distance = (None if table is None else torch.zeros_like(table) for table in self)
        assert vertex is not None
        return ProjectedInputs(vertex, edge, distance)


class LevelTokens(NamedTuple):
    """For each entry of a level the row of its parent and of each table, int32; None where there is none."""

    parent: Tensor | None
    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None

    @property
    def num_entries(self) -> int:
        """Number of entries of the level."""
        return self.vertex.numel()

    def slice(self, start: int, stop: int, *, parent_start: int) -> LevelTokens:
        """The entries `start:stop`, whose parents are counted from `parent_start` of the level before."""
        parent, vertex, edge, distance = (None if rows is None else rows[start:stop] for rows in self)
        assert vertex is not None
        return LevelTokens(None if parent is None else parent - parent_start, vertex, edge, distance)


class LevelInput(NamedTuple):
    """The rows of a level together with the states of its parents: `W_hh h` `[m, 4d]` and `c` `[m, d]`."""

    parent: Tensor | None
    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None
    projected: Tensor | None
    cell: Tensor | None


def project(
    h: Tensor,
    distances: Tensor | None,
    edges: Tensor | EdgeTypes | None,
    *,
    weight_ih: Tensor,
    bias: Tensor,
) -> ProjectedInputs:
    """`W_ih [h; d; e]` split by columns: one product per vertex, per distance and per edge (or type of edge).

    `h` may have one more row than there are vertices: the dummy token's.
    """
    vertex = F.linear(h, weight_ih[:, : h.size(1)], bias)
    return ProjectedInputs(vertex, *project_small(distances, edges, weight_ih=weight_ih, channels=h.size(1)))


def project_small(
    distances: Tensor | None, edges: Tensor | EdgeTypes | None, *, weight_ih: Tensor, channels: int
) -> tuple[Tensor | None, Tensor | None]:
    """The tables of edges and of distances, which are the same in every layer."""
    split = channels if distances is None else 2 * channels
    distance = None if distances is None else F.linear(distances, weight_ih[:, channels:split])
    if edges is None:
        return None, distance
    features = edges.table if isinstance(edges, EdgeTypes) else edges
    linear = tall_linear if on_triton(features) else F.linear
    edge = linear(features, weight_ih[:, split:])
    return torch.cat([edge, edge.new_zeros(1, edge.size(1))]), distance


def level_rows(trie: LengthTrie, edges: Tensor | EdgeTypes | None, *, distances: bool) -> list[LevelTokens]:
    """The rows of the tables that each entry reads, level by level."""
    levels = []
    for level in trie.levels:
        vertex = torch.where(level.vertex < 0, trie.num_nodes, level.vertex)
        edge = None if edges is None or level.edge is None else _edge_rows(level.edge, edges)
        distance = level.distance if distances else None
        levels.append(LevelTokens(level.parent, vertex.contiguous(), edge, distance))
    return levels


def _edge_rows(edge: Tensor, edges: Tensor | EdgeTypes) -> Tensor:
    """Where -1, no edge, is the row after the last."""
    if isinstance(edges, EdgeTypes):
        none = edges.table.size(0)
        index = torch.cat([edges.types.to(torch.int32), edges.types.new_full((1,), none, dtype=torch.int32)])
        return index[edge.long()]
    return torch.where(edge < 0, edges.size(0), edge)
