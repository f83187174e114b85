from itertools import combinations, pairwise

import networkx as nx
import numpy as np
from hypothesis import given, settings, strategies as st

from pathnn.plots import graph_layout, tree_layout
from pathnn.theory import Tree
from pathnn.theory.examples import figure_graph, hexagon, two_triangles
from pathnn.theory.graphs import edges_to_index

trees = st.recursive(
    st.builds(Tree, st.just(0)),
    lambda children: st.builds(lambda c: Tree(0, tuple(c)), st.lists(children, max_size=4)),
    max_leaves=12,
)


@given(trees)
@settings(max_examples=60, deadline=None)
def test_tree_layout_is_tidy(tree):
    placed = tree_layout(tree)
    children = [[node for node in placed if node.parent == i] for i in range(len(placed))]
    assert [node.walk for node in placed] == list(tree.walks())
    leaves = [node.x for node, below in zip(placed, children, strict=True) if not below]
    assert leaves == [float(i) for i in range(len(leaves))]
    for node, below in zip(placed, children, strict=True):
        assert node.y == 1 - len(node.walk)
        if below:
            assert node.x == (below[0].x + below[-1].x) / 2
    for y in {node.y for node in placed}:
        assert all(b - a >= 1 for a, b in pairwise(node.x for node in placed if node.y == y))


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 9))
    pairs = [(u, v) for u in range(n) for v in range(u)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return edges_to_index(chosen), n


@given(graphs())
@settings(max_examples=15, deadline=None)
def test_graph_layout_separates_vertices_and_repeats(graph):
    points = graph_layout(*graph)
    assert np.array_equal(points, graph_layout(*graph))
    assert np.isfinite(points).all()
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1) + np.eye(graph[1])
    assert apart.min() > 0.1


def crossings(points, edges) -> int:
    """Count the pairs of edges without a common end that cross."""

    def side(p, q, r):
        return (q - p)[0] * (r - p)[1] - (q - p)[1] * (r - p)[0]

    def cross(a, b, c, d):
        return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0

    return sum(cross(*points[[*e, *f]]) for e, f in combinations(edges, 2) if not set(e) & set(f))


def test_no_crossings_where_none_are_needed():
    cube = nx.hypercube_graph(2)
    number = {vertex: i for i, vertex in enumerate(cube)}
    square = edges_to_index([(number[u], number[v]) for u, v in cube.edges]), 4
    ladder = edges_to_index(list(nx.ladder_graph(4).edges)), 8
    for edge_index, n in (figure_graph(), hexagon(), square, ladder):
        edges = [(u, v) for u, v in edge_index.t().tolist() if u < v]
        assert crossings(graph_layout(edge_index, n), edges) == 0


def test_crossings_are_counted():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert crossings(corners, [(0, 2), (1, 3)]) == 1
    assert crossings(corners, [(0, 1), (2, 3)]) == 0


def test_components_do_not_overlap():
    points = graph_layout(*two_triangles())
    assert points[:3, 0].max() < points[3:, 0].min()


def test_rings_stand_on_their_first_edge():
    points = graph_layout(*hexagon())
    assert np.allclose(points[0, 1], points[1, 1], atol=1e-6)
    assert points[:, 1].min() > points[0, 1] - 1e-6
    assert np.allclose(np.linalg.norm(points - np.roll(points, 1, axis=0), axis=1), 1, atol=0.2)
