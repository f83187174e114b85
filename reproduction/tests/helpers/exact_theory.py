"""Section 3.2 of the paper without hashes, for small graphs: WL colours, trees and annotated path sets.

These canonical forms cannot collide, but are slow. `pathnn.theory.fingerprints` computes the same for graphs of real
size.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from torch import Tensor

from pathnn.checks import check_count
from pathnn.paths.extract import extract_paths
from pathnn.paths.options import Collection
from pathnn.paths.trie import DUMMY, Path
from pathnn.theory.graphs import Graph, neighbors
from pathnn.theory.trees import Tree, path_tree


class ColorTable(dict[Hashable, int]):
    """Map equal structures to equal integers, and different structures to different ones, without collisions.

    Only colours of the same table are comparable. A structure is a tuple of the colours of its parts, so keys stay
    short at any depth.
    """

    def color(self, structure: Hashable) -> int:
        """Return the colour of a structure; a new structure gets a new colour."""
        return self.setdefault(structure, len(self))


def is_subtree(tree: Tree, other: Tree) -> bool:
    """Return whether a tree embeds into `other`: root on root, children on children, equal vertices.

    Siblings must be different vertices, as in Path-Trees and WL-trees.
    """
    children = {child.vertex: child for child in other.children}
    return tree.vertex == other.vertex and all(
        child.vertex in children and is_subtree(child, children[child.vertex]) for child in tree.children
    )


def distances_from(adjacent: list[tuple[int, ...]], source: int) -> list[int | None]:
    """Return the distance from `source` to every vertex, None if there is no path."""
    distance: list[int | None] = [None] * len(adjacent)
    distance[source] = 0
    frontier, steps = {source}, 0
    while frontier:
        steps += 1
        frontier = {v for u in frontier for v in adjacent[u] if distance[v] is None}
        for v in frontier:
            distance[v] = steps
    return distance


def wl_colors(
    edge_index: Tensor, num_nodes: int, rounds: int | None = None, *, table: ColorTable | None = None
) -> list[tuple[int, ...]]:
    """Compute the 1-WL colours of all vertices after 0, 1, ..., `rounds` rounds.

    Two vertices have the same colour after k rounds if and only if their WL-trees of height k are isomorphic. Compare
    only colours of the same round and the same `table`. `rounds=None` means `num_nodes` rounds, after which nothing
    changes.
    """
    adjacent = neighbors(edge_index, num_nodes)
    table = ColorTable() if table is None else table
    history = [(table.color("initial"),) * num_nodes]
    for _ in range(num_nodes if rounds is None else check_count("rounds", rounds, 0)):
        before = history[-1]
        around = (tuple(sorted(before[u] for u in near)) for near in adjacent)
        history.append(tuple(table.color(("wl", *pair)) for pair in zip(before, around, strict=True)))
    return history


def annotated_path_sets(
    graphs: Sequence[Graph],
    *,
    collection: Collection,
    k: int,
    residual: bool = False,
    extend: bool = False,
    distances: bool = False,
) -> list[list[tuple[int, ...]]]:
    """Compute the annotations of all vertices at levels 0..k: `result[graph][level][vertex]`, comparable per level.

    The annotation of v at level l is the multiset, over all paths of length l from v, of the sequences of the
    level l - 1 annotations of their vertices. At level 0 all are equal.

    Args:
        graphs: `(edge_index, num_nodes)` pairs.
        collection: `"sp"`, `"sp+"` or `"ap"`.
        k: the largest path length, in edges.
        residual: an annotation includes that of the same vertex at the previous level, as `h + sum` in the model.
        extend: extend paths that no other continues by dummy tokens, as in the proof of theorem 3.5.
        distances: each token includes its distance to the source.
    """
    table, results = ColorTable(), []
    for edge_index, num_nodes in graphs:
        trie = extract_paths(edge_index, num_nodes, collection=collection, k=k, extend=extend)
        adjacent = neighbors(edge_index, num_nodes)
        apart = [distances_from(adjacent, source) for source in range(num_nodes)] if distances else None
        levels = [(table.color("initial"),) * num_nodes]
        for rows in trie.to_paths():
            levels.append(_annotate(sorted(map(tuple, rows.tolist())), levels[-1], apart, residual, table))
        results.append(levels)
    return results


def _annotate(
    paths: Sequence[Path],
    before: tuple[int, ...],
    apart: list[list[int | None]] | None,
    residual: bool,
    table: ColorTable,
) -> tuple[int, ...]:
    """Compute one level from the paths of one length, source first, and the annotations of the previous level."""
    dummy = table.color("dummy")
    seen: list[list[int]] = [[] for _ in before]
    for path in paths:
        sequence = tuple(
            (dummy, None) if vertex == DUMMY else (before[vertex], apart[path[0]][vertex] if apart else None)
            for vertex in path
        )
        seen[path[0]].append(table.color(("path", sequence)))
    return tuple(
        table.color(("paths", before[v] if residual else None, tuple(sorted(multiset))))
        for v, multiset in enumerate(seen)
    )


def wl_distinguishes(first: Graph, second: Graph, rounds: int | None = None) -> bool:
    """Return whether 1-WL distinguishes two graphs, within `rounds` rounds or at all."""
    table = ColorTable()
    rounds = max(first[1], second[1]) if rounds is None else rounds
    return _differ(*(wl_colors(*graph, rounds, table=table)[-1] for graph in (first, second)))


def path_trees_distinguish(first: Graph, second: Graph, *, collection: Collection, k: int) -> bool:
    """Return whether the shapes of all Path-Trees of height `k` distinguish two graphs."""
    trees = ((path_tree(*graph, v, collection=collection, k=k) for v in range(graph[1])) for graph in (first, second))
    return _differ(*([tree.form() for tree in side] for side in trees))


def paths_distinguish(first: Graph, second: Graph, *, collection: Collection, k: int, **options: bool) -> bool:
    """Return whether annotated path sets of level `k` distinguish two graphs.

    The options are those of `annotated_path_sets`.
    """
    annotations = annotated_path_sets([first, second], collection=collection, k=k, **options)
    return _differ(*(levels[-1] for levels in annotations))


def _differ(first: Iterable[Any], second: Iterable[Any]) -> bool:
    return sorted(first) != sorted(second)
