"""Graphs of our figures that only docs/theory.md needs; the others are in `pathnn.theory.examples`."""

from __future__ import annotations

from pathnn.theory.graphs import Graph, edges_to_index


def path_of_five() -> Graph:
    """Return a path of five vertices with vertex 0 in the middle, whose AP-tree has the shape of a triangle's.

    >>> path_of_five()[1]
    5
    """
    return edges_to_index([(0, 1), (0, 2), (1, 3), (2, 4)]), 5


def complete_four() -> Graph:
    """Return four vertices, all adjacent: paths of length 2 end at distance 1 from their source.

    >>> complete_four()[1]
    4
    """
    return edges_to_index([(u, v) for u in range(4) for v in range(u)]), 4


def bipartite_six() -> Graph:
    """Return the complete bipartite graph K3,3: paths of length 2 end at distance 2 from their source.

    >>> bipartite_six()[1]
    6
    """
    return edges_to_index([(u, v) for u in (0, 2, 4) for v in (1, 3, 5)]), 6


def one_graph_against_theorem_3_3() -> Graph:
    """Return the smallest graph with vertices (0 and 3) of equal AP-trees and different WL-trees of height 3.

    >>> one_graph_against_theorem_3_3()[1]
    7
    """
    return edges_to_index([(0, 1), (0, 5), (1, 2), (1, 6), (2, 3), (2, 4), (3, 4), (4, 5), (5, 6)]), 7
