"""Draw the paths from a vertex in their graph (figure 1 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from pathnn.paths.options import Collection
from pathnn.paths.trie import Path
from pathnn.plots.graphs import Sketch, sketch
from pathnn.plots.page import LINES, lettered, make_page
from pathnn.theory.graphs import check_source, paths_from

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES: dict[Collection, str] = {"sp": "single shortest paths", "sp+": "all shortest paths", "ap": "all paths"}


def draw_paths(
    edge_index: Tensor,
    num_nodes: int,
    source: int,
    *,
    collection: Collection | Sequence[Collection] = ("sp", "sp+", "ap"),
    k: int | Sequence[int] = 2,
    labels: Sequence[str] | None = None,
    positions: Sequence[Sequence[float]] | None = None,
) -> Figure:
    """Draw a graph, and next to it its paths from a vertex, in a panel for each collection.

    Each path that no other path continues is a coloured line with an arrow at its far end; its prefixes are paths, too.
    If there are more paths than colours, the width of each edge is proportional to the number of its paths.
    `k` is one length, or one for each collection. The default of `labels` is v1, v2, ..., and that of `positions` is
    the result of `graph_layout`.

    >>> from pathnn.theory.examples import figure_graph
    >>> figure = draw_paths(*figure_graph(), source=0, k=(2, 2, 3))
    >>> len(figure.axes)
    4
    """
    check_source(source, num_nodes)
    graph = sketch(edge_index, num_nodes, labels=labels, positions=positions)
    captions = ["the graph"]
    found: list[list[Path]] = []
    for name, length in panels_of(collection, k):
        by_length = paths_from(edge_index, num_nodes, source, collection=name, k=length)
        found.append(maximal([path for paths in by_length for path in paths]))
        note = " (width: number of paths)" if len(found[-1]) > len(LINES) else ""
        captions.append(f"{NAMES[name]} of length up to {length} from {graph.labels[source]}{note}")
    figure, axes = make_page([graph.size] * len(captions), lettered(captions))
    graph.draw(axes[0])
    for panel, colors in zip(axes[1:], choose_colors(found), strict=True):
        draw_colored(panel, graph, source, colors)
    return figure


def draw_colored(axes: Any, graph: Sketch, source: int, colors: dict[Path, str]) -> None:
    """Draw a graph, and paths from `source` in their colours, or edges of different widths for too many paths."""
    users: dict[tuple[int, int], list[Path]] = {}
    for path in colors:
        for u, v in pairwise(path):
            users.setdefault((min(u, v), max(u, v)), []).append(path)
    graph.draw(axes, source=source, reached={vertex for path in colors for vertex in path}, hidden=users)
    if len(colors) <= len(LINES):
        _draw_lanes(axes, graph, colors, users)
        return
    most = max(map(len, users.values()))
    for (u, v), paths in users.items():
        width = max(1.2, min(9.0, 72 * graph.radius) * len(paths) / most)
        axes.plot(*graph.points[[u, v]].T, color=LINES[0], linewidth=width, zorder=2, solid_capstyle="butt")


def panels_of(collection: str | Sequence[str], k: int | Sequence[int]) -> list[tuple[Any, int]]:
    """Return the name and the length of each panel; a single `k` is the length of all panels."""
    names = [collection] if isinstance(collection, str) else list(collection)
    lengths = [k] * len(names) if isinstance(k, int) else list(k)
    if not names:
        raise ValueError("there is nothing to draw: expected at least one collection or kind of tree.")
    if len(lengths) != len(names):
        raise ValueError(f"k has {len(lengths)} values: expected 1, or {len(names)}, one for each panel.")
    return list(zip(names, lengths, strict=True))


def maximal(paths: Sequence[Path]) -> list[Path]:
    """Return the paths that no other path continues, in lexicographic order."""
    continued = {path[:-1] for path in paths}
    return sorted(path for path in paths if path not in continued)


def choose_colors(panels: Sequence[Sequence[Path]]) -> list[dict[Path, str]]:
    """Choose a colour for each path of each panel; a path that a later panel continues has the same colour there."""
    chosen: list[dict[Path, str]] = []
    known: dict[Path, str] = {}
    for paths in reversed(panels):
        if len(paths) > len(LINES):
            chosen.append(dict.fromkeys(paths, LINES[0]))
            continue
        colors: dict[Path, str] = {}
        for path in paths:
            kept = [color for longer, color in known.items() if longer[: len(path)] == path]
            colors[path] = next(c for c in (*kept, *LINES) if c not in colors.values())
        known |= colors
        chosen.append(colors)
    return chosen[::-1]


def _draw_lanes(axes: Any, graph: Sketch, colors: dict[Path, str], users: dict[tuple[int, int], list[Path]]) -> None:
    """Draw the paths along each edge as parallel lanes, in the order of `colors`."""
    lane = min(0.06, 1.5 * graph.radius / max(map(len, users.values()), default=1))
    for path, color in colors.items():
        for step, (u, v) in enumerate(pairwise(path), start=1):
            low, high = min(u, v), max(u, v)
            dx, dy = graph.points[high] - graph.points[low]
            across = np.array([-dy, dx]) / np.hypot(dx, dy)
            rank = users[low, high].index(path) - (len(users[low, high]) - 1) / 2
            start, end = graph.points[[u, v]] + rank * lane * across
            if step < len(path) - 1:
                axes.plot(*np.stack([start, end]).T, color=color, linewidth=2.0, zorder=2, solid_capstyle="butt")
                continue
            tip = end - (graph.radius + 0.01) * (end - start) / np.hypot(dx, dy)
            head = {"head_width": 0.09, "head_length": 0.11, "length_includes_head": True}
            axes.arrow(*start, *(tip - start), width=2 / 72, color=color, linewidth=0, zorder=2, **head)
