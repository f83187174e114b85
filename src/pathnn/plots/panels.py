"""Pages that mix graphs and trees: each panel knows its size, its caption and how to draw itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Collection as Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathnn.plots.graphs import sketch
from pathnn.plots.page import RADIUS, lettered, make_page
from pathnn.plots.tidy_tree import tree_layout
from pathnn.plots.trees import LEAF, Style, draw_tree, fading_style, panel_size
from pathnn.theory.graphs import Graph, Path
from pathnn.theory.tree import Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Panel:
    """A drawing of a known size in inches."""

    size: tuple[float, float]
    caption: str
    draw: Callable[[Any], None]


def graph_panel(
    graph: Graph,
    caption: str,
    *,
    source: int | Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
    positions: Sequence[Sequence[float]] | None = None,
    highlight: Container[tuple[int, int]] = (),
) -> Panel:
    """A graph, its source or sources dark, the edges in `highlight` (u < v) in a warm colour.

    >>> from pathnn.theory.examples import triangle
    >>> graph_panel(triangle(), "a triangle").caption
    'a triangle'
    """
    drawing = sketch(*graph, labels=labels, positions=positions)
    return Panel(drawing.size, caption, lambda axes: drawing.draw(axes, source=source, highlight=highlight))


def tree_panel(
    tree: Tree,
    caption: str,
    *,
    labels: Sequence[str],
    style: Style = fading_style,
    highlight: Container[Path] = (),
) -> Panel:
    """A tree; `labels[v]` names vertex v, `style` says how a node looks.

    >>> tree_panel(Tree(0, (Tree(1),)), "an edge", labels=["a", "b"]).size[1] > 0.9
    True
    """
    layout = tree_layout(tree)
    # Squares and diamonds reach further than discs.
    wide = 1.25 if any(style(node.walk).shape != "disc" for node in layout) else 1.0
    leaf = wide * LEAF
    size = panel_size(layout, leaf, wide * RADIUS)

    def draw(axes: Any) -> None:
        draw_tree(axes, layout, labels, leaf, RADIUS, style=style, highlight=highlight, pad=wide * RADIUS + 0.03)

    return Panel(size, caption, draw)


def draw_panels(panels: Sequence[Panel], *, middle: bool = False) -> Figure:
    """Draw panels side by side, with (a), (b), ... before their captions.

    >>> from pathnn.theory.examples import hexagon, triangle
    >>> len(draw_panels([graph_panel(hexagon(), "a hexagon"), graph_panel(triangle(), "a triangle")]).axes)
    2
    """
    if not panels:
        raise ValueError("there are no panels: expected at least one.")
    captions = lettered([panel.caption for panel in panels])
    figure, axes = make_page([panel.size for panel in panels], captions, middle=middle)
    for panel, place in zip(panels, axes, strict=True):
        panel.draw(place)
    return figure
