"""Draw pages of graphs and trees: each panel knows its size, its caption and how to draw itself."""

from __future__ import annotations

from collections.abc import Callable, Collection as Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pathnn.paths.options import Collection
from pathnn.paths.trie import Path
from pathnn.plots.graphs import Sketch, sketch
from pathnn.plots.page import (
    CAPTION_SIZE,
    EDGE,
    FADED,
    INK,
    LINES,
    MARGIN,
    PLAIN,
    RADIUS,
    REACHED,
    WARM,
    draw_disc,
    lettered,
    make_page,
)  # fmt: skip
from pathnn.plots.trees import LEAF, LEVEL, panel_size, tree_layout
from pathnn.theory.fingerprints import classes, hashed_annotations
from pathnn.theory.graphs import Graph, edges_to_index, paths_from
from pathnn.theory.trees import Tree
from pathnn_reproduction.theory.compare import Example

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

    def draw(axes: Any) -> None:
        drawing.draw(axes, source=source, hidden=highlight)
        for u, v in drawing.edges:
            if (u, v) in highlight:
                axes.plot(*drawing.points[[u, v]].T, color=WARM, linewidth=1.6 * drawing.radius / RADIUS, zorder=1)

    return Panel(drawing.size, caption, draw)


@dataclass(frozen=True)
class NodeStyle:
    """The style of a node of a tree; a dashed node has a dashed edge to its parent."""

    fill: str
    shape: Literal["disc", "square", "diamond"] = "disc"
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


def tree_panel(
    tree: Tree,
    caption: str,
    *,
    labels: Sequence[str],
    style: Style = fading_style,
    highlight: Container[Path] = (),
) -> Panel:
    """A tree; `labels[v]` names vertex v, `style` says how a node looks, edges to nodes in `highlight` are warm.

    >>> tree_panel(Tree(0, (Tree(1),)), "an edge", labels=["a", "b"]).size[1] > 0.9
    True
    """
    layout = tree_layout(tree)
    looks = [style(node.walk) for node in layout]
    # Squares and diamonds reach further than discs.
    wide = 1.25 if any(look.shape != "disc" for look in looks) else 1.0

    def draw(axes: Any) -> None:
        from matplotlib.patches import RegularPolygon

        pad = wide * RADIUS + 0.03
        spots = [(pad + wide * LEAF * node.x, -pad + LEVEL * node.y) for node in layout]
        for node, look, spot in zip(layout, looks, spots, strict=True):
            if node.parent is not None:
                line: dict[str, Any] = {"linewidth": 1.2, "color": EDGE if look.dashed else "#7A7A7A"}
                line |= {"linestyle": (0, (2, 1.5))} if look.dashed else {}
                line |= {"linewidth": 2.0, "color": WARM} if node.walk in highlight else {}
                axes.plot(*zip(spots[node.parent], spot, strict=True), zorder=1, **line)
            draw_disc(axes, spot, labels[node.walk[-1]], fill=look.fill, faded=look.dashed)
            if look.shape != "disc":
                axes.patches[-1].remove()
                turn = 0.785398 if look.shape == "square" else 0.0  # a square stands on its side
                edge = {"edgecolor": INK, "facecolor": look.fill, "linewidth": 0.9, "zorder": 3}
                axes.add_patch(RegularPolygon(spot, 4, radius=1.25 * RADIUS, orientation=turn, **edge))

    return Panel(panel_size(layout, wide * LEAF, wide * RADIUS), caption, draw)


def draw_panels(panels: Sequence[Panel], *, middle: bool = False) -> Figure:
    """Draw panels side by side, with (a), (b), ... before their captions.

    >>> from pathnn.theory.examples import hexagon, triangle
    >>> len(draw_panels([graph_panel(hexagon(), "a hexagon"), graph_panel(triangle(), "a triangle")]).axes)
    2
    """
    captions = lettered([panel.caption for panel in panels])
    figure, axes = make_page([panel.size for panel in panels], captions, middle=middle)
    for panel, place in zip(panels, axes, strict=True):
        panel.draw(place)
    return figure


FILLS = (PLAIN, "#9CC9E8", "#F3B48A", "#8FD6BE", "#E5B9D0", "#F5D68B", "#C9C9C9", "#B9A7E0")
"""Pale versions of the page's line colours, which black letters can be read on."""

STEP, ROW, BOX, GAP, HEADLINE = 0.5, 0.46, (0.62, 0.3), 0.55, 0.3
"""Inches of a picture of iterations: between discs and between rows, of an LSTM, between parts, of a headline."""


