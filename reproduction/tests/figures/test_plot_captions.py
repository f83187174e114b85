"""What the paper's captions say is true of the graphs that we drew; and the pages are legible."""

import matplotlib
import pytest

from exact_theory import path_trees_distinguish, wl_distinguishes
from path_reference import reference_paths, shortest_paths, to_graph
from pathnn.plots.page import COOL, WARM
from pathnn.theory import path_tree, wl_tree
from pathnn.theory.examples import figure_graph, hexagon, open_triplet, triangle, two_triangles
from pathnn_reproduction.figures.drawing import iteration_fills
from pathnn_reproduction.figures.figures import FIGURES, distance_style
from pathnn_reproduction.theory.examples import bipartite_six, complete_four, one_graph_against_theorem_3_3

COLLECTIONS = ("sp", "sp+", "ap")


@pytest.fixture(scope="module")
def figures():
    return {name: make() for name, make in FIGURES.items()}


def test_figure_1():
    graph = figure_graph()
    assert graph[1] == 6
    counts = []
    for collection, k in zip(COLLECTIONS, (2, 2, 3), strict=True):
        paths = [p for rows in reference_paths(*graph, collection=collection, k=k) for p in rows if p[0] == 0]
        counts.append(len(paths))
    assert counts == [5, 6, 8]


def test_figure_2():
    graph = figure_graph()
    reference = to_graph(*graph)
    choices = [len(shortest_paths(reference, 0, v)) for v in range(1, 6)]
    assert sorted(choices) == [1, 1, 1, 1, 2]  # two SP-trees
    assert max(len(path) - 1 for v in range(1, 6) for path in shortest_paths(reference, 0, v)) == 2


def test_figure_3_colours_are_classes():
    before, first, second = iteration_fills(figure_graph(), collection="sp", k=2)
    assert len(set(before)) == 1
    assert [first[v] == first[u] for v, u in ((0, 2), (1, 3), (4, 5), (0, 1))] == [True, True, True, False]
    assert len(set(second)) == 5
    assert second[4] == second[5]


def test_wl_tree_figure(figures):
    tree = wl_tree(*figure_graph(), 0, 3)
    incremental = [walk for walk in tree.walks() if len(set(walk)) == len(walk)]
    (axes,) = figures["wl_tree"].axes
    faces = [matplotlib.colors.to_hex(patch.get_facecolor()).upper() for patch in axes.patches]
    assert (faces.count(WARM), faces.count(COOL)) == (len(incremental), tree.size - len(incremental)) == (9, 15)
    assert sorted(incremental) == sorted(path_tree(*figure_graph(), 0, collection="ap", k=3).walks())


def test_wl_pair():
    pair = hexagon(), two_triangles()
    assert not wl_distinguishes(*pair)
    assert all(path_trees_distinguish(*pair, collection=collection, k=3) for collection in COLLECTIONS)


def test_triplet_and_triangle(figures):
    assert wl_tree(*open_triplet(), 0, 2).form() != wl_tree(*triangle(), 0, 2).form()
    for collection in ("sp", "sp+"):
        trees = [path_tree(*g, 0, collection=collection, k=2) for g in (open_triplet(), triangle())]
        assert trees[0].form() == trees[1].form()
        assert not any({1, 2} <= set(walk[-2:]) for walk in trees[1].walks())  # the problematic edge is not in it
        for other in (1, 2):
            walks = path_tree(*triangle(), other, collection=collection, k=2).walks()
            assert any(set(walk[-2:]) == {1, 2} for walk in walks)
        assert path_trees_distinguish(open_triplet(), triangle(), collection=collection, k=2)
    warm = [
        sum(matplotlib.colors.to_hex(line.get_color()).upper() == WARM for line in axes.lines)
        for axes in figures["triplet_triangle"].axes
    ]
    assert warm == [0, 1, 0, 2, 0, 0]  # in the triangle, and twice in its WL-tree


def test_distances():
    graphs = complete_four(), bipartite_six()
    trees = [path_tree(*graph, 0, collection="ap", k=2) for graph in graphs]
    assert trees[0].form() == trees[1].form()
    shapes = [
        [distance_style(g)(w).shape for w in t.walks() if len(w) == 3] for g, t in zip(graphs, trees, strict=True)
    ]
    assert shapes == [["square"] * 6, ["diamond"] * 6]


def test_one_graph_against_theorem_3_3():
    graph = one_graph_against_theorem_3_3()
    assert len({path_tree(*graph, v, collection="ap", k=3).form() for v in (0, 3)}) == 1
    assert len({wl_tree(*graph, v, 3).form() for v in (0, 3)}) == 2


def test_nothing_is_clipped_and_no_texts_overlap(figures):
    for name, figure in figures.items():
        figure.canvas.draw()
        texts = [t for t in (*figure.texts, *(t for axes in figure.axes for t in axes.texts)) if t.get_text()]
        boxes = [text.get_window_extent() for text in texts]
        for i, box in enumerate(boxes):
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, name
            assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, name
            assert not any(box.overlaps(other) for other in boxes[:i]), name


def test_pages_are_narrow_enough_to_read(figures):
    widths = {name: figure.get_size_inches()[0] for name, figure in figures.items()}
    assert max(widths.values()) <= 13.0, widths
