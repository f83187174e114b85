"""Draw WL-trees and Path-Trees (figure 2 of the paper), also next to their graph (`pathnn paths --draw`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from pathnn.files import atomic_write
from pathnn.paths.cpu.extract import count_per_source
from pathnn.paths.csr import to_csr
from pathnn.paths.options import Collection, PathOptions, check_collection
from pathnn.plots.graphs import sketch
from pathnn.plots.page import EDGE, FADED, INK, RADIUS, REACHED, draw_disc, lettered, make_page, vertex_labels
from pathnn.plots.paths import NAMES as PATH_NAMES, choose_colors, draw_colored, maximal, panels_of
from pathnn.theory.graphs import check_source
from pathnn.theory.trees import Tree, path_tree, wl_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Placed:
    """A node of a tree on the page; `walk` has the vertices from the root to the node, and `parent` is an index."""

    x: float
    y: float
    walk: tuple[int, ...]
    parent: int | None


def tree_layout(tree: Tree) -> list[Placed]:
    """Compute positions of the nodes of a tree, in depth-first order.

    Leaves are one unit apart, and parents are centred above their children. The root is at height 0, and each level is
    one unit lower.

    >>> [(node.x, node.y) for node in tree_layout(Tree(0, (Tree(1), Tree(2))))]
    [(0.5, 0.0), (0.0, -1.0), (1.0, -1.0)]
    """
    placed: list[Placed] = []
    leaves = 0

    def place(node: Tree, walk: tuple[int, ...], parent: int | None) -> float:
        nonlocal leaves
        here = len(placed)
        placed.append(Placed(0.0, 0.0, walk, parent))
        xs = [place(child, (*walk, child.vertex), here) for child in node.children]
        x = (xs[0] + xs[-1]) / 2 if xs else float(leaves)
        leaves += not xs
        placed[here] = Placed(x, 1.0 - len(walk), walk, parent)
        return x

    place(tree, (tree.vertex,), None)
    return placed


TreeKind = Literal["wl", "sp", "sp+", "ap"]

NAMES: dict[TreeKind, str] = {"wl": "WL-tree", "sp": "SP-tree", "sp+": "SP$^+$-tree", "ap": "AP-tree"}

MAX_TREE_NODES = 400
FORMATS = (".svg", ".pdf", ".png")

LEAF, LEVEL, WIDEST = 0.41, 0.62, 22.0
"""Inches between leaves and between levels, and the width of the widest drawing in inches."""


def draw_trees(
    edge_index: Tensor,
    num_nodes: int,
    source: int,
    *,
    kinds: TreeKind | Sequence[TreeKind] = ("wl", "sp", "sp+", "ap"),
    k: int | Sequence[int] = 2,
    labels: Sequence[str] | None = None,
) -> Figure:
    """Draw the trees of a vertex side by side.

    Nodes of the WL-tree are grey and dashed if the walk from the root repeats a vertex: the proof of theorem 3.3 calls
    them redundant, and the other nodes are the AP-tree. `k` is one height, or one for each tree.
    Raises `ValueError` for a tree of more than 400 nodes.

    >>> from pathnn.theory.examples import figure_graph
    >>> figure = draw_trees(*figure_graph(), source=0, k=(3, 2, 2, 3))
    >>> len(figure.axes)
    4
    """
    check_source(source, num_nodes)
    names = vertex_labels(num_nodes, labels)
    layouts, captions = [], []
    for kind, height in panels_of(kinds, k):
        if kind not in NAMES:
            raise ValueError(f"kinds has {kind!r}: expected 'wl', 'sp', 'sp+' or 'ap'.")
        layouts.append(tree_layout(_small_tree(edge_index, num_nodes, source, kind, height)))
        captions.append(f"{NAMES[kind]} of {names[source]}, height {height}")
    leaf, radius = leaf_size(layouts)
    figure, axes = make_page([panel_size(layout, leaf, radius) for layout in layouts], lettered(captions))
    for layout, panel in zip(layouts, axes, strict=True):
        draw_tree(panel, layout, names, leaf, radius)
    return figure


def _small_tree(edge_index: Tensor, num_nodes: int, source: int, kind: TreeKind | Collection, k: int) -> Tree:
    """Return a tree; raise `ValueError` if it has too many nodes to draw, before its paths are listed."""
    if kind == "wl":
        tree = wl_tree(edge_index, num_nodes, source, k)
        size, least = tree.size, ""
    else:
        options, sources = PathOptions(kind, k), torch.tensor([source])
        counts, complete = count_per_source(to_csr(edge_index, num_nodes), options, MAX_TREE_NODES, sources)
        size, least = 1 + int(counts.sum()), "" if complete else "at least "
    if size > MAX_TREE_NODES:
        raise ValueError(
            f"the {kind} tree of height {k} from vertex {source} has {least}{size:,} nodes, too many to draw: expected "
            f"at most {MAX_TREE_NODES}. Lower k, or choose another source or collection."
        )
    return tree if kind == "wl" else path_tree(edge_index, num_nodes, source, collection=kind, k=k)


def leaf_size(layouts: Sequence[Sequence[Placed]]) -> tuple[float, float]:
    """Return the inches between leaves and the radius of discs with which all trees fit side by side."""
    leaves = sum(1 + max(node.x for node in layout) for layout in layouts)
    leaf = max(min(LEAF, WIDEST / leaves), 0.16)
    return leaf, min(RADIUS, 0.45 * leaf)


def panel_size(layout: Sequence[Placed], leaf: float, radius: float) -> tuple[float, float]:
    """Return the width and height of a tree on the page, in inches."""
    pad = 2 * radius + 0.06
    return leaf * max(node.x for node in layout) + pad, -LEVEL * min(node.y for node in layout) + pad


def draw_tree(axes: Any, layout: Sequence[Placed], labels: Sequence[str], leaf: float, radius: float) -> None:
    """Draw a tree with a dark root; redundant nodes, whose walks repeat a vertex, are grey and dashed."""
    pad = radius + 0.03
    spots = [(pad + leaf * node.x, -pad + LEVEL * node.y) for node in layout]
    for node, spot in zip(layout, spots, strict=True):
        redundant = len(set(node.walk)) < len(node.walk)
        if node.parent is not None:
            line: dict[str, Any] = {"color": EDGE, "linestyle": (0, (2, 1.5))} if redundant else {"color": "#7A7A7A"}
            axes.plot(*zip(spots[node.parent], spot, strict=True), zorder=1, linewidth=1.2, **line)
        fill = INK if node.parent is None else FADED if redundant else REACHED
        draw_disc(axes, spot, labels[node.walk[-1]], fill=fill, radius=radius, faded=redundant)


def draw_paths_and_tree(edge_index: Tensor, num_nodes: int, source: int, *, collection: Collection, k: int) -> Figure:
    """Draw a graph, its paths of length 1..k from a vertex, and the tree of these paths; labels are numbers."""
    check_source(source, num_nodes)
    labels = [str(v) for v in range(num_nodes)]
    graph = sketch(edge_index, num_nodes, labels=labels)
    tree = _small_tree(edge_index, num_nodes, source, check_collection(collection), k)
    layout = tree_layout(tree)
    leaf, radius = leaf_size([layout])
    captions = [
        "the graph",
        f"{PATH_NAMES[collection]} of length up to {k} from vertex {source}",
        "the tree of this path" if tree.size == 2 else f"the tree of these {tree.size - 1} paths",
    ]
    sizes = [graph.size, graph.size, panel_size(layout, leaf, radius)]
    figure, (whole, paths, trees) = make_page(sizes, lettered(captions))
    graph.draw(whole, source=source)
    (colors,) = choose_colors([maximal([node.walk for node in layout if len(node.walk) > 1])])
    draw_colored(paths, graph, source, colors)
    draw_tree(trees, layout, labels, leaf, radius)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format of the suffix of its path."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path} is not a picture file: expected a name that ends in {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(2, "the folder does not exist", str(path.parent))
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=200)
