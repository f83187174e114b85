"""Lemma 3.2 and the sentence before it, for all vertices at once: which Path-Trees are parts of which trees."""

from __future__ import annotations

import numpy as np

from pathnn.theory.compare import Example
from pathnn.theory.names import Ints, name_rows
from pathnn.theory.partitions import PathLevels
from pathnn.theory.universe import Universe


def smallest_non_walk(universe: Universe, levels: PathLevels) -> Example | None:
    """The smallest vertex whose Path-Tree is not part of its WL-tree; None if all are.

    The nodes of a WL-tree are all walks from its root, one node each. So a Path-Tree is part of it exactly when its
    nodes are walks, and no two of them the same; that it is a tree, `path_levels` has made sure of.

    >>> from pathnn.theory.partitions import path_levels
    >>> from pathnn.theory.universe import small_graphs
    >>> universe = small_graphs(4)
    >>> smallest_non_walk(universe, path_levels(universe, "ap", 3)) is None
    True
    """
    source, target = universe.edge_index.numpy()
    edges = np.sort(source * universe.num_nodes + target)
    found = []
    for height, rows in enumerate(levels.paths, start=1):
        steps = rows[:, :-1] * universe.num_nodes + rows[:, 1:]
        at = np.minimum(np.searchsorted(edges, steps), len(edges) - 1)
        bad = ~(edges[at] == steps).all(axis=1) if len(edges) else np.ones(len(rows), dtype=bool)
        names = name_rows(rows)
        bad |= np.bincount(names, minlength=1)[names] > 1
        found += _examples(universe, rows[bad, 0], height)
    return min(found, default=None)


def smallest_missing(universe: Universe, small: PathLevels, large: PathLevels) -> Example | None:
    """The smallest vertex with a path in `small` that is not in `large`; None if there is none.

    >>> from pathnn.theory.partitions import path_levels
    >>> from pathnn.theory.universe import small_graphs
    >>> universe = small_graphs(4)
    >>> shortest, every = (path_levels(universe, c, 3) for c in ("sp+", "ap"))
    >>> smallest_missing(universe, shortest, every) is None, smallest_missing(universe, every, shortest).vertices
    (True, (0,))
    """
    found = []
    for height, (part, whole) in enumerate(zip(small.paths, large.paths, strict=True), start=1):
        names = name_rows(np.concatenate([part, whole]))
        bad = ~np.isin(names[: len(part)], names[len(part) :])
        found += _examples(universe, part[bad, 0], height)
    return min(found, default=None)


def _examples(universe: Universe, vertices: Ints, height: int) -> list[Example]:
    """Of these vertices, the one in the smallest graph."""
    if not len(vertices):
        return []
    graph = universe.graph[vertices]
    best = np.lexsort((vertices, universe.edges[graph], universe.sizes[graph]))[0]
    v, g = int(vertices[best]), int(graph[best])
    size, edges = int(universe.sizes[g]), tuple(universe.edge_list(g))
    return [Example((size, len(edges)), height, ((size, edges),), (v - int(universe.first[g]),))]
