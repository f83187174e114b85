"""Annotated path sets (section 3.2): what a PathNN made of injective functions can know about a vertex."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from pathnn.paths.options import Collection, check_collection, check_k
from pathnn.paths.reference import DUMMY, Path
from pathnn.theory.colors import ColorTable
from pathnn.theory.graphs import Graph, distances_from, neighbors, paths_by_length
from pathnn.theory.wl import initial_colors

Token = Callable[[Path, int], Hashable]
"""What a path shows at a position, apart from the annotation of the vertex there."""


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
    """The annotations of all vertices at levels 0..k: `result[graph][level][vertex]`, comparable per level.

    The annotation of v at level l is the multiset, over all paths of length l from v, of the sequences of the
    level l - 1 annotations of their vertices; at level 0 all are equal, or what `initial` says.

    Args:
        graphs: `(edge_index, num_nodes)` pairs.
        collection: `"sp"`, `"sp+"` or `"ap"`.
        k: the largest path length, in edges.
        residual: an annotation also holds v's own of the level before, as the model's `h + sum` does.
        extend: paths that nothing continues go on with dummy tokens, as the proof of theorem 3.5 wants.
        distances: every token also shows its distance to the source.
        initial: labels to start from, per graph and vertex.
        table: shares colours with other calls; the default is a new one.

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
    """One level: the annotations from the paths of one length and the annotations of the level before."""
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
