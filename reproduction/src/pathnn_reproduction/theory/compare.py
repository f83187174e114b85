"""Compare two partitions: whether one refines the other, and the smallest pair that shows it does not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
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
    """Two vertices or two graphs; the order of examples is: fewest vertices, then fewest edges, then smallest height.

    Attributes:
        size: number of vertices and of edges of its graph or graphs together.
        height: the height, or length of paths, that it is about.
        graphs: one graph or two, each as its number of vertices and its edges.
        vertices: the two vertices, counted from 0 in their graphs; empty when it is about whole graphs.
    """

    size: tuple[int, int]
    height: int
    graphs: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    vertices: tuple[int, ...] = ()


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
    view = _View.of(universe, scope)
    found = []
    for height, (alike, apart) in enumerate(zip(fine, coarse, strict=True), start=1):
        pair = _merged_pair(view, view.names(alike), view.names(apart))
        found += [] if pair is None else [_example(universe, pair, height, scope)]
    return min(found, default=None)


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
    view = _View.of(universe, scope)
    found = []
    for height, (apart, alike) in enumerate(zip(known, coarse, strict=True), start=1):
        pair = _split_pair(view, view.names(apart), view.names(alike))
        found += [] if pair is None else [_example(universe, pair, height, scope)]
    return min(found, default=None)


@dataclass(frozen=True)
class _View:
    """The vertices or graphs of a scope, the smallest first; `index` is their place in the universe."""

    universe: Universe
    scope: Scope
    index: Ints
    kind: Ints
    size: Ints  # of the graph: one integer that orders by vertices, then edges, and can be added up

    @classmethod
    def of(cls, universe: Universe, scope: Scope) -> _View:
        graph = universe.graph if scope.vertices else np.arange(len(universe))
        kept = np.flatnonzero(universe.connected[graph]) if scope.connected else np.arange(len(graph))
        size = universe.sizes[graph[kept]] * 2**20 + universe.edges[graph[kept]]
        order = np.argsort(size, kind="stable")
        kind = universe.orbit if scope.vertices else universe.kind
        return cls(universe, scope, kept[order], kind[kept[order]], size[order])

    def names(self, partition: Ints) -> Ints:
        if self.scope.one_graph:
            partition = name_pairs(self.universe.graph, partition)
        elif not self.scope.vertices:
            partition = name_multisets(self.universe.graph, partition, len(self.universe))
        return partition[self.index]


def _merged_pair(view: _View, fine: Ints, coarse: Ints) -> tuple[int, int] | None:
    """Compare the smallest thing of each class of `fine` with the smallest that `coarse` separates from it."""
    _, first, which = np.unique(fine, return_index=True, return_inverse=True)
    differs = np.flatnonzero(coarse != coarse[first[which]])
    classes, at = np.unique(which[differs], return_index=True)
    return _best(view, zip(first[classes].tolist(), differs[at].tolist(), strict=True))


def _split_pair(view: _View, known: Ints, coarse: Ints) -> tuple[int, int] | None:
    """Return the smallest two kinds in a class of `coarse` without a common name in `known`."""
    where = name_pairs(coarse, view.kind)
    _, first, at = np.unique(where, return_index=True, return_inverse=True)
    crowded = np.bincount(coarse[first])[coarse] > 1  # other classes hold one kind: nothing to distinguish
    _, kept = np.unique(name_pairs(where[crowded], known[crowded]), return_index=True)
    kept = np.flatnonzero(crowded)[kept]
    classes: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for label, kind, name in zip(coarse[kept].tolist(), first[at[kept]].tolist(), known[kept].tolist(), strict=True):
        classes[label][kind].add(name)
    apart = (
        (min(a, b), max(a, b))
        for kinds in classes.values()
        for a, b in combinations(kinds, 2)
        if not kinds[a] & kinds[b]
    )
    return _best(view, apart)


def _best(view: _View, pairs: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the pair with the fewest vertices, then edges, as positions in the universe."""
    size = view.size
    best = min(pairs, key=lambda pair: (int(size[pair[0]] + size[pair[1]]), pair), default=None)
    return None if best is None else (int(view.index[best[0]]), int(view.index[best[1]]))


def _example(universe: Universe, pair: tuple[int, int], height: int, scope: Scope) -> Example:
    places = [int(universe.graph[x]) for x in pair] if scope.vertices else list(pair)
    graphs = places[:1] if scope.one_graph else places
    return Example(
        size=(int(universe.sizes[graphs].sum()), int(universe.edges[graphs].sum())),
        height=height,
        graphs=tuple((int(universe.sizes[g]), tuple(universe.edge_list(g))) for g in graphs),
        vertices=tuple(x - int(universe.first[g]) for x, g in zip(pair, places, strict=True)) if scope.vertices else (),
    )


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
        found += _examples(universe, rows[bad, 0], height)
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
        found += _examples(universe, part[bad, 0], height)
    return min(found, default=None)


def _examples(universe: Universe, vertices: Ints, height: int) -> list[Example]:
    """Return the vertex that is in the smallest graph."""
    if not len(vertices):
        return []
    graph = universe.graph[vertices]
    best = np.lexsort((vertices, universe.edges[graph], universe.sizes[graph]))[0]
    v, g = int(vertices[best]), int(graph[best])
    size, edges = int(universe.sizes[g]), tuple(universe.edge_list(g))
    return [Example((size, len(edges)), height, ((size, edges),), (v - int(universe.first[g]),))]
