"""The trees of all vertices of a graph, and their beginnings."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from torch import Tensor

from exact_theory import ColorTable
from pathnn.paths.options import Collection
from pathnn.theory.graphs import Graph, edges_to_index
from pathnn.theory.trees import Tree, path_tree, wl_tree
from pathnn_reproduction.theory.small_graphs import Universe


def path_trees(edge_index: Tensor, num_nodes: int, *, collection: Collection, k: int) -> list[Tree]:
    """The Path-Tree of height at most `k` of every vertex."""
    return [path_tree(edge_index, num_nodes, v, collection=collection, k=k) for v in range(num_nodes)]


def wl_trees(edge_index: Tensor, num_nodes: int, height: int) -> list[Tree]:
    """The WL-tree of every vertex."""
    return [wl_tree(edge_index, num_nodes, v, height) for v in range(num_nodes)]


def prune(tree: Tree, height: int) -> Tree:
    """The tree without the levels below `height`."""
    if height >= tree.height:
        return tree
    return Tree(tree.vertex, tuple(prune(child, height - 1) for child in tree.children) if height else ())


def tree_color(tree: Tree, table: ColorTable, mark: Callable[[int], Hashable] | None = None) -> int:
    """The canonical form of a tree as a colour; with `mark`, the marks of the vertices must agree as well."""
    known: dict[int, int] = {}

    def visit(node: Tree) -> int:
        if id(node) not in known:
            shown = None if mark is None else mark(node.vertex)
            known[id(node)] = table.color(("tree", shown, tuple(sorted(map(visit, node.children)))))
        return known[id(node)]

    return visit(tree)


def member(universe: Universe, graph: int) -> Graph:
    """One graph of a universe."""
    return edges_to_index(universe.edge_list(graph)), int(universe.sizes[graph])
