"""Compare two partitions: whether one refines the other, and the smallest pair that shows it does not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pathnn_reproduction.theory.partitions import Partitions, PathLevels
from pathnn_reproduction.theory.small_graphs import Ints, Universe, name_multisets, name_pairs, name_rows


@dataclass(frozen=True)
class Scope:
    """What is compared: vertices (of one graph, or of any two) or whole graphs; connected ones only, or all.

    Two graphs may be the same one twice; an example is then as large as both together.
    """

    name: str
    vertices: bool
    one_graph: bool = False
    connected: bool = False


SCOPES = (
    Scope("vertices of one connected graph", vertices=True, one_graph=True, connected=True),
    Scope("vertices of one graph", vertices=True, one_graph=True),
    Scope("vertices of two graphs", vertices=True),
    Scope("connected graphs", vertices=False, connected=True),
    Scope("graphs", vertices=False),
)


@dataclass(frozen=True, order=True)
class Example:
    """Two vertices or two graphs, ordered by the number of vertices, then of edges, then by height."""

    size: tuple[int, int]  # vertices and edges of its graph or graphs together
    height: int  # the height of the trees, or length of the paths
    graphs: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]  # one or two: number of vertices, and edges
    vertices: tuple[int, ...] = ()  # counted from 0 in their graphs; none for whole graphs


def smallest_merged(universe: Universe, fine: Partitions, coarse: Partitions, scope: Scope) -> Example | None:
    """Return the smallest pair that `coarse` distinguishes and `fine` does not; None if `fine` refines `coarse`.

    Comparing partitions needs no pairs: `fine` refines `coarse` exactly when the map from its classes to those of
    `coarse` is well defined.

    >>> from pathnn_reproduction.theory.partitions import path_levels, tree_partitions, wl_partitions
    >>> from pathnn_reproduction.theory.small_graphs import small_graphs
    >>> universe = small_graphs(3)
    >>> trees = tree_partitions(universe, path_levels(universe, "sp+", 2))
    >>> smallest_merged(universe, trees, wl_partitions(universe, 2), SCOPES[2])
    Example(size=(6, 5), height=2, graphs=((3, ((0, 1), (0, 2))), (3, ((0, 1), (0, 2), (1, 2)))), vertices=(0, 0))
    """
    return _smallest(_merged_pairs, universe, fine, coarse, scope)


def smallest_split(universe: Universe, known: Partitions, coarse: Partitions, scope: Scope) -> Example | None:
    """Return the smallest pair that `known` distinguishes in every numbering and `coarse` does not.

    A kind of vertex or graph may have several names in `known`, one per numbering (SP); two kinds are distinguished
    when they have none in common.

    >>> from pathnn_reproduction.theory.partitions import path_levels, tree_partitions, wl_partitions
    >>> from pathnn_reproduction.theory.small_graphs import small_graphs
    >>> universe = small_graphs(6)
    >>> trees = tree_partitions(universe, path_levels(universe, "ap", 3))
    >>> smallest_split(universe, trees, wl_partitions(universe, 3), SCOPES[2]).size
    (7, 7)
    """
    return _smallest(_split_pairs, universe, known, coarse, scope)


Pairs = Iterable[tuple[int, int]]


def _smallest(
    find: Callable[[Ints, Ints, Ints], Pairs], universe: Universe, first: Partitions, second: Partitions, scope: Scope
) -> Example | None:
    """Return the smallest of the pairs that `find` yields for the kinds and both names of the things of a scope."""
    graph = universe.graph if scope.vertices else np.arange(len(universe))
    index = np.flatnonzero(universe.connected[graph]) if scope.connected else np.arange(len(graph))
    size = universe.sizes[graph] * 2**20 + universe.edges[graph]  # orders by vertices, then edges, and can be added up
    index = index[np.argsort(size[index], kind="stable")]
    kind, size = (universe.orbit if scope.vertices else universe.kind)[index], size[index]

    def names(partition: Ints) -> Ints:
        if scope.one_graph:
            partition = name_pairs(universe.graph, partition)
        elif not scope.vertices:
            partition = name_multisets(universe.graph, partition, len(universe))
        return partition[index]

    found = []
    for height, (one, other) in enumerate(zip(first, second, strict=True), start=1):
        pairs = find(kind, names(one), names(other))
        best = min(pairs, key=lambda pair: (int(size[pair[0]] + size[pair[1]]), pair), default=None)
        if best is not None:
            found.append(_example(universe, height, index[list(best)], scope))
    return min(found, default=None)


def _merged_pairs(_: Ints, fine: Ints, coarse: Ints) -> Pairs:
    """Pair the smallest thing of each class of `fine` with the smallest that `coarse` separates from it."""
    _, first, which = np.unique(fine, return_index=True, return_inverse=True)
    differs = np.flatnonzero(coarse != coarse[first[which]])
    classes, at = np.unique(which[differs], return_index=True)
    return zip(first[classes].tolist(), differs[at].tolist(), strict=True)


def _split_pairs(kind: Ints, known: Ints, coarse: Ints) -> Pairs:
    """Pair the kinds in each class of `coarse` that have no common name in `known`, as their smallest things."""
    where = name_pairs(coarse, kind)
    _, first, at = np.unique(where, return_index=True, return_inverse=True)
    crowded = np.bincount(coarse[first])[coarse] > 1  # other classes hold one kind: nothing to distinguish
    _, kept = np.unique(name_pairs(where[crowded], known[crowded]), return_index=True)
    kept = np.flatnonzero(crowded)[kept]
    classes: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for label, thing, name in zip(coarse[kept].tolist(), first[at[kept]].tolist(), known[kept].tolist(), strict=True):
        classes[label][thing].add(name)
    for things in classes.values():
        yield from ((min(a, b), max(a, b)) for a, b in combinations(things, 2) if not things[a] & things[b])


def _example(universe: Universe, height: int, places: Ints, scope: Scope) -> Example:
    """Return the example of one or two vertices, or of two graphs, at some places in a universe."""
    graphs = universe.graph[places] if scope.vertices else places
    vertices = tuple((places - universe.first[graphs]).tolist()) if scope.vertices else ()
    graphs = graphs[:1] if scope.one_graph else graphs
    listed = tuple((int(universe.sizes[g]), tuple(universe.edge_list(g))) for g in graphs.tolist())
    return Example((int(universe.sizes[graphs].sum()), int(universe.edges[graphs].sum())), height, listed, vertices)


def smallest_non_walk(universe: Universe, levels: PathLevels) -> Example | None:
    """Return the smallest vertex whose Path-Tree is not part of its WL-tree; None if all are.

    The nodes of a WL-tree are all walks from its root, one node each. So a Path-Tree is part of it exactly when its
    nodes are walks, and no two of them the same; that it is a tree, `path_levels` has made sure of.

    >>> from pathnn_reproduction.theory.partitions import path_levels
    >>> from pathnn_reproduction.theory.small_graphs import small_graphs
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
        found += _smallest_vertex(universe, rows[bad, 0], height)
    return min(found, default=None)


