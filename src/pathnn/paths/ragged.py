"""Tries of many graphs as flat tensors, and batches of them on a CPU and a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from pathnn.paths.options import Collection, PathOptions
from pathnn.paths.trie import TENSORS, PathTrie, owner

Ints = NDArray[np.int32]
Table = NDArray[np.int64]
Flat = tuple[Tensor, Tensor, Tensor, Tensor | None]
"""Vertex, parent, edge and distance."""

STORED = (*TENSORS, "sizes", "num_nodes", "num_edges")


def cat_tries(parts: Sequence[RaggedTries]) -> RaggedTries:
    """Concatenate the tries of several sequences of graphs, all with the same options."""
    if not parts:
        raise ValueError("no tries: expected at least one graph.")
    if len(parts) == 1:
        return parts[0]
    there = [name for name in STORED if getattr(parts[0], name) is not None]
    joined: dict[str, Any] = {name: torch.cat([getattr(part, name) for part in parts]) for name in there}
    return replace(parts[0], **joined)


def _copied(tries: PathTrie | RaggedTries, size: Tensor, layouts: Sequence[Tensor], shifts: Sequence[Tensor]) -> Flat:
    """Copy slices of vertex, parent, edge and distance; `layouts` and `shifts` are tables for `_copy`."""
    root = root_columns(tries.k)
    entries, children = int(size.sum()), int((size * ~root).sum())
    numbers = entries, children, children, 0 if tries.distance is None else entries
    copies = [torch.empty(n, dtype=torch.int32) for n in numbers]
    flat = tries.vertex, tries.parent, tries.edge, copies[3] if tries.distance is None else tries.distance
    table, ids = torch.stack([size, *layouts, shifts[0]]), torch.stack([*shifts[1:]])
    arrays, out = (tuple(x.numpy() for x in tensors) for tensors in (flat, copies))
    _copy(root.numpy(), tries.extended, table.numpy(), ids.numpy(), arrays, out)
    return copies[0], copies[1], copies[2], None if tries.distance is None else copies[3]


@njit(cache=True, nogil=True)
def _copy(
    root: NDArray[np.bool_], extended: bool, table: Table, ids: Table, flat: tuple[Ints, ...], out: tuple[Ints, ...]
) -> None:
    """Copy every slice, shifting vertices, edges and parents (`ids`: the shifts of vertices and edges of each graph).

    Offsets are unsigned: signed ones would be checked, and loops not vectorised.
    """
    size, entry, child, to_entry, to_child, parent_shift = table[0], table[1], table[2], table[3], table[4], table[5]
    vertex, parent, edge, distance = flat
    out_vertex, out_parent, out_edge, out_distance = out
    for graph in range(size.shape[0]):
        by_node, by_edge = np.int32(ids[0, graph]), np.int32(ids[1, graph])
        for level in range(size.shape[1]):
            count = np.uint64(size[graph, level])
            start, at = np.uint64(entry[graph, level]), np.uint64(to_entry[graph, level])
            for j in range(count):
                out_vertex[at + j] = vertex[start + j] + by_node
            if extended:
                for j in range(count):
                    if vertex[start + j] < 0:
                        out_vertex[at + j] = vertex[start + j] - by_node
            if out_distance.size > 0:
                for j in range(count):
                    out_distance[at + j] = distance[start + j]
            if root[level]:
                continue
            start, at = np.uint64(child[graph, level]), np.uint64(to_child[graph, level])
            by_parent = np.int32(parent_shift[graph, level])
            for j in range(count):
                out_parent[at + j] = parent[start + j] + by_parent
            for j in range(count):
                out_edge[at + j] = edge[start + j] + by_edge
            if extended:
                for j in range(count):
                    if edge[start + j] < 0:
                        out_edge[at + j] = edge[start + j]


@dataclass(frozen=True, eq=False, repr=False)
class RaggedTries:
    """The tries of a sequence of graphs as flat tensors; `select` gives the trie of a batch of some of them.

    >>> from pathnn.paths.extract import extract_paths
    >>> edge, path = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> tries = [extract_paths(e, n, collection="sp", k=2) for e, n in [(edge, 2), (path, 3)]]
    >>> ragged = RaggedTries.from_tries(tries)
    >>> ragged
    RaggedTries(graphs=2, collection='sp', k=2, num_paths=8, entries=17, device='cpu')
    >>> ragged.select(torch.tensor([1, 0, 1])).to_paths()[1].tolist()
    [[2, 1, 0], [0, 1, 2], [7, 6, 5], [5, 6, 7]]
    """

    vertex: Tensor  # graph by graph, and level by level of each; ids are counted within the graph
    parent: Tensor
    edge: Tensor
    distance: Tensor | None
    sizes: Tensor  # entries of each graph and level, `[graphs, levels]`, counted through all lengths; on the CPU
    num_nodes: Tensor  # [graphs], on the CPU
    num_edges: Tensor
    collection: Collection
    k: int
    extended: bool = False
    sampled: int | None = None
    directed: bool = False

    @classmethod
    def from_tries(cls, tries: Sequence[PathTrie]) -> RaggedTries:
        """From one trie per graph; all of the same collection, `k` and options."""
        if not tries:
            raise ValueError("no tries: expected at least one, of which collection and k are taken.")
        first = PathOptions.of_trie(tries[0])
        for i, trie in enumerate(tries):
            found = PathOptions.of_trie(trie).difference(first)
            if found or trie.device != tries[0].device:
                found = found or f"device={trie.device} instead of {tries[0].device}"
                raise ValueError(f"trie {i} has {found} (trie 0): expected all alike.")
        size = torch.tensor([[n for levels in trie.sizes for n in levels] for trie in tries])
        nodes, edges = (torch.tensor([getattr(t, name) for t in tries]) for name in ("num_nodes", "num_edges"))
        flat = [torch.cat([getattr(trie, name) for trie in tries]) for name in ("vertex", "parent", "edge")]
        distances = [trie.distance for trie in tries if trie.distance is not None]
        return cls._of(tries[0], (*flat, torch.cat(distances) if distances else None), size, nodes, edges)

    @classmethod
    def from_trie(cls, trie: PathTrie, node_ptr: Tensor, edge_ptr: Tensor) -> RaggedTries:
        """From the trie of a batch: graph `g` has the vertices `node_ptr[g]:node_ptr[g + 1]`, edges alike."""
        node_ptr, edge_ptr = node_ptr.cpu().long(), edge_ptr.cpu().long()
        for name, ptr, total in (("node_ptr", node_ptr, trie.num_nodes), ("edge_ptr", edge_ptr, trie.num_edges)):
            if not ptr.numel() or int(ptr[0]) or int(ptr[-1]) != total or bool((ptr.diff() < 0).any()):
                raise ValueError(f"{name}={ptr.tolist()[:8]}...: expected to rise from 0 to the trie's {total}.")
        here, bounds = trie.cpu(), node_ptr.int()
        levels = [level for one in here.lengths() for level in one.levels]
        size = torch.stack([torch.searchsorted(owner(level.vertex), bounds).diff() for level in levels], dim=1)
        layouts = *_layout(size, trie.k, by_level=True), *_layout(size, trie.k, by_level=False)
        flat = _copied(here, size, layouts, (-_above(size), -node_ptr[:-1], -edge_ptr[:-1]))
        return cls._of(trie, flat, size, node_ptr.diff(), edge_ptr.diff()).to(trie.device)

    @classmethod
    def _of(cls, like: PathTrie, flat: Sequence[Any], size: Tensor, nodes: Tensor, edges: Tensor) -> RaggedTries:
        vertex, parent, edge, distance = flat
        return cls(
            vertex, parent, edge, distance, size, nodes, edges, like.collection, like.k, like.extended, like.sampled,
            like.directed,
        )  # fmt: skip

    def __len__(self) -> int:
        return self.sizes.size(0)

    def __repr__(self) -> str:
        leaf = torch.tensor([t == length for length in range(1, self.k + 1) for t in range(length + 1)])
        return (
            f"RaggedTries(graphs={len(self)}, collection={self.collection!r}, k={self.k}, "
            f"num_paths={int(self.sizes[:, leaf].sum())}, entries={int(self.sizes.sum())}, "
            f"device={str(self.vertex.device)!r})"
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the tries, without the tables."""
        return sum(x.nbytes for name in TENSORS if (x := getattr(self, name)) is not None)

    def to(self, device: torch.device | str) -> RaggedTries:
        """The same on `device`."""
        return replace(self, **{name: x.to(device) for name in TENSORS if (x := getattr(self, name)) is not None})

    @cached_property
    def tables(self) -> Tensor:
        """Number of entries, first entry and first child of each graph and level, `[3, graphs, levels]`."""
        return torch.stack([self.sizes, *_layout(self.sizes, self.k, by_level=False)]).to(self.vertex.device)

    def trie(self) -> PathTrie:
        """The trie of all graphs as one batch."""
        return self.select(torch.arange(len(self)))

    def select(self, index: Tensor) -> PathTrie:
        """The trie of the batch of graphs `index`, in that order; a graph may come more than once."""
        index = index.cpu()
        if self.vertex.device.type != "cpu":
            return self.select_by_index(index)
        size, entry, child = self.tables[:, index]
        shifts = _above(size), _starts(self.num_nodes[index]), _starts(self.num_edges[index])
        return self._trie(_copied(self, size, (entry, child, *_layout(size, self.k, by_level=True)), shifts), index)

    def _trie(self, flat: Flat, index: Tensor) -> PathTrie:
        """The trie of the graphs `index` from its flat tensors."""
        return PathTrie(
            *flat, sizes_of(self.sizes[index].sum(dim=0), self.k), self.collection,
            int(self.num_nodes[index].sum()), int(self.num_edges[index].sum()),
            self.extended, self.sampled, self.directed,
        )  # fmt: skip

    def select_by_index(self, index: Tensor) -> PathTrie:
        """What `select` does on a GPU: sizes are known on the host, so nothing waits for the device."""
        root, totals = root_columns(self.k), self.sizes[index].sum(dim=0)
        starts = torch.stack([index, _starts(self.num_nodes[index]), _starts(self.num_edges[index])])
        at, by_node, by_edge = starts.to(self.vertex.device, non_blocking=True)
        size, entry, child = self.tables[:, at].transpose(1, 2)  # [levels, batch]: the order of the result

        entries = int(totals.sum())
        segment, source = ragged_index(size.reshape(-1), entry.reshape(-1), entries)
        vertex = self.vertex[source]
        shift = by_node.int().expand_as(size).reshape(-1)[segment]
        vertex = torch.where(vertex < 0, vertex - shift, vertex + shift) if self.extended else vertex + shift
        distance = None if self.distance is None else self.distance[source]

        below = size * ~root.to(size.device)[:, None]
        segment, source = ragged_index(below.reshape(-1), child.reshape(-1), entries - int(totals[root].sum()))
        parent = self.parent[source] + _above(size.t()).t().int().reshape(-1)[segment]
        edge = self.edge[source]
        moved = edge + by_edge.int().expand_as(size).reshape(-1)[segment]
        edge = torch.where(edge < 0, edge, moved) if self.extended else moved
        return self._trie((vertex, parent, edge, distance), index)


