import os
import subprocess
import sys

import matplotlib
import networkx as nx
import pytest
from matplotlib.text import Text

from pathnn.plots import draw_paths, draw_trees
from pathnn.plots.page import LINES, REACHED, lettered, make_page, vertex_labels
from pathnn.plots.paths import choose_colors, maximal
from pathnn.plots.trees import draw_paths_and_tree
from pathnn.theory.examples import figure_graph, hexagon, open_triplet, two_triangles
from pathnn.theory.graphs import edges_to_index
from pathnn_reproduction.figures.drawing import draw_panels, graph_panel

PETERSEN = edges_to_index(list(nx.petersen_graph().edges)), 10


def all_figures():
    return {
        "paths": draw_paths(*figure_graph(), 0, k=(2, 2, 3)),
        "one collection": draw_paths(*figure_graph(), 3, collection="ap", k=2),
        "many paths": draw_paths(*PETERSEN, 0, collection=["sp+", "ap"], k=4),
        "no paths": draw_paths(edges_to_index([]), 2, 0),
        "trees": draw_trees(*figure_graph(), 0, k=(3, 2, 2, 3)),
        "one tree": draw_trees(*figure_graph(), 0, kinds="wl", k=0),
        "wide tree": draw_trees(*PETERSEN, 0, kinds="wl", k=4),
        "graphs": draw_panels([graph_panel(hexagon(), "a hexagon"), graph_panel(two_triangles(), "two triangles")]),
        "marked": draw_panels([graph_panel(open_triplet(), "", source=0, labels=["a", "b", "c"])]),
        "one vertex": draw_panels([graph_panel((edges_to_index([]), 1), "")]),
    }


@pytest.fixture(scope="module")
def figures():
    return all_figures()


def boxes(figure):
    """Where each text is, in pixels, next to the whole figure's box."""
    figure.canvas.draw()
    panel_texts = [text for axes in figure.axes for text in axes.texts]
    texts = [text for text in (*figure.texts, *panel_texts) if text.get_text()]
    return [text.get_window_extent() for text in texts], figure.bbox


def test_number_of_panels(figures):
    counts = {name: len(figure.axes) for name, figure in figures.items()}
    assert counts == {
        "paths": 4,
        "one collection": 2,
        "many paths": 3,
        "no paths": 4,
        "trees": 4,
        "one tree": 1,
        "wide tree": 1,
        "graphs": 2,
        "marked": 1,
        "one vertex": 1,
    }


def test_nothing_is_clipped_and_no_texts_overlap(figures):
    for name, figure in figures.items():
        texts, page = boxes(figure)
        for i, box in enumerate(texts):
            assert page.x0 <= box.x0 <= box.x1 <= page.x1, name
            assert page.y0 <= box.y0 <= box.y1 <= page.y1, name
            assert not any(box.overlaps(other) for other in texts[:i]), name


def test_discs_stay_inside_their_panel(figures):
    for name, figure in figures.items():
        for axes in figure.axes:
            (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
            for patch in axes.patches:
                box = patch.get_path().get_extents(patch.get_patch_transform())
                assert left <= box.x0 <= box.x1 <= right, name
                assert low <= box.y0 <= box.y1 <= high, name


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_files_are_written(figures, tmp_path, suffix):
    out = tmp_path / f"out.{suffix}"
    figures["trees"].savefig(out)
    assert out.stat().st_size > 1000


def test_discs_of_trees_are_nodes(figures):
    wl, sp, sp_plus, ap = (len(axes.patches) for axes in figures["trees"].axes)
    assert (wl, sp, sp_plus, ap) == (24, 6, 7, 9)
    faded = [patch for patch in figures["trees"].axes[0].patches if patch.get_linestyle() not in ("-", "solid")]
    assert len(faded) == wl - ap  # the redundant nodes are those that are not in the AP-tree


def test_reached_vertices_are_tinted(figures):
    rgba = matplotlib.colors.to_rgba(REACHED)
    tinted = [sum(p.get_facecolor() == rgba for p in axes.patches) for axes in figures["paths"].axes]
    assert tinted == [0, 5, 5, 5]


def test_one_arrow_per_maximal_path(figures):
    arrows = [
        sum(isinstance(patch, matplotlib.patches.Polygon) for patch in axes.patches) for axes in figures["paths"].axes
    ]
    assert arrows == [0, 3, 4, 4]


def test_colors_are_kept_between_panels():
    assert maximal([(0, 1), (0, 1, 2), (0, 3)]) == [(0, 1, 2), (0, 3)]
    small, large = choose_colors([[(0, 2), (0, 3)], [(0, 1, 2), (0, 2, 1), (0, 3, 4)]])
    assert list(large.values()) == list(LINES[:3])
    assert small == {(0, 2): LINES[1], (0, 3): LINES[2]}
    many = [(0, i) for i in range(1, 20)]
    assert set(choose_colors([many])[0]) == set(many)


def test_pages_have_letters_and_labels_of_the_paper():
    assert lettered(["left", "right"]) == ["(a) left", "(b) right"]
    assert lettered(["alone"]) == ["alone"]
    assert vertex_labels(2) == ["$v_{1}$", "$v_{2}$"]
    figure, axes = make_page([(2.0, 1.5), (1.0, 1.0)], ["(a) left", "(b) right"])
    assert len(axes) == 2
    assert figure.get_size_inches().tolist() == pytest.approx([4.26, 2.06])


def test_no_window_no_global_settings():
    code = (
        "import matplotlib, sys; before = dict(matplotlib.rcParams);"
        "from pathnn.plots import draw_paths; from pathnn.theory.examples import figure_graph;"
        "draw_paths(*figure_graph(), 0);"
        "assert dict(matplotlib.rcParams) == before; assert 'matplotlib.pyplot' not in sys.modules"
    )
    # With a backend named, reading the settings does not make matplotlib look for one, which imports pyplot.
    environment = os.environ | {"MPLBACKEND": "agg"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: draw_paths(*figure_graph(), 6), "source=6"),
        (lambda: draw_paths(*figure_graph(), 0, k=(1, 2)), "k has 2 values"),
        (lambda: draw_paths(*figure_graph(), 0, collection="all"), "collection='all'"),
        (lambda: draw_paths(*figure_graph(), 0, collection=()), "at least one"),
        (lambda: draw_paths(*figure_graph(), 0, labels=["a"]), "labels has 1"),
        (lambda: draw_paths(*figure_graph(), 0, positions=[[0, 0]]), "positions has shape"),
        (lambda: draw_trees(*figure_graph(), -1), "source=-1"),
        (lambda: draw_trees(*figure_graph(), 0, kinds="bfs"), "kinds has 'bfs'"),
        (lambda: draw_trees(*PETERSEN, 0, kinds="wl", k=8), "9,841 nodes.*at most 400.*Lower k"),
        (lambda: draw_paths(edges_to_index([]), 0, 0), "no vertices"),
        (lambda: draw_paths(edges_to_index([]), 1000, 0), "num_nodes=1000"),
    ],
)
def test_refuses(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


@pytest.mark.parametrize(("k", "words"), [(1, "the tree of this path"), (2, "the tree of these 2 paths")])
def test_one_path_is_not_several(k, words):
    figure = draw_paths_and_tree(*open_triplet(), 1, collection="sp", k=k)
    assert words in " ".join(
        text.get_text() for text in figure.findobj(Text)
    )  # a caption's lines are texts of their own
