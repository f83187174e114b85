"""Tries on the CPU: compiled copies of slices, where the tensor form would build an index per entry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from pathnn.paths.ragged import RaggedTries, Segments, root_columns, sizes_of
from pathnn.paths.trie import PathTrie

Ints = NDArray[np.int32]
Table = NDArray[np.int64]


def select_on_cpu(tries: RaggedTries, index: Tensor) -> PathTrie:
    """What `tries.select_by_index(index)` gives, for tries on the CPU; equal to it entry for entry.

    >>> from pathnn.paths.extract import extract_paths
    >>> edge, path = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> each = [extract_paths(e, n, collection="sp", k=2) for e, n in [(edge, 2), (path, 3)]]
    >>> tries, index = RaggedTries.from_tries(each), torch.tensor([1, 0, 1])
    >>> select_on_cpu(tries, index).equal(tries.select_by_index(index))
    True
    """
    host, root = tries.host, root_columns(tries.k)
    size = host.size[index]
    nodes, edges = host.num_nodes[index], host.num_edges[index]
    children = size * ~root
    to = _Places(
        entry=_starts(size.t()).t(),
        child=_starts(children.t()).t(),
        parent=_above(size, root),
        node=_starts(nodes),
        edge=_starts(edges),
    )
    flat = _copied(tries, index, size, to)
    totals = sizes_of(size.sum(dim=0), tries.k)
    counts = (int(nodes.sum()), int(edges.sum()))
    return PathTrie(*flat, totals, tries.collection, *counts, tries.extended, tries.sampled)


def by_graph(tries: RaggedTries) -> RaggedTries:
    """The same tries laid out graph by graph, not level by level: a batch then reads few places."""
    host, root = tries.host, root_columns(tries.k)
    zero = torch.zeros_like(host.num_nodes)
    to = _Places(
        entry=_starts(host.size),
        child=_starts(host.size * ~root),
        parent=torch.zeros_like(host.size),
        node=zero,
        edge=zero,
    )
    vertex, parent, edge, distance = _copied(tries, torch.arange(len(tries)), host.size, to)
    moved = Segments(
        size=host.size.contiguous(),
        entry=to.entry,
        child=to.child,
        parent=to.parent,
        num_nodes=host.num_nodes,
        num_edges=host.num_edges,
        first_node=zero,
        first_edge=zero,
    )
    return replace(tries, vertex=vertex, parent=parent, edge=edge, distance=distance, host=moved, here=moved)


class _Places:
    """Where each graph's entries of each level go, `[graphs, levels]`, and how its ids are counted there."""

    def __init__(self, entry: Tensor, child: Tensor, parent: Tensor, node: Tensor, edge: Tensor) -> None:
        self.entry, self.child, self.parent, self.node, self.edge = entry, child, parent, node, edge


def _copied(tries: RaggedTries, index: Tensor, size: Tensor, to: _Places) -> tuple[Any, Any, Any, Any]:
    """Vertex, parent, edge and distance of the graphs `index`, at their new places with their new numbers."""
    host, root = tries.host, root_columns(tries.k)
    entries, children = int(size.sum()), int((size * ~root).sum())
    vertex, parent, edge = (torch.empty(n, dtype=torch.int32) for n in (entries, children, children))
    distance = None if tries.distance is None else torch.empty(entries, dtype=torch.int32)
    tables = (
        size,
        host.entry[index],
        host.child[index],
        to.entry,
        to.child,
        to.parent - host.parent[index],
        (to.node - host.first_node[index])[:, None],
        (to.edge - host.first_edge[index])[:, None],
    )
    none = np.empty(0, dtype=np.int32)
    _copy(
        root.numpy(),
        tries.extended,
        *(table.contiguous().numpy() for table in tables),
        *(tensor.numpy() for tensor in (tries.vertex, tries.parent, tries.edge)),
        none if tries.distance is None else tries.distance.numpy(),
        *(tensor.numpy() for tensor in (vertex, parent, edge)),
        none if distance is None else distance.numpy(),
    )
    return vertex, parent, edge, distance


def _starts(size: Tensor) -> Tensor:
    """Where the entries of each cell of a table begin when they are laid out row by row."""
    flat = size.reshape(-1)
    return (flat.cumsum(dim=0) - flat).view(size.shape)


def _above(size: Tensor, root: Tensor) -> Tensor:
    """For each graph and level, where its parents begin in the level above."""
    within = size.cumsum(dim=0) - size
    return torch.cat([torch.zeros_like(within[:, :1]), within[:, :-1]], dim=1) * ~root


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
