"""What the first iterations of a PathNN do to one vertex (figure 3 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from pathnn.collection import Collection
from pathnn.plots.graphs import Sketch, sketch
from pathnn.plots.page import CAPTION_SIZE, EDGE, INK, MARGIN, PLAIN, RADIUS, draw_disc
from pathnn.theory.annotated import annotated_path_sets
from pathnn.theory.graphs import Path, check_source, paths_by_length

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Pale versions of the page's line colours, with room for black letters.
FILLS = (PLAIN, "#9CC9E8", "#F3B48A", "#8FD6BE", "#E5B9D0", "#F5D68B", "#C9C9C9", "#B9A7E0")
STEP, ROW = 0.5, 0.46
BOX = (0.62, 0.3)
GAP = 0.55
HEADLINE = 0.3


def draw_iterations(
    edge_index: Tensor,
    num_nodes: int,
    source: int,
    *,
    collection: Collection = "sp",
    k: int = 2,
    labels: Sequence[str] | None = None,
    positions: Sequence[Sequence[float]] | None = None,
) -> Figure:
    """Draw k iterations, one below the other: colours before, the paths from `source` and their sum, colours after.

    Vertices have the same colour exactly when a PathNN (its functions injective, residual term included) gives them
    the same vector. Paths are read from their far end to the source.

    >>> from pathnn.theory.examples import figure_graph
    >>> len(draw_iterations(*figure_graph(), 0).axes)
    1
    """
    from matplotlib.figure import Figure

    check_source(source, num_nodes)
    graph = sketch(edge_index, num_nodes, labels=labels, positions=positions)
    fills = iteration_fills(edge_index, num_nodes, collection=collection, k=k)
    by_length = paths_by_length(edge_index, num_nodes, collection=collection, k=k)
    rows = [[path for path in paths if path[0] == source] for paths in by_length]
    heights = [max(graph.size[1], ROW * (len(paths) + 1)) + HEADLINE for paths in rows]
    width = 2 * graph.size[0] + STEP * k + 2 * RADIUS + 2 * BOX[0] + 4 * GAP
    height = sum(heights) + GAP * (len(rows) - 1)
    total = width + 2 * MARGIN, height + 2 * MARGIN
    figure = Figure(figsize=total, facecolor="white")
    axes = figure.add_axes((MARGIN / total[0], MARGIN / total[1], width / total[0], height / total[1]))
    axes.set(xlim=(0, width), ylim=(-height, 0))
    axes.set_axis_off()
    top = 0.0
    for i, paths in enumerate(rows):
        _draw_row(axes, graph, source, paths, (fills[i], fills[i + 1]), top, heights[i], i + 1, width)
        top -= heights[i] + GAP
    return figure


def iteration_fills(edge_index: Tensor, num_nodes: int, *, collection: Collection, k: int) -> list[list[str]]:
    """The colour of each vertex before the first and after each iteration; a class that is not split keeps its colour.

    >>> from pathnn.theory.examples import open_triplet
    >>> [len(set(fills)) for fills in iteration_fills(*open_triplet(), collection="sp", k=2)]
    [1, 2, 2]
    """
    (levels,) = annotated_path_sets([(edge_index, num_nodes)], collection=collection, k=k, residual=True)
    known: dict[frozenset[int], str] = {}
    result = []
    for level in levels:
        classes = [frozenset(u for u in range(num_nodes) if level[u] == color) for color in level]
        for members in classes:
            known.setdefault(members, FILLS[len(known) % len(FILLS)])
        result.append([known[members] for members in classes])
    return result


def _draw_row(
    axes: Any,
    graph: Sketch,
    source: int,
    paths: Sequence[Path],
    fills: tuple[list[str], list[str]],
    top: float,
    height: float,
    iteration: int,
    width: float,
) -> None:
    """One iteration, from left to right: the graph, the paths through the LSTM, their sum, the graph after it."""
    middle = top - HEADLINE - (height - HEADLINE) / 2
    _headline(axes, top, iteration, graph.labels[source], width)
    _draw_graph(axes, graph, fills[0], (0.0, middle + graph.size[1] / 2))
    left = graph.size[0] + GAP + RADIUS
    lstm = left + STEP * iteration + RADIUS + GAP / 2
    total = (lstm + BOX[0] + GAP * 1.4, middle)
    for row, path in enumerate(paths):
        y = middle + ROW * (len(paths) / 2 - row)
        _line(axes, (left, y), (lstm, y))
        for place, vertex in enumerate(reversed(path)):
            draw_disc(axes, (left + STEP * place, y), graph.labels[vertex], fill=fills[0][vertex])
        _box(axes, (lstm, y), "LSTM")
        _line(axes, (lstm + BOX[0], y), total)
    # The residual term: what the source was before goes into the sum as well.
    before = lstm + BOX[0] / 2, middle - ROW * len(paths) / 2
    _line(axes, before, total)
    draw_disc(axes, before, graph.labels[source], fill=fills[0][source])
    draw_disc(axes, total, "$+$")
    _line(axes, total, (total[0] + GAP, middle))
    draw_disc(axes, (total[0] + GAP, middle), graph.labels[source], fill=fills[1][source])
    _draw_graph(axes, graph, fills[1], (width - graph.size[0], middle + graph.size[1] / 2))


def _headline(axes: Any, top: float, iteration: int, name: str, width: float) -> None:
    texts = (
        (0.0, "left", f"({'ab'[iteration - 1] if iteration < 3 else iteration}) iteration {iteration}"),
        (width / 2, "center", f"paths of length {iteration} from {name}, and {name} itself"),
        (width, "right", f"after iteration {iteration}"),
    )
    for x, side, text in texts:
        axes.text(x, top, text, ha=side, va="top", fontsize=CAPTION_SIZE, color=INK)


def _draw_graph(axes: Any, graph: Sketch, fills: list[str], corner: tuple[float, float]) -> None:
    moved = Sketch(graph.points + list(corner), graph.edges, graph.labels, graph.radius, graph.size)
    moved.draw(axes, fills=fills)


def _box(axes: Any, at: tuple[float, float], text: str) -> None:
    from matplotlib.patches import Rectangle

    x, y = at
    axes.add_patch(Rectangle((x, y - BOX[1] / 2), *BOX, facecolor="#F2F2F2", edgecolor=INK, linewidth=0.9, zorder=3))
    axes.text(x + BOX[0] / 2, y, text, ha="center", va="center_baseline", fontsize=8, color="black", zorder=4)


def _line(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.plot([start[0], end[0]], [start[1], end[1]], color=EDGE, linewidth=1.6, zorder=1)
