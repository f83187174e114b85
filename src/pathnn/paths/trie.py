"""Store paths as tries of LSTM tokens, one trie per path length.

An LSTM reads a path from its far end to its source, so two paths whose reversed token sequences begin alike share
states. `PathTrie` stores each shared prefix once. For length `l` it has levels 0 (far ends) to `l` (sources):

    graph   0 - 1 - 2          length 1: level 0: 0 1 2      length 2: level 0: 0 2
                                         level 1: 1 0 2 1              level 1: 1 1
                                         (parent) 0 1 1 2              level 2: 2 0

An entry is one token (vertex, edge from the previous token, distance to the source). Entries of a level are sorted by
(parent, vertex, edge, distance): children of one parent are contiguous, graphs of a batch are contiguous, and two
builds of the same paths are equal entry for entry.

`from_paths`, `cat` and `from_data` import the modules that build tries when they are called, since these import this
module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from pathnn.paths.options import Collection, PathOptions

Path = tuple[int, ...]
"""The vertices of a path, source first; `DUMMY` is a dummy token."""

DUMMY = -1
TENSORS = ("vertex", "parent", "edge", "distance")
"""The tensors of a trie."""


@dataclass(frozen=True, eq=False)
class TrieLevel:
    """One level of the trie of one length: the tokens that the LSTM reads at one step.

    `parent` indexes the level before; `edge` is the row of `edge_index` that leads from the parent's vertex to
    `vertex`, or of directed paths the other way. The first level has neither. `vertex` is `~v` for a dummy token that
    extends a path ending at `v`.
    """

    vertex: Tensor
    distance: Tensor | None
    parent: Tensor | None
    edge: Tensor | None

    def __len__(self) -> int:
        return self.vertex.numel()


@dataclass(frozen=True, eq=False)
class LengthTrie:
    """The trie of all paths of one length: `length + 1` levels, far ends first, sources last.

    `longest` says that the trie it was taken from has no longer paths, `plan` is what a backend computed for it. With
    `prefixes`, each entry of each level is the end of a path (`join_lengths`).
    """

    levels: tuple[TrieLevel, ...]
    num_nodes: int
    plan: Any = None
    longest: bool = False
    prefixes: bool = False

    @property
    def length(self) -> int:
        """Number of edges of each path."""
        return len(self.levels) - 1

    @property
    def source(self) -> Tensor:
        """The vertex that receives each path's representation, `[num_paths]`, int64 as PyG's `scatter` expects."""
        return self.levels[-1].vertex.long()

    @property
    def num_paths(self) -> int:
        """Number of paths, one per entry of the last level."""
        return len(self.levels[-1])

    @property
    def num_entries(self) -> int:
        """Number of LSTM states: the entries of all levels."""
        return sum(len(level) for level in self.levels)

    def __repr__(self) -> str:
        return (
            f"LengthTrie(length={self.length}, num_paths={self.num_paths}, entries={self.num_entries}, "
            f"num_nodes={self.num_nodes})"
        )

    def ancestors(self) -> list[Tensor]:
        """For each level, far end first, the entry that each path passes through: tensors `[num_paths]`."""
        entry = torch.arange(self.num_paths, device=self.levels[-1].vertex.device)
        rows = [entry]
        for level in reversed(self.levels[1:]):
            assert level.parent is not None
            entry = level.parent[entry]
            rows.append(entry)
        return rows[::-1]


@dataclass(frozen=True, eq=False, repr=False)
class PathTrie:
    """The token tries of a graph or of a batch of graphs, for path lengths 1 to `k`, as flat tensors.

    Made by `extract_paths` or `PathTrie.from_paths`; read through `length(i)`.

    >>> import torch
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> paths = [edge_index.t(), torch.tensor([[0, 1, 2], [2, 1, 0]])]    # of length 1 and 2, source first
    >>> trie = PathTrie.from_paths(paths, edge_index, 3, collection="sp")
    >>> trie
    PathTrie(collection='sp', k=2, num_paths=6, entries=13, device='cpu')
    >>> [level.vertex.tolist() for level in trie.length(2).levels]
    [[0, 2], [1, 1], [2, 0]]
    >>> trie.to_paths()[1].tolist()
    [[2, 1, 0], [0, 1, 2]]

    Attributes:
        vertex: `[num_entries]`, levels of all lengths one after the other; `~v` for a dummy token after vertex `v`.
        parent: `[n]`, for each of the `n` entries that are in no first level, its parent within the level before.
        edge: the same shape, the row of `edge_index` from the parent's vertex to this one (of directed paths the other
            way; -1 next to a dummy token), so that `edge_attr[trie.edge]` is what the LSTM reads.
        distance: `[num_entries]`, number of edges of a shortest path to the source (`k + 1` for a dummy), or None.
        sizes: `sizes[l - 1][t]` is the number of entries at level `t` of the trie of length `l`.
        plans: for each length what a backend computed beforehand, or None; not copied with the trie.
    """

    vertex: Tensor
    parent: Tensor
    edge: Tensor
    distance: Tensor | None
    sizes: tuple[tuple[int, ...], ...]
    collection: Collection
    num_nodes: int
    num_edges: int
    extended: bool = False
    sampled: int | None = None
    directed: bool = False
    plans: tuple[Any, ...] | None = None

    # what it is

    @property
    def k(self) -> int:
        """The largest path length, in edges."""
        return len(self.sizes)

    @property
    def num_paths(self) -> int:
        """Number of paths of all lengths."""
        return sum(levels[-1] for levels in self.sizes)

    @property
    def num_entries(self) -> int:
        """Number of entries, and so of LSTM states, of all lengths."""
        return sum(map(sum, self.sizes))

    @property
    def nbytes(self) -> int:
        """Bytes of its tensors."""
        return sum(x.nbytes for x in self._tensors())

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.vertex.device

    def __repr__(self) -> str:
        extra = ", extended=True" if self.extended else ""
        extra += ", directed=True" if self.directed else ""
        extra += f", sampled={self.sampled} per source and length" if self.sampled is not None else ""
        return (
            f"PathTrie(collection={self.collection!r}, k={self.k}, num_paths={self.num_paths}, "
            f"entries={self.num_entries}, device={str(self.device)!r}{extra})"
        )

    def equal(self, other: PathTrie) -> bool:
        """Return whether both have the same options and the same entries in the same order."""
        mine, theirs = self._tensors(), other._tensors()
        plain = [field.name for field in fields(self) if field.name not in (*TENSORS, "plans")]
        return all(getattr(self, name) == getattr(other, name) for name in plain) and (
            len(mine) == len(theirs) and all(torch.equal(a, b.to(a.device)) for a, b in zip(mine, theirs, strict=True))
        )

    # reading

    def length(self, length: int) -> LengthTrie:
        """The trie of the paths of exactly `length` edges, as views of the flat tensors."""
        if not 1 <= length <= self.k:
            raise ValueError(f"length={length} is not in this trie: expected 1 to {self.k}.")
        start = sum(map(sum, self.sizes[: length - 1]))
        start_child = start - sum(levels[0] for levels in self.sizes[: length - 1])
        shift = self.sizes[length - 1][0]
        levels: list[TrieLevel] = []
        for a, b in pairwise(accumulate(self.sizes[length - 1], initial=0)):
            entry, child = slice(start + a, start + b), slice(start_child + a - shift, start_child + b - shift)
            distance = None if self.distance is None else self.distance[entry]
            parent, edge = (self.parent[child], self.edge[child]) if levels else (None, None)
            levels.append(TrieLevel(self.vertex[entry], distance, parent, edge))
        plan = None if self.plans is None else self.plans[length - 1]
        return LengthTrie(tuple(levels), self.num_nodes, plan, longest=length == self.k)

    def lengths(self) -> Iterator[LengthTrie]:
        """The tries of length 1 to `k`."""
        return (self.length(i) for i in range(1, self.k + 1))

    def to_paths(self) -> list[Tensor]:
        """The paths, one tensor `[num_paths, length + 1]` per length, source first, int64; -1 for a dummy token."""
        paths = []
        for trie in self.lengths():
            tokens = [level.vertex[entry] for level, entry in zip(trie.levels, trie.ancestors(), strict=True)]
            paths.append(torch.stack(tokens[::-1], dim=1).long().clamp_(min=-1))
        return paths

    # making

    @staticmethod
    def from_paths(
        paths: Sequence[Tensor],
        edge_index: Tensor,
        num_nodes: int,
        *,
        collection: Collection,
        distances: bool | None = None,
        extended: bool | None = None,
        directed: bool = False,
    ) -> PathTrie:
        """Build the tries of any explicit paths: `paths[i]` is `[n, i + 2]`, vertices from the source on.

        -1 stands for a dummy token. `distances` adds the distance of each token to the source; None means: for "ap".
        `extended` says that these paths were extended, even if none of them had to be; None means: if one has a -1.
        `directed` paths follow the direction of edges from their source on. Paths of collection "custom" may visit a
        vertex twice and may occur several times: the last level then has an entry for each.
        """
        from pathnn.paths.build import trie_from_paths

        options = PathOptions(collection, len(paths), distances, directed=directed)
        return trie_from_paths(paths, edge_index, num_nodes, options, extended)

    @staticmethod
    def cat(tries: Sequence[PathTrie]) -> PathTrie:
        """The trie of the disjoint union of the tries' graphs, vertices and edges numbered on."""
        from pathnn.paths.ragged import RaggedTries

        return RaggedTries.from_tries(tries).trie()

    @staticmethod
    def from_data(data: Any) -> PathTrie:
        """The trie that `AddPaths` stored in a PyG `Data`, or of all graphs of a PyG `Batch` of such data."""
        from pathnn.paths.storage import trie_of

        return trie_of(data)

    # moving

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> PathTrie:
        """Return the same trie on `device`."""
        return self._map(lambda x: x.to(device, non_blocking=non_blocking))

    def cpu(self) -> PathTrie:
        """Return the same trie in main memory."""
        return self.to("cpu")

    def cuda(self, device: int | None = None) -> PathTrie:
        """The same trie on a GPU, the current one if `device` is None."""
        return self.to("cuda" if device is None else f"cuda:{device}")

    def pin_memory(self) -> PathTrie:
        """The same trie in page-locked memory, for asynchronous copies to a GPU."""
        return self._map(Tensor.pin_memory)

    def _tensors(self) -> list[Tensor]:
        return [tensor for name in TENSORS if (tensor := getattr(self, name)) is not None]

    def _map(self, function: Callable[[Tensor], Tensor]) -> PathTrie:
        moved: dict[str, Any] = {name: function(x) for name in TENSORS if (x := getattr(self, name)) is not None}
        return replace(self, **moved, plans=None)

    # checking

    def validate(self) -> PathTrie:
        """Return itself, or raise `ValueError` that names the first thing that is wrong."""
        definition = PathOptions.of_trie(self).definition
        self._check_shapes()
        for trie in self.lengths():
            for t, level in enumerate(trie.levels):
                before = trie.levels[t - 1] if t else None
                fault = _level_fault(level, before, self, repeats=t == trie.length and not definition.simple)
                if fault:
                    raise ValueError(f"PathTrie, length {trie.length}, level {t}: {fault}.")
            last = trie.levels[-1]
            if bool((last.vertex < 0).any()) or (last.distance is not None and bool(last.distance.any())):
                raise ValueError(f"PathTrie, length {trie.length}: a source is a dummy, or at a distance from itself.")
        return self

    def _check_shapes(self) -> None:
        if any(len(levels) != i + 2 for i, levels in enumerate(self.sizes)):
            raise ValueError(f"PathTrie.sizes: expected i + 1 levels for length i, got {self.sizes}.")
        children = self.num_entries - sum(levels[0] for levels in self.sizes)
        for name, tensor, expected in (
            ("vertex", self.vertex, self.num_entries),
            ("parent", self.parent, children),
            ("edge", self.edge, children),
            ("distance", self.distance, self.num_entries),
        ):
            if tensor is not None and (tensor.shape != (expected,) or tensor.dtype != torch.int32):
                raise ValueError(
                    f"PathTrie.{name}: expected int32 of shape ({expected},), got {tensor.dtype} {tuple(tensor.shape)}."
                )