def _layout(size: Tensor, k: int, *, by_level: bool) -> list[Tensor]:
    """Return the first entry, and the first among those with a parent, per graph and level; batches are `by_level`."""
    tables = size, size * ~root_columns(k)
    if not by_level:
        return [_starts(table.reshape(-1)).view(table.shape) for table in tables]
    return [_starts(table.t().reshape(-1)).view(table.size(1), -1).t() for table in tables]


def _above(size: Tensor) -> Tensor:
    """How many entries of the level above come from the graphs before: what a parent is shifted by in a batch."""
    within = _starts(size.t()).t()
    return torch.cat([torch.zeros_like(within[:, :1]), within[:, :-1]], dim=1)


def ragged_index(size: Tensor, start: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """Lay segments `start[i]:start[i] + size[i]` one after the other; return the segment, and the element, of each."""
    segment = torch.arange(size.numel(), device=size.device).repeat_interleave(size, output_size=total)
    return segment, torch.arange(total, device=size.device) + (start - _starts(size))[segment]


def root_columns(k: int) -> Tensor:
    """Which levels, counted through all lengths, have no parents."""
    return torch.tensor([t == 0 for length in range(1, k + 1) for t in range(length + 1)])


def sizes_of(totals: Tensor, k: int) -> tuple[tuple[int, ...], ...]:
    """`PathTrie.sizes` from entries per level, counted through all lengths."""
    flat = iter(totals.tolist())
    return tuple(tuple(next(flat) for _ in range(length + 1)) for length in range(1, k + 1))


def _starts(size: Tensor) -> Tensor:
    """Exclusive cumulative sum along the last dimension."""
    return size.cumsum(dim=-1) - size
