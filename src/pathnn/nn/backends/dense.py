"""The backend "dense": every path separately, as in the paper. It is the oracle of the other backends."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from pathnn.nn.backends.base import Budget, EdgeTypes, Inputs, Shared, wide
from pathnn.nn.cells import PathCell
from pathnn.paths.trie import LengthTrie


class Dense:
    """Call the cell once on the tokens of all paths; autograd differentiates it, any number of times."""

    name = "dense"

    def supports(self, cell: PathCell, like: Tensor) -> bool:
        """Return True."""
        return True

    def prepare(self, cell: PathCell, inputs: Inputs, budget: Budget) -> Shared:
        """Expand the features of every edge."""
        edges = inputs.edges.expand() if isinstance(inputs.edges, EdgeTypes) else inputs.edges
        return Shared(backend=self, budget=budget, cell=cell, inputs=inputs._replace(edges=edges))

    def run(self, shared: Shared, h: Tensor, trie: LengthTrie, *, summed: bool) -> Tensor:
        """Return the last hidden state of every path, or their sums at the sources."""
        if trie.prefixes:
            ends = [replace(trie, levels=trie.levels[: t + 1], prefixes=False) for t in range(len(trie.levels))]
            return torch.stack([self.run(shared, h, one, summed=summed) for one in ends]).sum(dim=0)
        states = dense_path_states(shared.cell, h, trie, shared.inputs)
        if not summed:
            return states
        rows = wide(states)
        return rows.new_zeros(trie.num_nodes, rows.size(1)).index_add_(0, trie.source, rows).to(states.dtype)


def dense_path_states(cell: PathCell, h: Tensor, trie: LengthTrie, inputs: Inputs) -> Tensor:
    """Return the last hidden state of each path, `[num_paths, d]`; a token without an edge reads zeros."""
    if trie.num_paths == 0:
        return h[:0]
    rows = list(zip(trie.levels, trie.ancestors(), strict=True))
    vertex = torch.cat([level.vertex[entry] for level, entry in rows])
    # index_select and embedding have fast gradients; indexing with a tensor sorts all indices first
    parts = [h.index_select(0, torch.where(vertex < 0, trie.num_nodes, vertex))]
    if inputs.distances is not None:
        distance = [level.distance[entry] for level, entry in rows if level.distance is not None]
        parts.append(nn.functional.embedding(torch.cat(distance), inputs.distances))
    if inputs.edges is not None:
        assert isinstance(inputs.edges, Tensor)
        features = torch.cat([inputs.edges, inputs.edges.new_zeros(1, inputs.edges.size(1))])  # the last: no edge
        edge = [level.edge[entry] for level, entry in rows if level.edge is not None]
        none = vertex.new_full((trie.num_paths,), -1)
        parts.append(features.index_select(0, torch.cat([none, *edge]) % len(features)))
    steps = torch.cat(parts, dim=1)
    return cell.dense(steps.view(len(rows), trie.num_paths, steps.size(1)))