torch.serialization.add_safe_globals([PathTrie])  # so that torch.load(weights_only=True) reads a saved trie


def owner(vertex: Tensor) -> Tensor:
    """The vertex itself, or for a dummy token the vertex whose path it extends."""
    return torch.where(vertex < 0, ~vertex, vertex)


def _level_fault(level: TrieLevel, before: TrieLevel | None, trie: PathTrie, *, repeats: bool) -> str | None:
    vertex = owner(level.vertex)
    if len(level) and int(vertex.max()) >= trie.num_nodes:
        return f"a vertex is not below num_nodes={trie.num_nodes}"
    if not trie.extended and bool((level.vertex < 0).any()):
        return "a dummy token in a trie that is not extended"
    if level.distance is not None and bool(((level.distance < 0) | (level.distance > trie.k + 1)).any()):
        return f"a distance outside 0..{trie.k + 1}"
    columns = [2 * vertex.long() + (level.vertex < 0), *(x for x in (level.edge, level.distance) if x is not None)]
    if before is not None:
        assert level.parent is not None
        assert level.edge is not None
        if bool(((level.parent < 0) | (level.parent >= len(before))).any()):
            return "a parent that does not exist"
        real = (level.vertex >= 0) & (before.vertex[level.parent] >= 0)
        if bool(((level.edge < 0) & real).any()) or bool(((level.edge != -1) & ~real).any()):
            return "an edge that is negative, or at a dummy token"
        if bool((level.edge >= trie.num_edges).any()):
            return f"an edge is not below num_edges={trie.num_edges}"
        if bool((torch.bincount(level.parent, minlength=len(before)) == 0).any()):
            return "an entry of the level before has no child"
        columns.insert(0, level.parent)
    rows = torch.stack([column.long() for column in columns], dim=1)
    if not torch.equal(torch.unique_consecutive(rows, dim=0) if repeats else rows, torch.unique(rows, dim=0)):
        return "entries are not sorted by (parent, vertex, edge, distance)"
    return None