def draw_iterations(graph: Graph, source: int, *, collection: Collection, k: int) -> Figure:
    """Draw k iterations, one below the other: colours before, the paths from `source` and their sum, colours after.

    Vertices have the same colour exactly when a PathNN (its functions injective, residual term included) gives them
    the same vector. Paths are read from their far end to the source.

    >>> from pathnn.theory.examples import figure_graph
    >>> len(draw_iterations(figure_graph(), 0, collection="sp", k=2).axes)
    1
    """
    from matplotlib.figure import Figure

    drawing, fills = sketch(*graph), iteration_fills(graph, collection=collection, k=k)
    rows = paths_from(*graph, source, collection=collection, k=k)
    heights = [max(drawing.size[1], ROW * (len(paths) + 1)) + HEADLINE for paths in rows]
    width = 2 * drawing.size[0] + STEP * k + 2 * RADIUS + 2 * BOX[0] + 4 * GAP
    height = sum(heights) + GAP * (len(rows) - 1)
    total = width + 2 * MARGIN, height + 2 * MARGIN
    figure = Figure(figsize=total, facecolor="white")
    axes = figure.add_axes((MARGIN / total[0], MARGIN / total[1], width / total[0], height / total[1]))
    axes.set(xlim=(0, width), ylim=(-height, 0))
    axes.set_axis_off()
    top, name = 0.0, drawing.labels[source]
    for number, (paths, size) in enumerate(zip(rows, heights, strict=True), start=1):
        texts = (
            (0.0, "left", f"({'ab'[number - 1] if number < 3 else number}) iteration {number}"),
            (width / 2, "center", f"paths of length {number} from {name}, and {name} itself"),
            (width, "right", f"after iteration {number}"),
        )
        for x, side, text in texts:
            axes.text(x, top, text, ha=side, va="top", fontsize=CAPTION_SIZE, color=INK)
        middle = top - HEADLINE - (size - HEADLINE) / 2
        _draw_iteration(axes, drawing, source, paths, (fills[number - 1], fills[number]), middle, width)
        top -= size + GAP
    return figure


def iteration_fills(graph: Graph, *, collection: Collection, k: int) -> list[list[str]]:
    """Return the colour of each vertex before and after each iteration; a class that stays whole keeps its colour.

    >>> from pathnn.theory.examples import open_triplet
    >>> [len(set(fills)) for fills in iteration_fills(open_triplet(), collection="sp", k=2)]
    [1, 2, 2]
    """
    (found,) = hashed_annotations([graph], collection=collection, k=k, distances=False)
    known: dict[frozenset[int], str] = {}
    result = []
    for level in found.levels:
        names = classes(level.T)
        same = [frozenset((names == name).nonzero()[0].tolist()) for name in names]
        for members in same:
            known.setdefault(members, FILLS[len(known) % len(FILLS)])
        result.append([known[members] for members in same])
    return result


def _draw_iteration(
    axes: Any,
    graph: Sketch,
    source: int,
    paths: Sequence[Path],
    fills: tuple[list[str], list[str]],
    middle: float,
    width: float,
) -> None:
    """Draw one iteration, from left to right: the graph, the paths through the LSTM, their sum, the next graph."""
    from matplotlib.patches import Rectangle

    def line(start: tuple[float, float], end: tuple[float, float]) -> None:
        axes.plot([start[0], end[0]], [start[1], end[1]], color=EDGE, linewidth=1.6, zorder=1)

    for corner, colors in zip((0.0, width - graph.size[0]), fills, strict=True):
        shift = corner, middle + graph.size[1] / 2
        replace(graph, points=graph.points + shift).draw(axes, fills=colors)
    left = graph.size[0] + GAP + RADIUS
    lstm = left + STEP * max((len(path) - 1 for path in paths), default=0) + RADIUS + GAP / 2
    total = (lstm + BOX[0] + GAP * 1.4, middle)
    after = (total[0] + GAP, middle)
    for row, path in enumerate(paths):
        y = middle + ROW * (len(paths) / 2 - row)
        line((left, y), (lstm, y))
        for place, vertex in enumerate(reversed(path)):
            draw_disc(axes, (left + STEP * place, y), graph.labels[vertex], fill=fills[0][vertex])
        box: dict[str, Any] = {"facecolor": "#F2F2F2", "edgecolor": INK, "linewidth": 0.9, "zorder": 3}
        axes.add_patch(Rectangle((lstm, y - BOX[1] / 2), *BOX, **box))
        axes.text(lstm + BOX[0] / 2, y, "LSTM", ha="center", va="center_baseline", fontsize=8, color="black", zorder=4)
        line((lstm + BOX[0], y), total)
    # The residual term: what the source was before goes into the sum as well.
    before = lstm + BOX[0] / 2, middle - ROW * len(paths) / 2
    line(before, total)
    line(total, after)
    draw_disc(axes, before, graph.labels[source], fill=fills[0][source])
    draw_disc(axes, total, "$+$")
    draw_disc(axes, after, graph.labels[source], fill=fills[1][source])


