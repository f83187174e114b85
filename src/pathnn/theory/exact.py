"""Exact tests for small graphs: 1-WL colours, annotated path sets, and which graphs they distinguish."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from torch import Tensor

from pathnn.paths.options import Collection, check_collection, check_k
from pathnn.paths.trie import DUMMY, Path
from pathnn.theory.graphs import Graph, check_height, distances_from, neighbors, paths_by_length
from pathnn.theory.trees import ColorTable, path_trees


def wl_colors(
    edge_index: Tensor,
    num_nodes: int,
    rounds: int | None = None,
    *,
    initial: Sequence[Hashable] | None = None,
    table: ColorTable | None = None,
) -> list[tuple[int, ...]]:
    """Compute the 1-WL colours of all vertices after 0, 1, ..., `rounds` rounds.

    Two vertices have the same colour after k rounds if and only if their WL-trees of height k are isomorphic. Compare
    only colours of the same round and the same `table`. `initial` has the initial labels of the vertices (by default
    all equal). `rounds=None` means `num_nodes` rounds, after which nothing changes.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> wl_colors(edges_to_index([(0, 1), (1, 2), (2, 3)]), 4, rounds=2)
    [(0, 0, 0, 0), (1, 2, 2, 1), (3, 4, 4, 3)]
    """
    adjacent = neighbors(edge_index, num_nodes)
    rounds = num_nodes if rounds is None else check_height("rounds", rounds)
    table = ColorTable() if table is None else table
    colors = initial_colors(num_nodes, initial, table)
    history = [colors]
    for _ in range(rounds):
        colors = tuple(
            table.color(("wl", colors[v], tuple(sorted(colors[u] for u in adjacent[v])))) for v in range(num_nodes)
        )
        history.append(colors)
    return history


def initial_colors(num_nodes: int, labels: Sequence[Hashable] | None, table: ColorTable) -> tuple[int, ...]:
    """Return the colours of the labels, or the same colour for all vertices."""
    if labels is None:
        return (table.color("initial"),) * num_nodes
    if len(labels) != num_nodes:
        raise ValueError(f"initial has {len(labels)} labels: expected one per vertex, num_nodes={num_nodes}.")
    return tuple(table.color(("label", label)) for label in labels)


Token = Callable[[Path, int], Hashable]
"""The part of a token at a position of a path besides the annotation of the vertex."""


def annotated_path_sets(
    graphs: Sequence[Graph],
    *,
    collection: Collection,
    k: int,
    residual: bool = False,
    extend: bool = False,
    distances: bool = False,
    initial: Sequence[Sequence[Hashable]] | None = None,
    table: ColorTable | None = None,
) -> list[list[tuple[int, ...]]]:
    """Compute the annotations of all vertices at levels 0..k: `result[graph][level][vertex]`, comparable per level.

    The annotation of v at level l is the multiset, over all paths of length l from v, of the sequences of the
    level l - 1 annotations of their vertices. At level 0 all are equal, or the labels in `initial`.

    Args:
        graphs: `(edge_index, num_nodes)` pairs.
        collection: `"sp"`, `"sp+"` or `"ap"`.
        k: the largest path length, in edges.
        residual: an annotation includes that of the same vertex at the previous level, as `h + sum` in the model.
        extend: extend paths that no other continues by dummy tokens, as in the proof of theorem 3.5.
        distances: each token includes its distance to the source.
        initial: initial labels, per graph and vertex.
        table: a table of colours to share with other calls; by default a new one.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> path, triangle = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
    >>> graphs = [(edges_to_index(edges), 3) for edges in (path, triangle)]
    >>> [levels[1] for levels in annotated_path_sets(graphs, collection="sp+", k=2)]
    [(3, 4, 3), (4, 4, 4)]
    """
    check_collection(collection)
    check_k(k)
    if initial is not None and len(initial) != len(graphs):
        raise ValueError(f"initial has labels for {len(initial)} graphs: expected {len(graphs)}, one per graph.")
    table = ColorTable() if table is None else table
    labels = [None] * len(graphs) if initial is None else initial
    results = []
    for (edge_index, num_nodes), start in zip(graphs, labels, strict=True):
        by_length = paths_by_length(edge_index, num_nodes, collection=collection, k=k, extend=extend)
        token = _distance_token(neighbors(edge_index, num_nodes)) if distances else _plain_token
        levels = [initial_colors(num_nodes, start, table)]
        for paths in by_length:
            levels.append(_annotate(paths, levels[-1], token, residual, table))
        results.append(levels)
    return results


def _annotate(
    paths: Sequence[Path], before: tuple[int, ...], token: Token, residual: bool, table: ColorTable
) -> tuple[int, ...]:
    """Compute one level from the paths of one length and the annotations of the previous level."""
    dummy = table.color("dummy")
    seen: list[list[int]] = [[] for _ in before]
    for path in paths:
        sequence = tuple(
            (dummy if vertex == DUMMY else before[vertex], token(path, position))
            for position, vertex in enumerate(path)
        )
        seen[path[0]].append(table.color(("path", sequence)))
    return tuple(
        table.color(("paths", before[v] if residual else None, tuple(sorted(multiset))))
        for v, multiset in enumerate(seen)
    )


def _plain_token(path: Path, position: int) -> None:
    return None


def _distance_token(adjacent: list[tuple[int, ...]]) -> Token:
    distance = [distances_from(adjacent, source) for source in range(len(adjacent))]

    def token(path: Path, position: int) -> int | None:
        return None if path[position] == DUMMY else distance[path[0]][path[position]]

    return token


def wl_distinguishes(first: Graph, second: Graph, rounds: int | None = None) -> bool:
    """Return whether 1-WL distinguishes two graphs, within `rounds` rounds or at all.

    >>> from pathnn.theory.examples import hexagon, two_triangles
    >>> wl_distinguishes(hexagon(), two_triangles())
    False
    """
    table = ColorTable()
    rounds = max(first[1], second[1]) if rounds is None else rounds
    return _differ(*(wl_colors(*graph, rounds, table=table)[-1] for graph in (first, second)))


def path_trees_distinguish(first: Graph, second: Graph, *, collection: Collection, k: int) -> bool:
    """Return whether the shapes of all Path-Trees of height `k` distinguish two graphs.

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
    """Return whether annotated path sets of level `k` distinguish two graphs.

    The options are those of `annotated_path_sets`.

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
