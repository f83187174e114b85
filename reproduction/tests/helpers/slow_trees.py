"""The trees of all vertices of a graph, and their beginnings."""

from __future__ import annotations

from torch import Tensor

from pathnn.paths.options import Collection
from pathnn.theory.trees import Tree, path_tree, wl_tree


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
