"""Tries of many graphs as flat tensors, and batches of them on a CPU and a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from pathnn.paths.options import Collection
from pathnn.paths.trie import PathTrie, owner

Ints = NDArray[np.int32]
Table = NDArray[np.int64]


def by_graph(tries: RaggedTries) -> RaggedTries:
    """The same tries, on the CPU, laid out graph by graph, not level by level: a batch then reads few places."""
    old = tries.segments
    to = Segments.graph_by_graph(old.size.contiguous(), old.num_nodes, old.num_edges, tries.k)
    vertex, parent, edge, distance = _copied(tries, torch.arange(len(tries)), to)
    return replace(tries, vertex=vertex, parent=parent, edge=edge, distance=distance, segments=to, device_segments=to)


def cat_tries(parts: Sequence[RaggedTries]) -> RaggedTries:
    """Concatenate the tries of several sequences of graphs, all with the same options."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        raise ValueError("no tries: expected at least one graph.")
    entry = child = 0
    moved = []
    for part in parts:
        moved.append(replace(part.segments, entry=part.segments.entry + entry, child=part.segments.child + child))
        entry, child = entry + part.vertex.numel(), child + part.parent.numel()
    segments = Segments(*(torch.cat([getattr(each, field.name) for each in moved]) for field in fields(Segments)))
    distances = [part.distance for part in parts if part.distance is not None]
    return replace(
        parts[0],
        vertex=torch.cat([part.vertex for part in parts]),
        parent=torch.cat([part.parent for part in parts]),
        edge=torch.cat([part.edge for part in parts]),
        distance=torch.cat(distances) if distances else None,
        segments=segments,
        device_segments=segments.to(parts[0].vertex.device),
    )


