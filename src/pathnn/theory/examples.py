"""Graphs for examples and figures.

The text of the paper has the captions of its pictures, but not the pictures: these graphs satisfy the captions.
"""

from __future__ import annotations

from pathnn.theory.graphs import Graph, edges_to_index


def figure_graph() -> Graph:
    """Return a graph of six vertices for figures 1 and 2; vertex 0 is v1 of the paper.

    Two shortest paths from v1 end at v4, and one at each other vertex, so v1 can have two SP-trees of height 2.
    """
    return edges_to_index([(0, 1), (0, 2), (0, 5), (1, 3), (2, 3), (2, 4)]), 6


def open_triplet() -> Graph:
    """Return a path of three vertices with vertex 0 in the middle: the v of proposition 3.4."""
    return edges_to_index([(0, 1), (0, 2)]), 3


def triangle() -> Graph:
    """Return three vertices, all adjacent; each of them is a u of proposition 3.4."""
    return edges_to_index([(0, 1), (1, 2), (2, 0)]), 3


def hexagon() -> Graph:
    """Return a ring of six vertices, which 1-WL confuses with two triangles."""
    return edges_to_index([(v, (v + 1) % 6) for v in range(6)]), 6


def two_triangles() -> Graph:
    """Return two separate triangles, which 1-WL confuses with a hexagon."""
    return edges_to_index([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]), 6
