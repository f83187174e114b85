"""Whether a test tells two graphs apart: the multisets of what it knows about their vertices differ."""

from __future__ import annotations

from collections.abc import Iterable

from pathnn.paths.options import Collection
from pathnn.theory.annotated import annotated_path_sets
from pathnn.theory.colors import ColorTable
from pathnn.theory.graphs import Graph
from pathnn.theory.path_trees import path_trees
from pathnn.theory.wl import wl_colors


def wl_distinguishes(first: Graph, second: Graph, rounds: int | None = None) -> bool:
    """Whether 1-WL tells two graphs apart, within `rounds` rounds or at all.

    >>> from pathnn.theory.examples import hexagon, two_triangles
    >>> wl_distinguishes(hexagon(), two_triangles())
    False
    """
    table = ColorTable()
    rounds = max(first[1], second[1]) if rounds is None else rounds
    return _differ(*(wl_colors(*graph, rounds, table=table)[-1] for graph in (first, second)))


def path_trees_distinguish(first: Graph, second: Graph, *, collection: Collection, k: int) -> bool:
    """Whether the shapes of all Path-Trees of height `k` tell two graphs apart.

    >>> from pathnn.theory.examples import hexagon, two_triangles
    >>> [path_trees_distinguish(hexagon(), two_triangles(), collection="ap", k=k) for k in (2, 3)]
    [False, True]
    """
    table = ColorTable()
    trees = [path_trees(*graph, collection=collection, k=k) for graph in (first, second)]
    return _differ(*([tree.color(table) for tree in side] for side in trees))


def paths_distinguish(
    first: Graph,
    second: Graph,
    *,
    collection: Collection,
    k: int,
    residual: bool = False,
    extend: bool = False,
    distances: bool = False,
) -> bool:
    """Whether annotated path sets of level `k` tell two graphs apart; the options are `annotated_path_sets`'.

    >>> from pathnn.theory.examples import hexagon, two_triangles
    >>> paths_distinguish(hexagon(), two_triangles(), collection="ap", k=2)
    False
    >>> paths_distinguish(hexagon(), two_triangles(), collection="ap", k=2, distances=True)
    True
    """
    annotations = annotated_path_sets(
        [first, second], collection=collection, k=k, residual=residual, extend=extend, distances=distances
    )
    return _differ(*(levels[-1] for levels in annotations))


def _differ(first: Iterable[int], second: Iterable[int]) -> bool:
    return sorted(first) != sorted(second)
