"""Compute the WL-trees, Path-Trees and annotated path sets of all vertices, at all heights at once.

They are computed by sorting arrays: exact, and fast enough for all graphs with seven vertices. A partition is an array
with one name per vertex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathnn.paths.extract import extract_paths, list_paths
from pathnn.paths.options import Collection
from pathnn.paths.trie import DUMMY
from pathnn_reproduction.theory.small_graphs import LARGEST, Ints, Universe, distance_table, name_multisets, name_pairs

Partitions = list[Ints]
"""One array of names for each height 1, 2, ...: vertices with equal names are alike."""


@dataclass(frozen=True)
class PathLevels:
    """The paths of a universe by length, as the nodes of its Path-Trees.

    `shown` is what a token shows besides its vertex: 0, or its distance to the source; a dummy has its own symbol.
    """

    paths: list[Ints]  # [n, length + 1]: vertices from the source on; -1 is a dummy token
    parent: list[Ints]  # [n]: the row of the path without its last vertex among those one shorter
    shown: list[Ints]  # [n, length + 1]


def path_levels(
    universe: Universe, collection: Collection, height: int, *, extend: bool = False, distances: bool = False
) -> PathLevels:
    """Return the paths of length 1 to `height` of all graphs.

    >>> from pathnn_reproduction.theory.small_graphs import small_graphs
    >>> [len(rows) for rows in path_levels(small_graphs(3), "ap", 2).paths]
    [14, 8]
    """
    graph = universe.edge_index, universe.num_nodes
    if extend:
        trie = extract_paths(*graph, collection=collection, k=height, extend=True, max_paths=None)
        found = trie.to_paths()
    else:
        found = list_paths(*graph, collection=collection, k=height, max_paths=None)
    paths = [rows.numpy().astype(np.int64) for rows in found]
    table = distance_table(universe) if distances else None
    return PathLevels(paths, _parents(paths, universe.num_nodes), [_shown(rows, universe, table) for rows in paths])


def _parents(paths: list[Ints], num_nodes: int) -> list[Ints]:
    """Return the row of the parent of each path; raise if it is missing."""
    parents: list[Ints] = []
    known: list[tuple[Ints, Ints]] = []  # per length, the sorted keys (parent, last vertex) and their rows
    for rows in paths:
        parent = rows[:, 0]
        for column, (keys, order) in enumerate(known, start=1):
            wanted = parent * (num_nodes + 1) + rows[:, column] + 1
            at = np.searchsorted(keys, wanted)
            if not np.array_equal(keys[np.minimum(at, len(keys) - 1)], wanted):
                raise ValueError("a path is in the collection and its beginning is not: it has no Path-Tree.")
            parent = order[at]
        parents.append(parent)
        key = parent * (num_nodes + 1) + rows[:, -1] + 1
        order = np.argsort(key)
        known.append((key[order], order))
    return parents


def _shown(rows: Ints, universe: Universe, table: NDArray[np.int64] | None) -> Ints:
    dummy = rows == DUMMY
    if table is None:
        return np.where(dummy, LARGEST + 1, 0)
    source = rows[:, :1]
    local = np.where(dummy, 0, rows - universe.first[universe.graph[source]])
    return np.where(dummy, LARGEST + 1, table[source, local])


def wl_partitions(universe: Universe, height: int) -> Partitions:
    """Return the partitions by isomorphic WL-trees of height 1, ..., `height`.

    >>> from pathnn_reproduction.theory.small_graphs import small_graphs
    >>> [int(names.max()) + 1 for names in wl_partitions(small_graphs(4), 3)]
    [4, 13, 15]
    """
    source, target = universe.edge_index.numpy()
    names = np.zeros(universe.num_nodes, dtype=np.int64)
    result = []
    for _ in range(height):
        names = name_multisets(source, names[target], universe.num_nodes)
        result.append(names)
    return result


def tree_partitions(universe: Universe, levels: PathLevels, *, residual: bool = False) -> Partitions:
    """Return the partitions by isomorphic Path-Trees, one per height; their nodes show what the tokens do.

    With `residual`, the trees of all lower heights must be isomorphic too.

    >>> from pathnn_reproduction.theory.small_graphs import small_graphs
    >>> universe = small_graphs(4)
    >>> [int(names.max()) + 1 for names in tree_partitions(universe, path_levels(universe, "ap", 3))]
    [4, 13, 16]
    """
    counts = [universe.num_nodes, *map(len, levels.paths)]
    marks = [np.zeros(universe.num_nodes, dtype=np.int64), *(shown[:, -1] for shown in levels.shown)]
    below = marks  # per level, the subtrees of its nodes, cut off after 0, 1, ... further levels
    result: Partitions = []
    for _ in levels.paths:
        deeper = []
        for level in range(len(below) - 1):
            children = name_multisets(levels.parent[level], below[level + 1], counts[level])
            deeper.append(name_pairs(marks[level], children))
        below = deeper
        result.append(name_pairs(result[-1], below[0]) if residual and result else below[0])
    return result


def annotated_partitions(universe: Universe, levels: PathLevels, *, residual: bool = False) -> Partitions:
    """Return the partitions by equal annotated path sets, one per length of the paths.

    With `residual`, an annotation also holds the vertex's own of the level before, as the model's `h + sum` does.

    >>> from pathnn_reproduction.theory.small_graphs import small_graphs
    >>> universe = small_graphs(4)
    >>> [int(names.max()) + 1 for names in annotated_partitions(universe, path_levels(universe, "ap", 3))]
    [4, 12, 8]
    """
    before = np.zeros(universe.num_nodes, dtype=np.int64)
    result = []
    for rows, shown in zip(levels.paths, levels.shown, strict=True):
        dummy = int(before.max()) + 1
        sequences = np.zeros(len(rows), dtype=np.int64)
        for vertex, token in zip(rows.T, shown.T, strict=True):
            annotation = np.where(vertex == DUMMY, dummy, before[vertex])
            sequences = name_pairs(sequences, name_pairs(annotation, token))
        sets = name_multisets(rows[:, 0], sequences, universe.num_nodes)
        before = name_pairs(before, sets) if residual else sets
        result.append(before)
    return result
