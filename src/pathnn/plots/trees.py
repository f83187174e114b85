"""Draw WL-trees and Path-Trees (figure 2 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Collection as Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from pathnn.paths.options import check_collection
from pathnn.paths.trie import Path
from pathnn.plots.page import (
    EDGE,
    FADED,
    INK,
    RADIUS,
    REACHED,
    WARM,
    Shape,
    draw_disc,
    lettered,
    make_page,
    vertex_labels,
)  # fmt: skip
from pathnn.plots.paths import panels_of
from pathnn.theory.graphs import check_source
from pathnn.theory.trees import Tree, path_tree, wl_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Placed:
    """A node of a tree on the page: `walk` has the vertices from the root to it, `parent` is an index."""

    x: float
    y: float
    walk: tuple[int, ...]
    parent: int | None


def tree_layout(tree: Tree) -> list[Placed]:
    """Place a tree: leaves one unit apart from left to right, parents centred above their children.

    The root is at height 0, every level one unit lower. Nodes come in depth-first order.

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

LEAF, LEVEL, WIDEST = 0.41, 0.62, 22.0
"""Inches between leaves and between levels, and of the widest drawing."""


def draw_trees(
    edge_index: Tensor,
    num_nodes: int,
    source: int,
    *,
    kinds: TreeKind | Sequence[TreeKind] = ("wl", "sp", "sp+", "ap"),
    k: int | Sequence[int] = 2,
    labels: Sequence[str] | None = None,
) -> Figure:
    """Draw the trees of height `k` (one, or one per tree) that are rooted at `source`.

    Nodes of the WL-tree are grey and dashed if the walk from the root repeats a vertex: the proof of theorem 3.3 calls
    them redundant, and the others are the AP-tree. Raises `ValueError` for a tree of more than 400 nodes.

    >>> from pathnn.theory.examples import figure_graph
    >>> figure = draw_trees(*figure_graph(), source=0, k=(3, 2, 2, 3))
    >>> len(figure.axes)
    4
    """
    check_source(source, num_nodes)
    names = vertex_labels(num_nodes, labels)
    layouts, captions = [], []
    for kind, height in panels_of(kinds, k):
        tree = _tree(edge_index, num_nodes, source, kind, height)
        if tree.size > MAX_TREE_NODES:
            raise ValueError(
                f"the {kind} tree of height {height} has {tree.size:,} nodes, too many to draw: expected at most "
                f"{MAX_TREE_NODES}. Lower k, or draw another vertex."
            )
        layouts.append(tree_layout(tree))
        captions.append(f"{NAMES[kind]} of {names[source]}, height {height}")
    leaf, radius = leaf_size(layouts)
    figure, axes = make_page([panel_size(layout, leaf, radius) for layout in layouts], lettered(captions))
    for layout, panel in zip(layouts, axes, strict=True):
        draw_tree(panel, layout, names, leaf, radius)
    return figure


def _tree(edge_index: Tensor, num_nodes: int, source: int, kind: str, height: int) -> Tree:
    if kind == "wl":
        return wl_tree(edge_index, num_nodes, source, height)
    if kind not in NAMES:
        raise ValueError(f"kinds has {kind!r}: expected 'wl', 'sp', 'sp+' or 'ap'.")
    return path_tree(edge_index, num_nodes, source, collection=check_collection(kind), k=height)


def leaf_size(layouts: Sequence[Sequence[Placed]]) -> tuple[float, float]:
    """Return the inches between leaves and the radius of discs, so that all trees fit side by side."""
    leaves = sum(1 + max(node.x for node in layout) for layout in layouts)
    leaf = max(min(LEAF, WIDEST / leaves), 0.16)
    return leaf, min(RADIUS, 0.45 * leaf)


def panel_size(layout: Sequence[Placed], leaf: float, radius: float) -> tuple[float, float]:
    """Return the width and height of the drawing of a tree, in inches."""
    pad = 2 * radius + 0.06
    return leaf * max(node.x for node in layout) + pad, -LEVEL * min(node.y for node in layout) + pad


@dataclass(frozen=True)
class NodeStyle:
    """The style of a node of a tree; a dashed node has a dashed edge to its parent."""

    fill: str
    shape: Shape = "disc"
    dashed: bool = False


Style = Callable[[Path], NodeStyle]
"""The style of a node as a function of its walk from the root."""


def fading_style(walk: Path) -> NodeStyle:
    """Return a dark style for the root, and grey for redundant nodes, whose walk repeats a vertex.

    >>> fading_style((0, 1, 0)).dashed, fading_style((0, 1, 2)).dashed
    (True, False)
    """
    redundant = len(set(walk)) < len(walk)
    return NodeStyle(INK if len(walk) == 1 else FADED if redundant else REACHED, dashed=redundant)


def draw_tree(
    axes: Any,
    layout: Sequence[Placed],
    labels: Sequence[str],
    leaf: float,
    radius: float,
    *,
    style: Style = fading_style,
    highlight: Container[Path] = (),
    pad: float | None = None,
) -> None:
    """Draw the layout of a tree, `pad` inches from the border of the panel.

    Edges to nodes with a walk in `highlight` have a warm colour.
    """
    pad = radius + 0.03 if pad is None else pad
    spots = [(pad + leaf * node.x, -pad + LEVEL * node.y) for node in layout]
    for node, spot in zip(layout, spots, strict=True):
        look = style(node.walk)
        if node.parent is not None:
            (x, y), (px, py) = spot, spots[node.parent]
            line: dict[str, Any] = {"color": EDGE, "linestyle": (0, (2, 1.5))} if look.dashed else {"color": "#7A7A7A"}
            line |= {"color": WARM, "linewidth": 2.0} if node.walk in highlight else {"linewidth": 1.2}
            axes.plot([px, x], [py, y], zorder=1, **line)
        label, faded = labels[node.walk[-1]], look.dashed
        draw_disc(axes, spot, label, fill=look.fill, radius=radius, faded=faded, shape=look.shape)
