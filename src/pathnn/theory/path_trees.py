"""Path-Trees (definition 3.1): the paths of a collection from one vertex, merged where they begin alike."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from pathnn.paths.options import Collection
from pathnn.paths.reference import Path
from pathnn.theory.graphs import check_source, paths_by_length
from pathnn.theory.tree import Tree


def path_trees(edge_index: Tensor, num_nodes: int, *, collection: Collection, k: int) -> list[Tree]:
    """The Path-Tree of height at most `k` of every vertex: the trie of the prefixes of its paths.

    Level k holds position k + 1 of the paths of length k: definition 3.1 says position k, which is not their end.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> triangle = edges_to_index([(0, 1), (1, 2), (2, 0)])
    >>> path_trees(triangle, 3, collection="sp+", k=2)[0].levels()
    [[0], [1, 2]]
    >>> path_trees(triangle, 3, collection="ap", k=2)[0].levels()
    [[0], [1, 2], [2, 1]]
    """
    starting: list[list[Path]] = [[] for _ in range(num_nodes)]
    for paths in paths_by_length(edge_index, num_nodes, collection=collection, k=k):
        for path in paths:
            starting[path[0]].append(path)
    return [_trie(source, paths) for source, paths in enumerate(starting)]


def path_tree(edge_index: Tensor, num_nodes: int, source: int, *, collection: Collection, k: int) -> Tree:
    """The Path-Tree of height at most `k` of one vertex.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> square = edges_to_index([(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> [path_tree(square, 4, 0, collection=c, k=3).levels() for c in ("sp", "sp+")]
    [[[0], [1, 3], [2]], [[0], [1, 3], [2, 2]]]
    """
    check_source(source, num_nodes)
    return path_trees(edge_index, num_nodes, collection=collection, k=k)[source]


def _trie(source: int, paths: Iterable[Path]) -> Tree:
    """Merge paths by their prefixes; children are ordered by vertex."""
    following: dict[Path, set[int]] = {}
    for path in paths:
        for end in range(1, len(path)):
            following.setdefault(path[:end], set()).add(path[end])

    def grow(prefix: Path) -> Tree:
        return Tree(prefix[-1], tuple(grow((*prefix, v)) for v in sorted(following.get(prefix, ()))))

    return grow((source,))
