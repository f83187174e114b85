"""Build the Path-Trees and WL-trees of section 3.2 of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import Tensor

from pathnn.checks import check_count
from pathnn.paths.options import Collection
from pathnn.paths.trie import Path
from pathnn.theory.graphs import check_source, neighbors, paths_from

Form = tuple["Form", ...]
"""The canonical form of an unlabelled rooted tree: the sorted forms of the children of its root."""


@dataclass(frozen=True)
class Tree:
    """A rooted tree; a vertex may occur many times, and equal subtrees may be the same object.

    >>> tree = Tree(0, (Tree(1, (Tree(2),)), Tree(3)))
    >>> tree.size, tree.height, tree.levels(), list(tree.walks())
    (4, 2, [[0], [1, 3], [2]], [(0,), (0, 1), (0, 1, 2), (0, 3)])
    >>> tree.form() == Tree(7, (Tree(8), Tree(9, (Tree(5),)))).form()
    True
    """

    vertex: int
    children: tuple[Tree, ...] = ()
    size: int = field(init=False, repr=False, compare=False)
    height: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(child.size for child in self.children))
        object.__setattr__(self, "height", 1 + max((child.height for child in self.children), default=-1))

    def levels(self) -> list[list[int]]:
        """Return the vertices of each level, the root first."""
        rows, level = [], [self]
        while level:
            rows.append([node.vertex for node in level])
            level = [child for node in level for child in node.children]
        return rows

    def walks(self) -> Iterator[tuple[int, ...]]:
        """Yield the vertices from the root to each node, in depth-first order."""
        yield (self.vertex,)
        for child in self.children:
            yield from ((self.vertex, *walk) for walk in child.walks())

    def form(self) -> Form:
        """Return the canonical form (Aho, Hopcroft, Ullman), equal for isomorphic trees only; labels are ignored."""
        return tuple(sorted(child.form() for child in self.children))


def path_tree(edge_index: Tensor, num_nodes: int, source: int, *, collection: Collection, k: int) -> Tree:
    """Return the Path-Tree of height at most `k` of a vertex: the trie of its paths.

    Level k has position k + 1 of the paths of length k. (Definition 3.1 says position k, which is not their end.)

    >>> from pathnn.theory.graphs import edges_to_index
    >>> square = edges_to_index([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> [path_tree(square, 4, 0, collection=c, k=3).levels() for c in ("sp", "sp+")]
    [[[0], [1, 3], [2]], [[0], [1, 3], [2, 2]]]
    """
    following: dict[Path, list[int]] = {}
    for paths in paths_from(edge_index, num_nodes, source, collection=collection, k=k):
        for path in paths:
            following.setdefault(path[:-1], []).append(path[-1])

    def grow(prefix: Path) -> Tree:
        return Tree(prefix[-1], tuple(grow((*prefix, v)) for v in following.get(prefix, ())))

    return grow((source,))


def wl_tree(edge_index: Tensor, num_nodes: int, source: int, height: int) -> Tree:
    """Return the WL-tree of a vertex: the tree of all walks of at most `height` edges from it.

    Equal subtrees are the same object, so the tree needs little memory although it grows exponentially.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> wl_tree(edges_to_index([(0, 1), (1, 2), (2, 0)]), 3, 1, 2).levels()
    [[1], [0, 2], [1, 2, 0, 1]]
    """
    check_source(source, num_nodes)
    adjacent = neighbors(edge_index, num_nodes)
    trees = [Tree(v) for v in range(num_nodes)]
    for _ in range(check_count("height", height, 0)):
        trees = [Tree(v, tuple(trees[u] for u in adjacent[v])) for v in range(num_nodes)]
    return trees[source]