def smallest_missing(universe: Universe, small: PathLevels, large: PathLevels) -> Example | None:
    """Return the smallest vertex with a path in `small` that is not in `large`; None if there is none.

    >>> from pathnn_reproduction.theory.partitions import path_levels
    >>> from pathnn_reproduction.theory.small_graphs import small_graphs
    >>> universe = small_graphs(4)
    >>> shortest, every = (path_levels(universe, c, 3) for c in ("sp+", "ap"))
    >>> smallest_missing(universe, shortest, every) is None, smallest_missing(universe, every, shortest).vertices
    (True, (0,))
    """
    found = []
    for height, (part, whole) in enumerate(zip(small.paths, large.paths, strict=True), start=1):
        names = name_rows(np.concatenate([part, whole]))
        bad = ~np.isin(names[: len(part)], names[len(part) :])
        found += _smallest_vertex(universe, part[bad, 0], height)
    return min(found, default=None)


def _smallest_vertex(universe: Universe, vertices: Ints, height: int) -> list[Example]:
    """Return the vertex that is in the smallest graph, if there is one."""
    graph = universe.graph[vertices]
    order = np.lexsort((vertices, universe.edges[graph], universe.sizes[graph]))
    return [_example(universe, height, vertices[order[:1]], SCOPES[1])] if len(vertices) else []