def _copied(tries: RaggedTries, index: Tensor, to: Segments) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Vertex, parent, edge and distance of the graphs `index`, at the places and with the numbers of `to`."""
    old, root = tries.segments, root_columns(tries.k)
    entries, children = int(to.size.sum()), int((to.size * ~root).sum())
    vertex, parent, edge = (torch.empty(n, dtype=torch.int32) for n in (entries, children, children))
    distance = torch.empty(0 if tries.distance is None else entries, dtype=torch.int32)
    tables = (
        to.size,
        old.entry[index],
        old.child[index],
        to.entry,
        to.child,
        to.parent - old.parent[index],
        (to.first_node - old.first_node[index])[:, None],
        (to.first_edge - old.first_edge[index])[:, None],
    )
    flat = (tries.vertex, tries.parent, tries.edge, distance[:0] if tries.distance is None else tries.distance)
    _copy(
        root.numpy(),
        tries.extended,
        *(table.contiguous().numpy() for table in tables),
        *(tensor.numpy() for tensor in (*flat, vertex, parent, edge, distance)),
    )
    return vertex, parent, edge, None if tries.distance is None else distance


@njit(cache=True, nogil=True)
def _copy(
    root: NDArray[np.bool_],
    extended: bool,
    size: Table,
    entry: Table,
    child: Table,
    to_entry: Table,
    to_child: Table,
    parent_shift: Table,
    node_shift: Table,
    edge_shift: Table,
    vertex: Ints,
    parent: Ints,
    edge: Ints,
    distance: Ints,
    out_vertex: Ints,
    out_parent: Ints,
    out_edge: Ints,
    out_distance: Ints,
) -> None:
    """Copy every slice, shifting vertices, edges and parents; only extended tries have dummies (below 0).

    Offsets are unsigned: signed ones might be negative, so they would be checked, and the loops not vectorised.
    """
    for graph in range(size.shape[0]):
        by_node, by_edge = np.int32(node_shift[graph, 0]), np.int32(edge_shift[graph, 0])
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


@dataclass(frozen=True, eq=False)
class Segments:
    """Where the entries of each graph and level lie in flat tensors; all int64, on the CPU and again on the device.

    A level is counted through all lengths: 0 and 1 of length 1, then 0, 1 and 2 of length 2, and so on.
    """

    size: Tensor  # [graphs, levels]
    entry: Tensor  # [graphs, levels]: first entry among all entries
    child: Tensor  # [graphs, levels]: first entry among those that have a parent
    parent: Tensor  # [graphs, levels]: what to subtract from a stored parent
    num_nodes: Tensor  # [graphs]
    num_edges: Tensor  # [graphs]
    first_node: Tensor  # [graphs]: what to subtract from a stored vertex
    first_edge: Tensor  # [graphs]: what to subtract from a stored edge

    @classmethod
    def graph_by_graph(cls, size: Tensor, num_nodes: Tensor, num_edges: Tensor, k: int) -> Segments:
        """Of tries that lie one after the other, with ids counted within each graph."""
        child = size * ~root_columns(k)
        nothing = torch.zeros_like(num_nodes)
        return cls(
            size=size,
            entry=_starts(size.reshape(-1)).view(size.shape),
            child=_starts(child.reshape(-1)).view(size.shape),
            parent=torch.zeros_like(size),
            num_nodes=num_nodes,
            num_edges=num_edges,
            first_node=nothing,
            first_edge=nothing,
        )

    @classmethod
    def level_by_level(cls, size: Tensor, num_nodes: Tensor, num_edges: Tensor, k: int) -> Segments:
        """Of the trie of a batch, with ids counted through all its graphs."""
        inner = ~root_columns(k)
        within = _starts(size.t()).t()
        return cls(
            size=size,
            entry=_starts(size.t().reshape(-1)).view(size.size(1), -1).t(),
            child=_starts((size * inner).t().reshape(-1)).view(size.size(1), -1).t(),
            parent=torch.cat([torch.zeros_like(within[:, :1]), within[:, :-1]], dim=1) * inner,
            num_nodes=num_nodes,
            num_edges=num_edges,
            first_node=_starts(num_nodes),
            first_edge=_starts(num_edges),
        )

    def to(self, device: torch.device) -> Segments:
        """The same on `device`."""
        return Segments(*(getattr(self, field.name).to(device) for field in fields(self)))


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

    vertex: Tensor
    parent: Tensor
    edge: Tensor
    distance: Tensor | None
    segments: Segments
    device_segments: Segments
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
        _check_alike(tries)
        first = tries[0]
        size = torch.tensor([[n for levels in trie.sizes for n in levels] for trie in tries])
        nodes, edges = (torch.tensor([getattr(t, name) for t in tries]) for name in ("num_nodes", "num_edges"))
        segments = Segments.graph_by_graph(size, nodes, edges, first.k)
        distance = None if first.distance is None else torch.cat([t.distance for t in tries if t.distance is not None])
        flat = [torch.cat([getattr(trie, name) for trie in tries]) for name in ("vertex", "parent", "edge")]
        return cls._of(first, flat, distance, segments)

    @classmethod
    def from_trie(cls, trie: PathTrie, node_ptr: Tensor, edge_ptr: Tensor) -> RaggedTries:
        """From the trie of a batch: graph `g` has the vertices `node_ptr[g]:node_ptr[g + 1]`, edges alike."""
        node_ptr, edge_ptr = node_ptr.cpu().long(), edge_ptr.cpu().long()
        for name, ptr, total in (("node_ptr", node_ptr, trie.num_nodes), ("edge_ptr", edge_ptr, trie.num_edges)):
            if not ptr.numel() or int(ptr[0]) or int(ptr[-1]) != total or bool((ptr.diff() < 0).any()):
                raise ValueError(f"{name}={ptr.tolist()[:8]}...: expected to rise from 0 to the trie's {total}.")
        bounds = node_ptr.to(trie.device, torch.int32)
        sizes = [
            torch.searchsorted(owner(level.vertex), bounds).diff() for one in trie.lengths() for level in one.levels
        ]
        size = torch.stack(sizes, dim=1).cpu()
        segments = Segments.level_by_level(size, node_ptr.diff(), edge_ptr.diff(), trie.k)
        return cls._of(trie, [trie.vertex, trie.parent, trie.edge], trie.distance, segments)

    @classmethod
    def _of(cls, like: PathTrie, flat: list[Tensor], distance: Tensor | None, segments: Segments) -> RaggedTries:
        here = segments.to(like.device)
        return cls(
            flat[0], flat[1], flat[2], distance, segments, here, like.collection, like.k, like.extended, like.sampled,
            like.directed,
        )  # fmt: skip

    def __len__(self) -> int:
        return self.segments.size.size(0)

    def __repr__(self) -> str:
        leaf = torch.tensor([t == length for length in range(1, self.k + 1) for t in range(length + 1)])
        return (
            f"RaggedTries(graphs={len(self)}, collection={self.collection!r}, k={self.k}, "
            f"num_paths={int(self.segments.size[:, leaf].sum())}, entries={int(self.segments.size.sum())}, "
            f"device={str(self.vertex.device)!r})"
        )

    @property
    def sizes(self) -> Tensor:
        """Entries per graph and level, `[graphs, levels]`, on the CPU."""
        return self.segments.size

    @property
    def nbytes(self) -> int:
        """Bytes of the tries, without the tables."""
        flat = [x for x in (self.vertex, self.parent, self.edge, self.distance) if x is not None]
        return sum(x.numel() * x.element_size() for x in flat)

    def to(self, device: torch.device | str) -> RaggedTries:
        """The same on `device`."""
        device = torch.device(device)
        return replace(
            self,
            vertex=self.vertex.to(device),
            parent=self.parent.to(device),
            edge=self.edge.to(device),
            distance=None if self.distance is None else self.distance.to(device),
            device_segments=self.segments.to(device),
        )

    def trie(self) -> PathTrie:
        """The trie of all graphs as one batch."""
        return self.select(torch.arange(len(self)))

    def select(self, index: Tensor) -> PathTrie:
        """The trie of the batch of graphs `index`, in that order; a graph may come more than once."""
        index = index.cpu()
        if self.vertex.device.type != "cpu":
            return self.select_by_index(index)
        old = self.segments
        to = Segments.level_by_level(old.size[index], old.num_nodes[index], old.num_edges[index], self.k)
        vertex, parent, edge, distance = _copied(self, index, to)
        return self._trie(vertex, parent, edge, distance, index)

    def _trie(self, vertex: Tensor, parent: Tensor, edge: Tensor, distance: Tensor | None, index: Tensor) -> PathTrie:
        """The trie of the graphs `index` from its flat tensors."""
        chosen = self.segments
        return PathTrie(
            vertex, parent, edge, distance, sizes_of(chosen.size[index].sum(dim=0), self.k), self.collection,
            int(chosen.num_nodes[index].sum()), int(chosen.num_edges[index].sum()),
            self.extended, self.sampled, self.directed,
        )  # fmt: skip

    def select_by_index(self, index: Tensor) -> PathTrie:
        """What `select` does on a GPU: sizes are known on the host, so nothing waits for the device."""
        size = self.segments.size[index]  # [batch, levels]
        root = root_columns(self.k)
        totals = size.sum(dim=0)
        here, at = self.device_segments, index.to(self.vertex.device, non_blocking=True)
        device_size = here.size[at].t().contiguous()  # [levels, batch]: the order of the result
        node_shift = _starts(here.num_nodes[at]) - here.first_node[at]
        edge_shift = _starts(here.num_edges[at]) - here.first_edge[at]
        above = _starts(device_size)
        parent_shift = torch.cat([above[:1], above[:-1]]) - here.parent[at].t()

        entries = int(totals.sum())
        segment, source = ragged_index(device_size.view(-1), here.entry[at].t().reshape(-1), entries)
        vertex = self.vertex[source]
        shift = node_shift.int().expand_as(device_size).reshape(-1)[segment]
        vertex = torch.where(vertex < 0, vertex - shift, vertex + shift) if self.extended else vertex + shift
        distance = None if self.distance is None else self.distance[source]

        below = device_size * ~root.to(device_size.device)[:, None]
        segment, source = ragged_index(
            below.view(-1), here.child[at].t().reshape(-1), entries - int(totals[root].sum())
        )
        parent = self.parent[source] + parent_shift.int().reshape(-1)[segment]
        edge = self.edge[source]
        moved = edge + edge_shift.int().expand_as(device_size).reshape(-1)[segment]
        edge = torch.where(edge < 0, edge, moved) if self.extended else moved
        return self._trie(vertex, parent, edge, distance, index)


def ragged_index(size: Tensor, start: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """For segments `start[i]:start[i] + size[i]` laid out one after the other: which segment, and which element.

    >>> ragged_index(torch.tensor([2, 0, 1]), torch.tensor([5, 9, 1]), 3)
    (tensor([0, 0, 2]), tensor([5, 6, 1]))
    """
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


def _check_alike(tries: Sequence[PathTrie]) -> None:
    first = tries[0]
    for i, trie in enumerate(tries):
        for name in ("collection", "k", "extended", "sampled", "directed", "device"):
            mine, other = getattr(trie, name), getattr(first, name)
            if mine != other:
                raise ValueError(f"trie {i} has {name}={mine!r}, trie 0 has {other!r}: expected all alike.")
        if (trie.distance is None) != (first.distance is None):
            raise ValueError(f"trie {i} and trie 0 differ in whether they carry distances: expected all alike.")
