"""Padded batches: batches of one fixed shape, with paths or edges, assembled on the GPU for CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs, widen
from pathnn.nn.backends.triton.order import Planner
from pathnn.paths.ragged import RaggedTries, root_columns, sizes_of
from pathnn.paths.trie import PathTrie

SAMPLE, SHARES, STEP = 512, (0.96, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2), 1.06
"""Shapes are chosen to hold these shares of `SAMPLE` random batches, and differ by at least a factor of `STEP`."""

LOOPS = 64
"""Padded vertices for the loops of padded edges: many loops at few vertices would give large sums."""

BLOCKS_PER_PART, MOST_PARTS = 8, 64
"""A level of a graph is gathered in parts of about `BLOCKS_PER_PART` blocks, in at most `MOST_PARTS` parts."""


@dataclass(frozen=True)
class PaddedShape:
    """The shape of a padded batch: numbers of graphs, vertices, edges, and entries of each level of all lengths."""

    graphs: int
    nodes: int
    edges: int
    levels: tuple[int, ...]

    @classmethod
    def shapes(cls, sizes: Tensor, batch_size: int) -> list[PaddedShape]:
        """Return a few shapes for random batches, the smallest first; the last one holds nearly all batches.

        Each has at least `STEP` times as many entries as the one before, so graphs of equal size have one shape.

        >>> PaddedShape.shapes(torch.tensor([[3, 6, 3, 6]] * 100), 32)
        [PaddedShape(graphs=32, nodes=100, edges=199, levels=(97, 193))]
        """
        batches = _random_batches(sizes, batch_size, torch.Generator().manual_seed(0))
        batches = batches[_amount(batches).argsort()]
        largest = sizes.sort(dim=0, descending=True).values[:batch_size].sum(dim=0)
        highest = batches.amax(dim=0)
        found = [torch.minimum(highest + highest // 32, largest)]
        for share in SHARES:
            total = batches[: int(SAMPLE * share)].amax(dim=0)
            if _amount(total) * STEP < _amount(found[-1]):
                found.append(total)
        if sizes.size(1) > 2:  # padded entries are spread over padded vertices and edges: some are needed
            found = [torch.cat([total[:-2], total[-2:] + total[-2:] // 32]) for total in found]
        return [cls.holding(total, batch_size) for total in reversed(found)]

    @classmethod
    def holding(cls, totals: Tensor, batch_size: int) -> PaddedShape:
        """Return the smallest shape that holds a batch with these totals and padding."""
        *levels, nodes, edges = (totals + 1).tolist()
        return cls(batch_size, nodes, edges, tuple(levels))

    def with_room(self) -> PaddedShape:
        """Return a shape with `LOOPS` more padded vertices, for batches with edges: padded edges are loops there."""
        return replace(self, nodes=self.nodes + LOOPS)

    def holds(self, totals: Tensor) -> bool:
        """Return whether a batch with these totals (levels, vertices, edges) and one padding row of each fits."""
        return bool((totals < self._bounds).all())

    @cached_property
    def _bounds(self) -> Tensor:
        return torch.tensor([*self.levels, self.nodes, self.edges])


def _random_batches(sizes: Tensor, batch_size: int, generator: torch.Generator) -> Tensor:
    """Return the totals of `SAMPLE` batches of shuffled graphs, as in training: `[SAMPLE, columns]`."""
    graphs, columns = sizes.shape
    each = min(batch_size, graphs)
    number = min(SAMPLE, graphs // each) if each else SAMPLE  # of one shuffle: a permutation of many graphs takes long
    shuffles = [torch.randperm(graphs, generator=generator)[: number * each] for _ in range(-(-SAMPLE // number))]
    return torch.cat([sizes[index].view(number, each, columns).sum(dim=1) for index in shuffles])[:SAMPLE]


def _amount(totals: Tensor) -> Tensor:
    """Return the number of entries, or of vertices and edges without paths: the time of a step depends on it."""
    return (totals[..., :-2] if totals.size(-1) > 2 else totals).sum(dim=-1)


def graph_sizes(graphs: PackedGraphs, *, paths: bool = True) -> Tensor:
    """Count the entries of each level (if `paths`), vertices and edges of each graph.

    Returns `[graphs, levels + 2]`, int64, on the CPU.
    """
    counts = torch.stack([graphs.node_ptr.diff(), graphs.edge_ptr.diff()], dim=1)
    if not paths:
        return counts
    assert graphs.tries is not None
    return torch.cat([graphs.tries.sizes, counts], dim=1)


class PaddedRows:
    """Padded batches of a dataset on the GPU: features, targets and the graph of each vertex.

    `load(index)` selects graphs; `assemble()` gathers them without synchronisation, so that a CUDA graph can contain
    it. The first `valid` vertices are those of the batch; the others are padding and belong to one additional graph.
    Subclasses add the structure that a model reads: `trie` or `edge_index`.
    """

    trie: PathTrie | None = None
    edges: Tensor | None = None
    """The edges of the dataset, if the model reads edges."""

    def __init__(self, graphs: PackedGraphs, capacity: PaddedShape, sizes: Tensor, origin: Tensor) -> None:
        self.graphs, self.capacity, self.sizes, self._origin = graphs, capacity, sizes, origin
        device, self._levels = graphs.device, len(capacity.levels)
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

    def assemble(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Fill the batch; return the features x and edge_attr and the targets y."""
        from pathnn.training.cuda_graphs.kernels import gather_rows

        capacity, graphs = self.capacity, self.graphs
        gather_rows[(capacity.graphs + 1,)](
            self.layout, self._origin, self.edges, self._node, self._edge, self.batch, self._ends, self.valid,
            graphs.edge_index.size(1), capacity.graphs, capacity.nodes, capacity.edges, LEVELS=self._levels, BLOCK=128,
        )  # fmt: skip
        x = None if graphs.x is None else widen(graphs.x[self._node])
        edge_attr = None if graphs.edge_attr is None else widen(graphs.edge_attr[self._edge])
        y = None if graphs.y is None else graphs.y[self.layout[:-1, -1].long()]
        return x, edge_attr, y


