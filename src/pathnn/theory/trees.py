"""Rooted trees, exact colours of nested structures, Path-Trees and WL-trees."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from torch import Tensor

from pathnn.paths.options import Collection
from pathnn.paths.trie import Path
from pathnn.theory.graphs import check_height, check_source, neighbors, paths_by_length


class ColorTable:
    """Map equal structures to equal integers, and different structures to different ones, without collisions.

    Only colours of the same table are comparable, so share it between the graphs you compare. A structure is a tuple
    of the colours of its parts, so keys stay short at any depth.

    >>> table = ColorTable()
    >>> leaf = table.color(())
    >>> cherry = table.color((leaf, leaf))
    >>> table.color((leaf, leaf)) == cherry, cherry == leaf, len(table)
    (True, False, 2)
    """

    def __init__(self) -> None:
        self._colors: dict[Hashable, int] = {}

    def color(self, structure: Hashable) -> int:
        """Return the colour of a structure; a new structure gets a new colour."""
        return self._colors.setdefault(structure, len(self._colors))

    def __len__(self) -> int:
        return len(self._colors)

    def __repr__(self) -> str:
        return f"ColorTable({len(self)} colours)"


Form = tuple["Form", ...]
"""Canonical form of an unlabelled rooted tree: the sorted forms of the root's children."""


Mark = Callable[[int], Hashable]
"""The mark of a vertex: nodes with different marks have different canonical forms."""


@dataclass(frozen=True)
class Tree:
    """A rooted tree; the same vertex may occur many times, and equal subtrees may be one shared object.

    >>> tree = Tree(0, (Tree(1, (Tree(2),)), Tree(3)))
    >>> tree.size, tree.height, tree.levels()
    (4, 2, [[0], [1, 3], [2]])
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
        """Return the vertices of each level, root first."""
        rows, level = [], [self]
        while level:
            rows.append([node.vertex for node in level])
            level = [child for node in level for child in node.children]
        return rows

    def walks(self) -> Iterator[tuple[int, ...]]:
        """Yield the vertices from the root to each node, in depth-first order.

        >>> list(Tree(0, (Tree(1), Tree(2))).walks())
        [(0,), (0, 1), (0, 2)]
        """
        stack: list[tuple[Tree, tuple[int, ...]]] = [(self, (self.vertex,))]
        while stack:
            node, walk = stack.pop()
            yield walk
            stack += [(child, (*walk, child.vertex)) for child in reversed(node.children)]

    def prune(self, height: int) -> Tree:
        """Return the tree without the levels below `height`.

        >>> Tree(0, (Tree(1, (Tree(2),)),)).prune(1)
        Tree(vertex=0, children=(Tree(vertex=1, children=()),))
        """
        if height < 0:
            raise ValueError(f"height={height!r}: expected an integer of at least 0.")
        if height >= self.height:
            return self
        return Tree(self.vertex, tuple(child.prune(height - 1) for child in self.children) if height else ())

    def form(self) -> Form:
        """Return the canonical form (Aho, Hopcroft, Ullman): equal for isomorphic trees only; labels are ignored.

        >>> Tree(0, (Tree(1, (Tree(2),)), Tree(3))).form()
        ((), ((),))
        """
        return tuple(sorted(child.form() for child in self.children))

    def color(self, table: ColorTable, mark: Mark | None = None) -> int:
        """Return the canonical form as a colour of `table`, for trees too large for nested tuples.

        With `mark`, the vertices' marks (for example their distance to the root) must agree as well.

        >>> table, (left, right) = ColorTable(), (Tree(0, (Tree(1),)), Tree(2, (Tree(3),)))
        >>> left.color(table) == right.color(table)
        True
        >>> left.color(table, mark=lambda vertex: vertex) == right.color(table, mark=lambda vertex: vertex)
        False
        """
        known: dict[int, int] = {}

        def visit(node: Tree) -> int:
            if id(node) not in known:
                shown = None if mark is None else mark(node.vertex)
                known[id(node)] = table.color(("tree", shown, tuple(sorted(map(visit, node.children)))))
            return known[id(node)]

        return visit(self)

    def is_subtree_of(self, other: Tree, *, labelled: bool = True) -> bool:
        """Return whether the tree embeds into `other`: root on root, children on different children, equal vertices.

        With `labelled=False` only the shapes have to embed.

        >>> path, star = Tree(0, (Tree(1, (Tree(2),)),)), Tree(0, (Tree(1), Tree(2)))
        >>> path.is_subtree_of(star), Tree(0, (Tree(2),)).is_subtree_of(star)
        (False, True)
        >>> Tree(5, (Tree(5),)).is_subtree_of(star), Tree(5, (Tree(5),)).is_subtree_of(star, labelled=False)
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

        return embeds(self, other)


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


def path_trees(edge_index: Tensor, num_nodes: int, *, collection: Collection, k: int) -> list[Tree]:
    """Return the Path-Tree of height at most `k` of every vertex: the trie of the prefixes of its paths.

    Level k has position k + 1 of the paths of length k. (Definition 3.1 says position k, which is not their end.)

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
    """Return the Path-Tree of height at most `k` of one vertex.

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


def wl_trees(edge_index: Tensor, num_nodes: int, height: int) -> list[Tree]:
    """Return the WL-tree of every vertex: the tree of all walks of at most `height` edges that start there.

    Equal subtrees are shared objects, so the trees need little memory although they grow exponentially.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> wl_trees(edges_to_index([(0, 1), (1, 2)]), 3, 2)[0].levels()
    [[0], [1], [0, 2]]
    """
    adjacent = neighbors(edge_index, num_nodes)
    trees = [Tree(v) for v in range(num_nodes)]
    for _ in range(check_height("height", height)):
        trees = [Tree(v, tuple(trees[u] for u in adjacent[v])) for v in range(num_nodes)]
    return trees


def wl_tree(edge_index: Tensor, num_nodes: int, source: int, height: int) -> Tree:
    """Return the WL-tree of one vertex.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> wl_tree(edges_to_index([(0, 1), (1, 2), (2, 0)]), 3, 1, 2).levels()
    [[1], [0, 2], [1, 2, 0, 1]]
    """
    check_source(source, num_nodes)
    return wl_trees(edge_index, num_nodes, height)[source]
