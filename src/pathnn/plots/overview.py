"""Draw a graph, the paths from one vertex, and their tree on one page (`pathnn paths --draw`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from pathnn.files import atomic_write
from pathnn.paths.cpu.extract import count_per_source
from pathnn.paths.csr import to_csr
from pathnn.paths.options import Collection, PathOptions
from pathnn.plots.graphs import sketch
from pathnn.plots.page import lettered, make_page
from pathnn.plots.paths import NAMES, choose_colors, draw_colored, maximal
from pathnn.plots.trees import MAX_TREE_NODES, draw_tree, leaf_size, panel_size, tree_layout
from pathnn.theory.graphs import check_source
from pathnn.theory.trees import path_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_GRAPH_PATHS = 200_000
FORMATS = (".svg", ".pdf", ".png")


def draw_paths_and_tree(edge_index: Tensor, num_nodes: int, source: int, *, collection: Collection, k: int) -> Figure:
    """Draw three panels: the graph, its paths of length 1..k from `source`, and the tree of those paths.

    The labels of the vertices are their numbers. Raises `ValueError` for more than 200 vertices or 400 tree nodes.

    >>> from pathnn.theory.examples import figure_graph
    >>> figure = draw_paths_and_tree(*figure_graph(), source=0, collection="ap", k=3)
    >>> len(figure.axes)
    3
    """
    check_source(source, num_nodes)
    labels = [str(v) for v in range(num_nodes)]
    graph = sketch(edge_index, num_nodes, labels=labels)
    _check_count(edge_index, num_nodes, source, collection, k)
    tree = path_tree(edge_index, num_nodes, source, collection=collection, k=k)
    layout = tree_layout(tree)
    leaf, radius = leaf_size([layout])
    captions = [
        "the graph",
        f"{NAMES[collection]} of length up to {k} from vertex {source}",
        "the tree of this path" if tree.size == 2 else f"the tree of these {tree.size - 1} paths",
    ]
    sizes = [graph.size, graph.size, panel_size(layout, leaf, radius)]
    figure, (whole, paths, trees) = make_page(sizes, lettered(captions))
    graph.draw(whole, source=source)
    (colors,) = choose_colors([maximal([node.walk for node in layout if len(node.walk) > 1])])
    draw_colored(paths, graph, source, colors)
    draw_tree(trees, layout, labels, leaf, radius)
    return figure


def _check_count(edge_index: Tensor, num_nodes: int, source: int, collection: Collection, k: int) -> None:
    """Raise `ValueError` if there are too many paths to draw, before the slow search for them."""
    counts, complete = count_per_source(to_csr(edge_index, num_nodes), PathOptions(collection, k), MAX_GRAPH_PATHS)
    from_source, total = int(counts[source].sum()), int(counts.sum())
    if complete and from_source < MAX_TREE_NODES and total <= MAX_GRAPH_PATHS:
        return
    least = "" if complete else "at least "
    raise ValueError(
        f"too many paths to draw: {least}{from_source:,} from vertex {source}, {least}{total:,} in the graph; "
        f"expected at most {MAX_TREE_NODES - 1} and {MAX_GRAPH_PATHS:,}. "
        "Lower k, or choose another graph, source or collection."
    )


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format of its suffix."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path} is not a picture file: expected a name that ends in {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(2, "the folder does not exist", str(path.parent))
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=200)
