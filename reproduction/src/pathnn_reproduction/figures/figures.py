"""The paper's figures, one function each, with graphs of our choice that satisfy the captions.

The paper's pictures are not part of its text. What the captions say about the graphs is checked by the tests; how ours
satisfy them is listed in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pathnn.data import PackedGraphs
from pathnn.data.paths import count_per_graph
from pathnn.files import atomic_write
from pathnn.paths.options import COLLECTIONS, PathOptions
from pathnn.plots import draw_paths, draw_trees
from pathnn.plots.page import COOL, PLAIN, REACHED, WARM, vertex_labels
from pathnn.theory import path_tree, wl_tree
from pathnn.theory.examples import figure_graph, hexagon, open_triplet, triangle, two_triangles
from pathnn.theory.graphs import Graph, neighbors
from pathnn_reproduction.bench.shapes import graph_set
from pathnn_reproduction.figures.drawing import (
    Curve,
    NodeStyle,
    Style,
    draw_growth,
    draw_iterations,
    draw_panels,
    graph_panel,
    tree_panel,
)
from pathnn_reproduction.theory.examples import (
    bipartite_six,
    complete_four,
    one_graph_against_theorem_3_3,
    path_of_five,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LABELS = vertex_labels(7)
TRIANGLE = [[0.0, 0.8], [-0.5, 0.0], [0.5, 0.0]]
"""Positions of a triangle."""

TRIANGLE_PATH = ((triangle, "triangle"), (path_of_five, "path"))
"""The smallest pair against theorem 3.3 for vertices of two graphs."""


def paths_figure() -> Figure:
    """Figure 1: a graph, and the paths of the three collections from v1."""
    return draw_paths(*figure_graph(), source=0, k=(2, 2, 3))


def trees_figure() -> Figure:
    """Figure 2: the WL-tree and the Path-Trees of v1."""
    return draw_trees(*figure_graph(), source=0, k=(3, 2, 2, 3))


def iterations_figure() -> Figure:
    """Figure 3: two iterations of PathNN-SP."""
    return draw_iterations(figure_graph(), 0, collection="sp", k=2)


def wl_tree_figure() -> Figure:
    """Appendix A.1: incremental nodes of the WL-tree in red, redundant ones in green (and dashed)."""
    tree = wl_tree(*figure_graph(), source=0, height=3)

    def style(walk: tuple[int, ...]) -> NodeStyle:
        redundant = len(set(walk)) < len(walk)
        return NodeStyle(COOL if redundant else WARM, dashed=redundant)

    caption = "the WL-tree of $v_{1}$, height 3: incremental nodes red, redundant nodes green and dashed"
    return draw_panels([tree_panel(tree, caption, labels=LABELS, style=style)])


def wl_pair_figure() -> Figure:
    """Appendix A.1: two graphs that 1-WL confuses and every PathNN distinguishes."""
    return draw_panels(
        [graph_panel(hexagon(), "$G_{1}$: a hexagon"), graph_panel(two_triangles(), "$G_{2}$: two triangles")],
        middle=True,
    )


def triplet_triangle_figure() -> Figure:
    """Appendix A.2: the open triplet and the triangle, their WL-trees, and their SP- and SP⁺-trees."""
    sides = (
        (open_triplet(), "open triplet", ["$v$", "$a$", "$b$"], "v"),
        (triangle(), "triangle", ["$u$", "$c$", "$d$"], "u"),
    )
    across = {(0, 1, 2), (0, 2, 1)}  # the walks of the WL-tree that take the problematic edge
    panels = [
        graph_panel(graph, caption, source=0, labels=labels, positions=TRIANGLE, highlight={(1, 2)})
        for graph, caption, labels, _ in sides
    ]
    for graph, _, labels, root in sides:
        panels.append(tree_panel(wl_tree(*graph, 0, 2), f"$W_{root}^2$", labels=labels, highlight=across))
    for graph, _, labels, root in sides:
        tree = path_tree(*graph, 0, collection="sp+", k=2)
        panels.append(tree_panel(tree, f"$P_{root}^2$, SP and SP$^+$", labels=labels, highlight=across))
    return draw_panels(panels)


def distances_figure() -> Figure:
    """Appendix C: two vertices whose AP-trees of height 2 differ only in the distances to the root."""
    graphs, trees = [], []
    for graph, root, places in (
        (complete_four(), "v", None),
        (bipartite_six(), "u", [[x, y] for x in (0, 1, 2) for y in (1.2, 0)]),
    ):
        labels = [f"${root}$", *(str(v) for v in range(1, graph[1]))]
        graphs.append(graph_panel(graph, f"the graph of ${root}$", source=0, labels=labels, positions=places))
        tree = path_tree(*graph, 0, collection="ap", k=2)
        caption = f"$AP_{root}^2$ (squares: distance 1, diamonds: distance 2)"
        trees.append(tree_panel(tree, caption, labels=labels, style=distance_style(graph)))
    return draw_panels([*graphs, *trees])


def distance_style(graph: Graph) -> Style:
    """Return squares for nodes at distance 1 from the root, diamonds for distance 2, a disc for the root.

    >>> distance_style(complete_four())((0, 1, 2)).shape, distance_style(bipartite_six())((0, 1, 2)).shape
    ('square', 'diamond')
    """
    adjacent = neighbors(*graph)

    def style(walk: tuple[int, ...]) -> NodeStyle:
        if len(walk) == 1:
            return NodeStyle(PLAIN)
        near = walk[-1] in adjacent[walk[0]]
        return NodeStyle(REACHED, shape="square") if near else NodeStyle("#F3B48A", shape="diamond")

    return style


def triangle_path_figure() -> Figure:
    """Ours: the smallest pair against theorem 3.3 for vertices of two graphs, and its AP-trees."""
    bent = [[0.0, 1.5], [-0.5, 0.75], [0.5, 0.75], [-1.0, 0.0], [1.0, 0.0]]
    panels = [
        graph_panel(triangle(), "a triangle", source=0, positions=TRIANGLE),
        graph_panel(path_of_five(), "a path of five", source=0, positions=bent),
    ]
    for graph, name in TRIANGLE_PATH:
        tree = path_tree(*graph(), source=0, collection="ap", k=3)
        panels.append(tree_panel(tree, f"AP-tree, {name}, height 3", labels=LABELS))
    return draw_panels(panels)


def triangle_path_wl_figure() -> Figure:
    """Ours: the WL-trees of the same pair, which differ at height 3."""
    trees = [(wl_tree(*graph(), source=0, height=3), name) for graph, name in TRIANGLE_PATH]
    return draw_panels([tree_panel(tree, f"WL-tree, {name}, height 3", labels=LABELS) for tree, name in trees])


def one_graph_figure() -> Figure:
    """Ours: the smallest pair against theorem 3.3 in one graph, with its AP-trees of height 3."""
    graph = one_graph_against_theorem_3_3()
    flat = [[0.0, 0.8], [0.8, 1.6], [1.9, 1.6], [2.7, 0.8], [1.9, 0.0], [0.8, 0.0], [1.2, 0.8]]
    panels = [graph_panel(graph, "the graph", source=(0, 3), positions=flat)]
    for source in (0, 3):
        tree = path_tree(*graph, source=source, collection="ap", k=3)
        panels.append(tree_panel(tree, f"AP-tree of {LABELS[source]}, height 3", labels=LABELS))
    return draw_panels(panels)


def growth_figure() -> Figure:
    """Ours: the number of paths by K and by n on random graphs, and the paper's bound n b^K."""
    panels: dict[tuple[str, str, str], dict[str, Curve]] = {}
    for shape, number, longest in (("zinc", 64, 8), ("dd", 8, 5)):
        graphs, lengths = graph_set(shape, number), list(range(1, longest + 1))
        b = _largest_degree(graphs)
        curves: dict[str, Curve] = {}
        for name, paths in _paths(graphs, longest).items():
            curves[name] = lengths, (paths.sum(dim=0) / graphs.num_nodes).tolist()
        curves[f"$b^K$, b = {b}"] = lengths, [b**k for k in lengths]
        panels[f"graphs like those of {shape.upper()}", "K", "paths of length K per vertex"] = curves
    graphs, k = graph_set("peptides", 200), 4
    sizes, b, curves = graphs.node_ptr.diff(), _largest_degree(graphs), {}
    groups = torch.split(sizes.argsort(), 20)
    means = [sizes[group].double().mean().item() for group in groups]
    for name, paths in _paths(graphs, k).items():
        curves[name] = means, [paths[group, k - 1].double().mean().item() for group in groups]
    curves[f"$n b^{k}$, b = {b}"] = means, [n * b**k for n in means]
    panels["graphs like those of Peptides", "n, vertices", f"paths of length {k} per graph"] = curves
    return draw_growth(panels)


def _paths(graphs: PackedGraphs, k: int) -> dict[str, Tensor]:
    """Return the number of paths of each graph and length, by collection."""
    return {name.upper(): count_per_graph(graphs, PathOptions(name, k)) for name in COLLECTIONS}


def _largest_degree(graphs: PackedGraphs) -> int:
    return int(torch.bincount(graphs.union()[0]).max())


_ALL = (
    paths_figure, trees_figure, iterations_figure, wl_tree_figure, wl_pair_figure, triplet_triangle_figure,
    distances_figure, triangle_path_figure, triangle_path_wl_figure, one_graph_figure, growth_figure,
)  # fmt: skip
FIGURES: dict[str, Callable[[], Figure]] = {draw.__name__.removesuffix("_figure"): draw for draw in _ALL}
"""The function of each figure by name: seven of the paper, three about theorem 3.3, one about the number of paths."""


CHANGING = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
"""By format, what matplotlib writes into a file that is another one each day or with each version."""


def save_picture(figure: Figure, path: Path, *, dpi: int) -> None:
    """Write a figure in the format that the file's name says, without dates and versions in it."""
    metadata = {CHANGING[path.suffix[1:]]: None}
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=dpi, metadata=metadata)
