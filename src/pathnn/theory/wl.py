"""1-WL colour refinement, and the tree of walks that a colour stands for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from torch import Tensor

from pathnn.theory.colors import ColorTable
from pathnn.theory.graphs import check_height, check_source, neighbors
from pathnn.theory.tree import Tree


def wl_colors(
    edge_index: Tensor,
    num_nodes: int,
    rounds: int | None = None,
    *,
    initial: Sequence[Hashable] | None = None,
    table: ColorTable | None = None,
) -> list[tuple[int, ...]]:
    """The 1-WL colours of all vertices after 0, 1, ..., `rounds` rounds.

    Two vertices have the same colour after k rounds exactly when their WL-trees of height k are isomorphic.
    Colours of one round can be compared between graphs that were coloured with the same `table`. `initial`
    labels the vertices to start from (default: all equal). `rounds=None` means `num_nodes` rounds: nothing
    changes after those.

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
    """The colours of the vertices' labels, or one and the same colour."""
    if labels is None:
        return (table.color("initial"),) * num_nodes
    if len(labels) != num_nodes:
        raise ValueError(f"initial has {len(labels)} labels: expected one per vertex, num_nodes={num_nodes}.")
    return tuple(table.color(("label", label)) for label in labels)


def wl_trees(edge_index: Tensor, num_nodes: int, height: int) -> list[Tree]:
    """The WL-tree of every vertex: the tree of all walks of at most `height` edges that start there.

    Equal subtrees are shared, so this costs little memory although the trees grow exponentially.

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
    """The WL-tree of one vertex.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> wl_tree(edges_to_index([(0, 1), (1, 2), (2, 0)]), 3, 1, 2).levels()
    [[1], [0, 2], [1, 2, 0, 1]]
    """
    check_source(source, num_nodes)
    return wl_trees(edge_index, num_nodes, height)[source]