class PaddedEdges(PaddedRows):
    """Padded batches with their edges, for the baselines; padded edges are loops at padded vertices."""

    def __init__(self, graphs: PackedGraphs, capacity: PaddedShape) -> None:
        starts = torch.stack([graphs.node_ptr[:-1], graphs.edge_ptr[:-1]], dim=1)
        origin = torch.cat([starts, torch.zeros_like(starts)], dim=1).to(graphs.device)
        self.edges = graphs.edge_index.contiguous()
        super().__init__(graphs, capacity, graph_sizes(graphs, paths=False), origin)


class PaddedBatches(PaddedRows):
    """Padded batches with paths, for `PathNN`.

    `parts` programs gather each level of a graph (several if a graph has very many paths), `block` entries at a time.
    """

    trie: PathTrie

    def __init__(self, graphs: PackedGraphs, capacity: PaddedShape) -> None:
        assert isinstance(graphs.tries, RaggedTries)
        self.tries = tries = graphs.tries
        device, levels = graphs.device, len(capacity.levels)
        self._table, origin = _tables(graphs, tries)
        super().__init__(graphs, capacity, graph_sizes(graphs), origin)
        root, sizes = root_columns(tries.k).tolist(), list(capacity.levels)
        children = [0 if is_root else size for is_root, size in zip(root, sizes, strict=True)]
        first_child = [
            -1 if is_root else at for is_root, at in zip(root, accumulate(children, initial=0), strict=False)
        ]
        starts = [list(accumulate(sizes, initial=0))[:-1], first_child, sizes]
        self._first, self._first_child, self._capacity = torch.tensor(starts, dtype=torch.int32, device=device)
        self.trie = _empty_trie(tries, sizes, sum(children), capacity.nodes, capacity.edges)
        self._planner = Planner(self.trie)
        self.block = min(1024, max(128, 1 << (sum(capacity.levels) // (levels * capacity.graphs)).bit_length()))
        largest = int(tries.sizes.max()) if tries.sizes.numel() else 0  # of one graph and level
        self.parts = max(1, min(MOST_PARTS, largest // (BLOCKS_PER_PART * self.block)))

    def assemble(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Fill the batch, `trie` and its plans; return the features x and edge_attr and the targets y."""
        from pathnn.training.cuda_graphs.kernels import gather_entries

        capacity, trie, tries = self.capacity, self.trie, self.tries
        gather_entries[(capacity.graphs + 1) * self.parts, self._levels](
            self.layout, self._table, self._origin, self._first, self._first_child, self._capacity,
            tries.vertex, tries.parent, tries.edge, tries.distance, trie.vertex, trie.parent, trie.edge, trie.distance,
            capacity.graphs, capacity.nodes, capacity.edges, LEVELS=self._levels, BLOCK=self.block,
        )  # fmt: skip
        self.trie = replace(trie, plans=self._planner.plan(trie))
        return super().assemble()


def _tables(graphs: PackedGraphs, tries: RaggedTries) -> tuple[Tensor, Tensor]:
    """Return the offsets of entries, features and ids of each graph, for the gather kernels."""
    size, entry, child = tries.tables
    table = torch.stack([size, entry, child, torch.zeros_like(size)], dim=2)  # ids are counted within each graph
    starts = torch.stack([graphs.node_ptr[:-1], graphs.edge_ptr[:-1]], dim=1).to(table.device)
    return table, torch.cat([starts, torch.zeros_like(starts)], dim=1)


def _empty_trie(tries: RaggedTries, sizes: list[int], children: int, nodes: int, edges: int) -> PathTrie:
    def zeros(number: int) -> Tensor:
        return torch.zeros(number, dtype=torch.int32, device=tries.vertex.device)

    entries = sum(sizes)
    return PathTrie(
        vertex=zeros(entries),
        parent=zeros(children),
        edge=zeros(children),
        distance=None if tries.distance is None else zeros(entries),
        sizes=sizes_of(torch.tensor(sizes), tries.k),
        collection=tries.collection,
        num_nodes=nodes,
        num_edges=edges,
        extended=tries.extended,
        sampled=tries.sampled,
        directed=tries.directed,
    )