def draw_failure_rates(families: Sequence[str], rates: Mapping[str, Sequence[float | None]]) -> Figure:
    """Draw bars of `rates[test][family]`, in percent, with the value on top; None draws nothing.

    >>> figure = draw_failure_rates(["SR(16,6,2,2)"], {"network": [0.0], "3-WL": [100.0]})
    >>> len(figure.axes[0].patches)
    2
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.5, 1.6 * len(families)), 3.4), layout="constrained")
    axes = figure.add_subplot()
    width = 0.84 / max(len(rates), 1)
    for i, (test, values) in enumerate(rates.items()):
        places = [j + (i - (len(rates) - 1) / 2) * width for j in range(len(families))]
        shown = [(x, value) for x, value in zip(places, values, strict=True) if value is not None]
        bars = axes.bar([x for x, _ in shown], [value for _, value in shown], width * 0.92, color=LINES[i], label=test)
        axes.bar_label(bars, [_short(value) for _, value in shown], fontsize=6.5, color=INK, padding=1)
    axes.set_xticks(range(len(families)), families, fontsize=8)
    axes.set_ylabel("pairs confused, %")
    axes.set_ylim(0, 108)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(rates), fontsize=8, frameon=False)
    return figure


Curve = tuple[Sequence[float], Sequence[float]]
"""The x and y of some points."""


def draw_growth(panels: Mapping[tuple[str, str, str], Mapping[str, Curve]]) -> Figure:
    """Draw curves on logarithmic scales, by title and labels of both axes; the last curve is a bound, dashed.

    >>> len(draw_growth({("ZINC", "K", "paths"): {"SP": ([1, 2], [3, 4]), "bound": ([1, 2], [5, 25])}}).axes)
    1
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(4.3 * len(panels), 3.4), layout="constrained")
    places = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, ((title, xlabel, ylabel), curves) in zip(places, panels.items(), strict=True):
        *ours, (bound, line) = curves.items()
        for color, (name, curve) in zip(LINES, ours, strict=False):
            axes.plot(*curve, label=name, color=color, marker="o", markersize=3, linewidth=1.2)
        axes.plot(*line, label=bound, color=INK, linestyle="--", linewidth=1.2)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel, yscale="log")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(fontsize=8, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _short(value: float) -> str:
    """Return a number with few digits.

    >>> _short(0.0), _short(77.56), _short(0.0098), _short(0.02)
    ('0', '78', '<.01', '0.02')
    """
    digits = 0 if value >= 10 or value == 0 else 1 if value >= 0.1 else 2
    return f"{value:.{digits}f}" if value == 0 or value >= 0.01 else "<.01"


def draw_example(example: Example) -> Figure:
    """Draw the graph or graphs of an example, its vertices dark.

    >>> from pathnn_reproduction.theory.compare import Example
    >>> figure = draw_example(Example((3, 1), 2, ((1, ()), (2, ((0, 1),))), (0, 0)))
    >>> len(figure.axes)
    2
    """
    graphs = [(edges_to_index(edges), num_nodes) for num_nodes, edges in example.graphs]
    names = [f"$v_{{{v + 1}}}$" for v in example.vertices]
    height = f"height {example.height}"
    sources: Sequence[int | Sequence[int] | None] = example.vertices
    captions = [f"{name}, {height}" for name in names]
    if not names:
        sources, captions = [None] * len(graphs), [f"{word} graph, {height}" for word in ("first", "second")]
    elif len(graphs) == 1:
        sources, captions = [example.vertices], [f"{' and '.join(names)}, {height}"]
    panels = [graph_panel(graph, text, source=one) for graph, text, one in zip(graphs, captions, sources, strict=False)]
    return draw_panels(panels, middle=True)
