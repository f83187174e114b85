"""Padded copies of batches: batches of one fixed shape, for CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import lt
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from pathnn.nn.backends.triton.order import Planner
from pathnn.paths.ragged import RaggedTries, root_columns, sizes_of
from pathnn.paths.trie import PathTrie

SAMPLE, SHARES, STEP = 512, (0.96, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2), 1.06
"""Shapes are chosen to hold these shares of `SAMPLE` random batches, and differ by at least a factor of `STEP`."""

LOOPS = 64
"""Padded vertices for the loops of padded edges: many loops at few vertices would give large sums."""

PAD_PARTS, PAD_BLOCK = 16, 512
"""The programs that copy a level into a padded trie, and the entries that each copies at a time."""

MOST_SHAPES, HEADROOM, LOOSE = 8, 16, 1.5
"""A new shape has a sixteenth more room than its batch; a batch that leaves a third of each empty gets its own."""


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
        return all(map(lt, totals.tolist(), self.rows))

    @property
    def rows(self) -> tuple[int, ...]:
        """Return the numbers of entries of each level, vertices and edges, as totals have them."""
        return (*self.levels, self.nodes, self.edges)


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


class PaddedFeatures(NamedTuple):
    """The features of a padded batch, and the targets of its graphs; `graph_attr` has a row for the padded graph."""

    x: Tensor | None
    edge_attr: Tensor | None
    y: Tensor | None
    graph_attr: Tensor | None
    random_walk_pe: Tensor | None = None


def empty_trie(like: RaggedTries | PathTrie, capacity: PaddedShape) -> PathTrie:
    """Return a trie of zeros with the options of another one."""
    sizes = torch.tensor(capacity.levels)
    entries, children = int(sizes.sum()), int(sizes[~root_columns(like.k)].sum())
    device = like.vertex.device
    vertex, parent, edge, distance = (
        torch.zeros(number, dtype=torch.int32, device=device) for number in (entries, children, children, entries)
    )
    return PathTrie(
        vertex, parent, edge, None if like.distance is None else distance, sizes_of(sizes, like.k), like.collection,
        capacity.nodes, capacity.edges, like.extended, like.sampled, like.directed,
    )  # fmt: skip


S = TypeVar("S", bound=Any)

Inputs = Mapping[str, Any]
"""What a model reads of a batch, as `GraphModel.forward` names it, and the targets `y`."""


class PaddedCopies:
    """Padded batches that `load` copies from those of any loader, such as `first`; the interface is `PaddedRows`."""

    def __init__(self, first: Inputs, capacity: PaddedShape, *, with_edges: bool = False) -> None:
        self.capacity, self._kinds, device = capacity, _kinds(first), first["x"].device
        rows = (capacity.nodes, capacity.edges, capacity.graphs, capacity.graphs + 1, capacity.nodes)
        self._rows = {
            name: None if first.get(name) is None else first[name].new_zeros(number, *first[name].shape[1:])
            for name, number in zip(PaddedFeatures._fields, rows, strict=True)
        }
        self.valid = torch.zeros(1, dtype=torch.int32, device=device)
        self.batch = torch.zeros(capacity.nodes, dtype=torch.int64, device=device)
        with_edges = with_edges or first["trie"] is None
        self._ends = torch.zeros(2, capacity.edges, dtype=torch.int64, device=device) if with_edges else None
        self.trie: PathTrie | None = None
        if first["trie"] is not None:
            self.trie = empty_trie(first["trie"], capacity)
            self._planner = Planner(self.trie)
            self._root, self._room = root_columns(self.trie.k).tolist(), capacity.levels

    @property
    def edge_index(self) -> Tensor | None:
        """The edges of the batch, as a new tensor at each call; None if the model reads none."""
        return None if self._ends is None else self._ends.view(2, -1)

    @staticmethod
    def totals(inputs: Inputs) -> Tensor:
        """Return the entries of each level (of a trie), vertices and edges of a batch, as `PaddedShape` has them."""
        trie = inputs["trie"]
        levels = [] if trie is None else [n for length in trie.sizes for n in length]
        edges = inputs["edge_index"].size(1) if trie is None else trie.num_edges
        return torch.tensor([*levels, inputs["x"].size(0), edges])

    def fits(self, inputs: Inputs) -> bool:
        """Return whether a batch has the kinds of features and the number of graphs of this shape, and fits into it."""
        if inputs["batch_size"] != self.capacity.graphs or _kinds(inputs) != self._kinds:
            return False
        return self.capacity.holds(self.totals(inputs))

    def load(self, inputs: Inputs) -> None:
        """Copy a batch, and fill up with padding; the features of padded vertices and edges are those of the first."""
        capacity, (nodes, edges) = self.capacity, self.totals(inputs)[-2:].tolist()
        for name, to in self._rows.items():
            if to is not None:
                size = inputs[name].size(0)
                to[:size].copy_(inputs[name])
                if name in ("x", "edge_attr", "random_walk_pe") and size:
                    to[size:] = to[:1]
        self.valid.fill_(nodes)
        self.batch.fill_(capacity.graphs)[:nodes].copy_(inputs["batch"])
        if self._ends is not None:
            padding = torch.arange(capacity.edges - edges, device=self.valid.device) % (capacity.nodes - nodes)
            self._ends[:, :edges].copy_(inputs["edge_index"])
            self._ends[:, edges:] = nodes + padding
        if self.trie is not None:
            self._load_trie(self.trie, inputs["trie"], nodes, edges)

    def _load_trie(self, to: PathTrie, trie: PathTrie, nodes: int, edges: int) -> None:
        """Copy each level, and spread its padded entries evenly over the padded parents, vertices and edges."""
        from pathnn.nn.cuda_graphs.kernels import pad_levels

        size = [n for length in trie.sizes for n in length]
        table = torch.tensor([size, self._room, *firsts(size, self._root), *firsts(self._room, self._root)])
        table = table.int()
        if to.device.type == "cuda":
            table = table.pin_memory().to(to.device, non_blocking=True)
        pad_levels[len(size), PAD_PARTS](
            table, trie.vertex, trie.parent, trie.edge, trie.distance if to.distance is not None else None,
            to.vertex, to.parent, to.edge, to.distance, len(size), nodes, self.capacity.nodes, edges,
            self.capacity.edges, BLOCK=PAD_BLOCK,
        )  # fmt: skip

    def assemble(self) -> PaddedFeatures:
        """Compute the plans of the trie; return the features and targets."""
        if self.trie is not None:
            self.trie = replace(self.trie, plans=self._planner.plan(self.trie))
        return PaddedFeatures(**self._rows)


def firsts(sizes: Sequence[int], root: Sequence[bool]) -> list[list[int]]:
    """Return the first entry of each level, and the first entry with a parent, -1 for levels without."""
    below = [0 if is_root else size for size, is_root in zip(sizes, root, strict=True)]
    children = accumulate(below, initial=0)
    first_child = [-1 if is_root else at for at, is_root in zip(children, root, strict=False)]
    return [list(accumulate(sizes, initial=0))[:-1], first_child]


def _kinds(inputs: Inputs) -> list[Any]:
    """Return what all batches of a `PaddedCopies` have in common."""
    features = [inputs.get(name) for name in PaddedFeatures._fields]
    trie = inputs["trie"]
    alike = None if trie is None else (trie.collection, trie.k, trie.extended, trie.distance is None)
    return [alike, *(None if part is None else (part.dtype, part.shape[1:]) for part in features)]


def find_slot(slots: list[S], inputs: Inputs, make: Callable[[PaddedShape], S]) -> S | None:
    """Return the one with the smallest shape that a batch fits, or a new one if none fits closely and there are few."""
    totals = PaddedCopies.totals(inputs)
    fitting = [slot for slot in slots if slot.batches.fits(inputs)]
    best = min(fitting, key=lambda slot: sum(slot.batches.capacity.rows), default=None)
    least = LOOPS + totals.numel()  # padding of any shape
    loose = best is None or sum(best.batches.capacity.rows) > LOOSE * int(totals.sum()) + least
    if loose and len(slots) < MOST_SHAPES:
        best = make(PaddedShape.holding(totals + totals // HEADROOM, inputs["batch_size"]).with_room())
        slots.append(best)
    return best
