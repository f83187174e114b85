"""Where the nodes of a tree go."""

from __future__ import annotations

from dataclasses import dataclass

from pathnn.theory.tree import Tree


@dataclass(frozen=True)
class Placed:
    """A node of a tree on the page; `walk` are the vertices from the root to it, `parent` is an index."""

    x: float
    y: float
    walk: tuple[int, ...]
    parent: int | None


def tree_layout(tree: Tree) -> list[Placed]:
    """Place a tree: leaves one unit apart from left to right, parents centred above their children.

    The root is at height 0, every level one unit lower. Nodes come in depth-first order.

    >>> [(node.x, node.y) for node in tree_layout(Tree(0, (Tree(1), Tree(2))))]
    [(0.5, 0.0), (0.0, -1.0), (1.0, -1.0)]
    """
    placed: list[Placed] = []
    leaves = 0

    def place(node: Tree, walk: tuple[int, ...], parent: int | None) -> float:
        nonlocal leaves
        here = len(placed)
        placed.append(Placed(0.0, 0.0, walk, parent))
        xs = [place(child, (*walk, child.vertex), here) for child in node.children]
        x = (xs[0] + xs[-1]) / 2 if xs else float(leaves)
        leaves += not xs
        placed[here] = Placed(x, 1.0 - len(walk), walk, parent)
        return x

    place(tree, (tree.vertex,), None)
    return placed
