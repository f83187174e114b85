"""Padded batches of a dataset on the GPU, with paths or edges, gathered by kernels."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from pathnn.data.packed import PackedGraphs, widen
from pathnn.nn.backends.triton.order import Planner
from pathnn.nn.cuda_graphs.padded_copies import PaddedFeatures, PaddedShape, empty_trie, firsts
from pathnn.paths.ragged import RaggedTries, root_columns
from pathnn.paths.trie import PathTrie

BLOCKS_PER_PART, MOST_PARTS = 8, 64
"""A level of a graph is gathered in parts of about `BLOCKS_PER_PART` blocks, in at most `MOST_PARTS` parts."""


def graph_sizes(graphs: PackedGraphs, *, paths: bool = True) -> Tensor:
    """Count the entries of each level (if `paths`), vertices and edges of each graph, `[graphs, levels + 2]`."""
    counts = torch.stack([graphs.node_ptr.diff(), graphs.edge_ptr.diff()], dim=1)
    if not paths:
        return counts
    assert isinstance(graphs.tries, RaggedTries)
    return torch.cat([graphs.tries.sizes, counts], dim=1)


class PaddedRows:
    """Padded batches of a dataset on the GPU: features, targets and the graph of each vertex; subclasses add structure.

    `assemble()` gathers the graphs of `load(index)` without synchronisation, so that a CUDA graph can contain it. The
    first `valid` vertices are those of the batch; the others are padding and belong to one additional graph.
    """

    trie: PathTrie | None = None
    edges: Tensor | None = None
    """The edges of the dataset, if the model reads edges."""

    def __init__(self, graphs: PackedGraphs, capacity: PaddedShape, sizes: Tensor) -> None:
        self.graphs, self.capacity, self.sizes = graphs, capacity, sizes
        device, self._levels = graphs.device, len(capacity.levels)
        starts = torch.stack([graphs.node_ptr[:-1], graphs.edge_ptr[:-1]], dim=1)
        self._origin = torch.cat([starts, torch.zeros_like(starts)], dim=1).to(device)  # ids are those in a graph
        self.layout = torch.zeros(capacity.graphs + 1, self._levels + 3, dtype=torch.int32, device=device)
        self.valid = torch.zeros(1, dtype=torch.int32, device=device)
        self._node = torch.zeros(capacity.nodes, dtype=torch.int64, device=device)
        self._edge = torch.zeros(capacity.edges, dtype=torch.int64, device=device)
        self._ends = None if self.edges is None else torch.zeros(2, capacity.edges, dtype=torch.int64, device=device)
        self.batch = torch.zeros_like(self._node)

    @property
    def edge_index(self) -> Tensor | None:
        """The edges of the batch, as a new tensor at each call: layers must not cache what they derive from it."""
        return None if self._ends is None else self._ends.view(2, -1)

    def fits(self, index: Tensor) -> bool:
        """Return whether a batch has the number of graphs of this shape and fits into it."""
        return index.numel() == self.capacity.graphs and self.capacity.holds(self.sizes[index].sum(dim=0))

    def load(self, index: Tensor) -> None:
        """Select the graphs that `assemble` gathers; `index` is on the CPU."""
        layout = torch.zeros(self.layout.shape, dtype=torch.int32)
        layout[1:, :-1] = self.sizes[index].cumsum(dim=0)
        layout[:-1, -1] = index
        self.layout.copy_(layout.pin_memory(), non_blocking=True)

    def assemble(self) -> PaddedFeatures:
        """Fill the batch, and return its features and targets."""
        from pathnn.training.cuda_graphs.kernels import gather_rows

        capacity, graphs = self.capacity, self.graphs
        gather_rows[(capacity.graphs + 1,)](
            self.layout, self._origin, self.edges, self._node, self._edge, self.batch, self._ends, self.valid,
            graphs.edge_index.size(1), capacity.graphs, capacity.nodes, capacity.edges, LEVELS=self._levels, BLOCK=128,
        )  # fmt: skip
        x = None if graphs.x is None else widen(graphs.x[self._node])
        edge_attr = None if graphs.edge_attr is None else widen(graphs.edge_attr[self._edge])
        chosen = self.layout[:-1, -1].long()
        y = None if graphs.y is None else graphs.y[chosen]
        attr = None if graphs.graph_attr is None else graphs.graph_attr[chosen]
        walks = None if graphs.random_walk_pe is None else graphs.random_walk_pe[self._node]
        return PaddedFeatures(x, edge_attr, y, None if attr is None else nn.functional.pad(attr, (0, 0, 0, 1)), walks)


class PaddedEdges(PaddedRows):
    """Padded batches with their edges, for models without paths; padded edges are loops at padded vertices."""

    def __init__(self, graphs: PackedGraphs, capacity: PaddedShape) -> None:
        self.edges = graphs.edge_index.contiguous()
        super().__init__(graphs, capacity, graph_sizes(graphs, paths=False))


class PaddedBatches(PaddedRows):
    """Padded batches with paths; `parts` programs gather a level of a graph, `block` entries at a time."""

    trie: PathTrie

    def __init__(self, graphs: PackedGraphs, capacity: PaddedShape, *, with_edges: bool = False) -> None:
        assert isinstance(graphs.tries, RaggedTries)
        self.edges = graphs.edge_index.contiguous() if with_edges else None
        self.tries = tries = graphs.tries
        device, levels = graphs.device, len(capacity.levels)
        size, entry, child = tries.tables
        self._table = torch.stack([size, entry, child, torch.zeros_like(size)], dim=2)
        super().__init__(graphs, capacity, graph_sizes(graphs))
        starts = [*firsts(capacity.levels, root_columns(tries.k).tolist()), capacity.levels]
        self._first, self._first_child, self._capacity = torch.tensor(starts, dtype=torch.int32, device=device)
        self.trie = empty_trie(tries, capacity)
        self._planner = Planner(self.trie)
        self.block = min(1024, max(128, 1 << (sum(capacity.levels) // (levels * capacity.graphs)).bit_length()))
        largest = int(tries.sizes.max()) if tries.sizes.numel() else 0  # of one graph and level
        self.parts = max(1, min(MOST_PARTS, largest // (BLOCKS_PER_PART * self.block)))

    def assemble(self) -> PaddedFeatures:
        """Fill the batch, `trie` and its plans; return its features and targets."""
        from pathnn.training.cuda_graphs.kernels import gather_entries

        capacity, trie, tries = self.capacity, self.trie, self.tries
        gather_entries[(capacity.graphs + 1) * self.parts, self._levels](
            self.layout, self._table, self._origin, self._first, self._first_child, self._capacity,
            tries.vertex, tries.parent, tries.edge, tries.distance, trie.vertex, trie.parent, trie.edge, trie.distance,
            capacity.graphs, capacity.nodes, capacity.edges, LEVELS=self._levels, BLOCK=self.block,
        )  # fmt: skip
        self.trie = replace(trie, plans=self._planner.plan(trie))
        return super().assemble()
