"""The graphs of our figures.

The text of the paper has the captions of its pictures, not the pictures: we chose these graphs to satisfy the captions.
"""

from __future__ import annotations

from pathnn.theory.graphs import Graph, edges_to_index


def figure_graph() -> Graph:
    """Return a graph of six vertices for figures 1 and 2; vertex 0 is the paper's v1.

    No shortest path from v1 is longer than 2. Two of them lead to v4, and only one to each other vertex, so v1 can have
    two SP-trees of height 2.

    >>> edge_index, num_nodes = figure_graph()
    >>> num_nodes, edge_index.size(1) // 2
    (6, 6)
    """
    return edges_to_index([(0, 1), (0, 2), (0, 5), (1, 3), (2, 3), (2, 4)]), 6


def open_triplet() -> Graph:
    """Return a path of three vertices with vertex 0 in the middle: the v of proposition 3.4.

    >>> open_triplet()[1]
    3
    """
    return edges_to_index([(0, 1), (0, 2)]), 3


def triangle() -> Graph:
    """Return three vertices, all adjacent; each of them is a u of proposition 3.4.

    >>> triangle()[1]
    3
    """
    return edges_to_index([(0, 1), (1, 2), (2, 0)]), 3


def path_of_five() -> Graph:
    """Return a path of five vertices with vertex 0 in the middle, whose AP-tree has the shape of a triangle's.

    >>> path_of_five()[1]
    5
    """
    return edges_to_index([(0, 1), (0, 2), (1, 3), (2, 4)]), 5


def hexagon() -> Graph:
    """Return a ring of six vertices, which 1-WL confuses with two triangles.

    >>> hexagon()[1]
    6
    """
    return edges_to_index([(v, (v + 1) % 6) for v in range(6)]), 6


def two_triangles() -> Graph:
    """Return two separate triangles, which 1-WL confuses with a hexagon.

    >>> two_triangles()[1]
    6
    """
    return edges_to_index([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]), 6


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
