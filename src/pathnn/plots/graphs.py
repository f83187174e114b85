"""Compute the layout of a graph, and draw it."""

from __future__ import annotations

from collections.abc import Collection as Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pathnn.plots.page import EDGE, INK, PLAIN, RADIUS, REACHED, draw_disc, vertex_labels
from pathnn.theory.graphs import neighbors

Points = NDArray[np.float64]

EDGE_LENGTH = 0.95
LARGEST = 7.0
MAX_VERTICES = 200


def graph_layout(edge_index: Tensor, num_nodes: int) -> Points:
    """Compute positions of the vertices of a graph, `[num_nodes, 2]`.

    The layout of each component is that of Kamada and Kawai, which starts from a drawing without crossings if there is
    one. The mean length of edges is 1. Components are side by side, the largest first.

    >>> from pathnn.theory.examples import hexagon
    >>> graph_layout(*hexagon()).shape
    (6, 2)
    """
    import networkx as nx

    graph = nx.Graph(list(zip(*edge_index.tolist(), strict=True)))
    graph.add_nodes_from(range(num_nodes))
    positions = np.zeros((num_nodes, 2))
    left = 0.0
    for vertices in sorted(map(sorted, nx.connected_components(graph)), key=lambda part: (-len(part), part)):
        part = graph.subgraph(vertices)
        found = nx.kamada_kawai_layout(part, pos=nx.planar_layout(part) if nx.is_planar(part) else None)
        points = _turn_flat(np.array([found[v] for v in vertices]))
        lengths = [np.linalg.norm(found[u] - found[v]) for u, v in part.edges if u != v]
        points /= float(np.mean(lengths)) if lengths else 1.0
        low, high = points.min(axis=0), points.max(axis=0)
        positions[vertices] = points - [low[0] - left, (low[1] + high[1]) / 2]
        left += high[0] - low[0] + 0.8
    return positions


def _turn_flat(points: Points) -> Points:
    """Rotate the longest direction (of a round drawing, the first edge) to the horizontal; vertex 0 is on the left."""
    centred = points - points.mean(axis=0)
    spread, axes = np.linalg.eigh(centred.T @ centred)
    if len(points) > 1 and spread[0] > 0.9 * spread[1]:
        x, y = (centred[1] - centred[0]) / np.linalg.norm(centred[1] - centred[0])
        axes = np.array([[-y, x], [x, y]])
    turned: Points = centred @ axes[:, ::-1]
    return turned * np.where(turned[0] > 1e-6, -1.0, 1.0)


@dataclass(frozen=True)
class Sketch:
    """A graph with positions in inches, from the upper left corner, and the radius of its discs."""

    points: Points
    edges: list[tuple[int, int]]
    labels: list[str]
    radius: float
    size: tuple[float, float]

    def draw(
        self,
        axes: Any,
        *,
        source: int | Container[int] | None = None,
        reached: Container[int] = (),
        hidden: Container[tuple[int, int]] = (),
        fills: Sequence[str] | None = None,
    ) -> None:
        """Draw edges that are not hidden, and discs: sources dark, reached vertices tinted, unless `fills` is given."""
        dark = () if source is None else (source,) if isinstance(source, int) else source
        width = max(0.5, 1.6 * self.radius / RADIUS)
        for u, v in self.edges:
            if (u, v) not in hidden:
                axes.plot(*self.points[[u, v]].T, color=EDGE, linewidth=width, zorder=1, solid_capstyle="round")
        for v, (x, y) in enumerate(self.points.tolist()):
            fill = fills[v] if fills else INK if v in dark else REACHED if v in reached else PLAIN
            draw_disc(axes, (x, y), self.labels[v], fill=fill, radius=self.radius)


def sketch(
    edge_index: Tensor,
    num_nodes: int,
    *,
    labels: Sequence[str] | None = None,
    positions: Sequence[Sequence[float]] | None = None,
) -> Sketch:
    """Scale a graph to the page; `positions` replaces the computed layout."""
    adjacent = neighbors(edge_index, num_nodes)
    if not 0 < num_nodes <= MAX_VERTICES:
        raise ValueError(f"num_nodes={num_nodes}: expected 1 to {MAX_VERTICES} vertices. Draw a subgraph instead.")
    points = graph_layout(edge_index, num_nodes) if positions is None else np.asarray(positions, dtype=float)
    if points.shape != (num_nodes, 2):
        raise ValueError(f"positions has shape {list(points.shape)}: expected [{num_nodes}, 2].")
    edges = [(u, v) for u in range(num_nodes) for v in adjacent[u] if u < v]
    lengths = [float(np.linalg.norm(points[u] - points[v])) for u, v in edges]
    unit = EDGE_LENGTH / max(sum(lengths) / len(lengths), 1e-9) if lengths else EDGE_LENGTH  # inches, the mean edge
    extent = float(np.ptp(points, axis=0).max())
    points = points * (min(unit, LARGEST / extent) if extent > 0 else unit)
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1) + 9.0 * np.eye(num_nodes)
    radius = float(min(RADIUS, 0.4 * apart.min()))
    pad = radius + 0.06
    low, high = points.min(axis=0) - pad, points.max(axis=0) + pad
    points = np.stack([points[:, 0] - low[0], points[:, 1] - high[1]], axis=1)
    width, height = (high - low).tolist()
    return Sketch(points, edges, vertex_labels(num_nodes, labels), radius, (width, height))
