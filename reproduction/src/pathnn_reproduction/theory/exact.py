"""Section 3.2 of the paper without hashes, for small graphs: WL colours, trees and annotated path sets.

These canonical forms cannot collide, but are slow. `pathnn.theory.fingerprints` computes the same for graphs of real
size.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from torch import Tensor

from pathnn.paths.extract import extract_paths
from pathnn.paths.options import Collection, check_collection, check_k
from pathnn.paths.trie import DUMMY, Path
from pathnn.theory.graphs import Graph, check_height, neighbors
from pathnn.theory.trees import Tree, path_tree


class ColorTable(dict[Hashable, int]):
    """Map equal structures to equal integers, and different structures to different ones, without collisions.

    Only colours of the same table are comparable. A structure is a tuple of the colours of its parts, so keys stay
    short at any depth.

    >>> table = ColorTable()
    >>> leaf = table.color(())
    >>> cherry = table.color((leaf, leaf))
    >>> table.color((leaf, leaf)) == cherry, cherry == leaf, len(table)
    (True, False, 2)
    """

    def color(self, structure: Hashable) -> int:
        """Return the colour of a structure; a new structure gets a new colour."""
        return self.setdefault(structure, len(self))


Mark = Callable[[int], Hashable]
"""The mark of a vertex: nodes with different marks have different canonical forms."""


def tree_color(tree: Tree, table: ColorTable, mark: Mark | None = None) -> int:
    """Return the canonical form of a tree as a colour of `table`, for trees too large for nested tuples.

    With `mark`, the vertices' marks (for example their distance to the root) must agree as well.

    >>> table, (left, right) = ColorTable(), (Tree(0, (Tree(1),)), Tree(2, (Tree(3),)))
    >>> tree_color(left, table) == tree_color(right, table)
    True
    >>> tree_color(left, table, mark=int) == tree_color(right, table, mark=int)
    False
    """
    known: dict[int, int] = {}

    def visit(node: Tree) -> int:
        if id(node) not in known:
            shown = None if mark is None else mark(node.vertex)
            known[id(node)] = table.color(("tree", shown, tuple(sorted(map(visit, node.children)))))
        return known[id(node)]

    return visit(tree)


def is_subtree(tree: Tree, other: Tree, *, labelled: bool = True) -> bool:
    """Return whether a tree embeds into `other`: root on root, children on different children, equal vertices.

    With `labelled=False` only the shapes have to embed.

    >>> path, star = Tree(0, (Tree(1, (Tree(2),)),)), Tree(0, (Tree(1), Tree(2)))
    >>> is_subtree(path, star), is_subtree(Tree(0, (Tree(2),)), star)
    (False, True)
    >>> is_subtree(Tree(5, (Tree(5),)), star), is_subtree(Tree(5, (Tree(5),)), star, labelled=False)
    (False, True)
    """
    known: dict[tuple[int, int], bool] = {}

    def embeds(small: Tree, large: Tree) -> bool:
        pair = id(small), id(large)
        if pair not in known:
            known[pair] = (
                (not labelled or small.vertex == large.vertex)
                and small.size <= large.size
                and small.height <= large.height
                and _match([[embeds(a, b) for b in large.children] for a in small.children])
            )
        return known[pair]

    return embeds(tree, other)


def _match(allowed: list[list[bool]]) -> bool:
    """Return whether each row can have a different column among those it allows (augmenting paths)."""
    row_of: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, ok in enumerate(allowed[row]):
            if ok and column not in tried:
                tried.add(column)
                if column not in row_of or place(row_of[column], tried):
                    row_of[column] = row
                    return True
        return False

    return all(place(row, set()) for row in range(len(allowed)))


def distances_from(adjacent: list[tuple[int, ...]], source: int) -> list[int | None]:
    """Return the distance from `source` to every vertex, None if there is no path.

    >>> distances_from([(1,), (0,), ()], 0)
    [0, 1, None]
    """
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
        trie = extract_paths(edge_index, num_nodes, collection=collection, k=k, extend=extend)
        adjacent = neighbors(edge_index, num_nodes)
        apart = [distances_from(adjacent, source) for source in range(num_nodes)] if distances else None
        levels = [initial_colors(num_nodes, start, table)]
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
    trees = [[path_tree(*graph, v, collection=collection, k=k) for v in range(graph[1])] for graph in (first, second)]
    return _differ(*([tree_color(tree, table) for tree in side] for side in trees))


def paths_distinguish(first: Graph, second: Graph, *, collection: Collection, k: int, **options: bool) -> bool:
    """Return whether annotated path sets of level `k` distinguish two graphs.

    The options are those of `annotated_path_sets`.

    >>> from pathnn.theory.examples import hexagon, two_triangles
    >>> paths_distinguish(hexagon(), two_triangles(), collection="ap", k=2)
    False
    >>> paths_distinguish(hexagon(), two_triangles(), collection="ap", k=2, distances=True)
    True
    """
    annotations = annotated_path_sets([first, second], collection=collection, k=k, **options)  # type: ignore[arg-type]
    return _differ(*(levels[-1] for levels in annotations))


def _differ(first: Iterable[int], second: Iterable[int]) -> bool:
    return sorted(first) != sorted(second)
