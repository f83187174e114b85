"""Rooted trees whose nodes are occurrences of vertices, their canonical form, and subtrees."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from pathnn.theory.colors import ColorTable

Form = tuple["Form", ...]
"""Canonical form of an unlabelled rooted tree: the sorted forms of the root's children."""

Mark = Callable[[int], Hashable]
"""What a vertex shows: nodes with different marks are different to the canonical form."""


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
        """The vertices of each level, root first."""
        rows, level = [], [self]
        while level:
            rows.append([node.vertex for node in level])
            level = [child for node in level for child in node.children]
        return rows

    def walks(self) -> Iterator[tuple[int, ...]]:
        """For every node, in depth-first order, the vertices from the root to it.

        >>> list(Tree(0, (Tree(1), Tree(2))).walks())
        [(0,), (0, 1), (0, 2)]
        """
        stack: list[tuple[Tree, tuple[int, ...]]] = [(self, (self.vertex,))]
        while stack:
            node, walk = stack.pop()
            yield walk
            stack += [(child, (*walk, child.vertex)) for child in reversed(node.children)]

    def prune(self, height: int) -> Tree:
        """The tree without the levels below `height`.

        >>> Tree(0, (Tree(1, (Tree(2),)),)).prune(1)
        Tree(vertex=0, children=(Tree(vertex=1, children=()),))
        """
        if height < 0:
            raise ValueError(f"height={height!r}: expected an integer of at least 0.")
        if height >= self.height:
            return self
        return Tree(self.vertex, tuple(child.prune(height - 1) for child in self.children) if height else ())

    def form(self) -> Form:
        """The canonical form (Aho, Hopcroft, Ullman): equal exactly for isomorphic trees, labels ignored.

        >>> Tree(0, (Tree(1, (Tree(2),)), Tree(3))).form()
        ((), ((),))
        """
        return tuple(sorted(child.form() for child in self.children))

    def color(self, table: ColorTable, mark: Mark | None = None) -> int:
        """The canonical form as a colour of `table`, for trees that are too large for nested tuples.

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
        """Whether it embeds into `other`, root on root and children on different children, vertices kept.

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
    """Whether every row can have a column of its own among those it allows (augmenting paths)."""
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
