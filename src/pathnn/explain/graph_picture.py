"""Scores on a graph that is no molecule: drawn by matplotlib (extra `plot`), and its paths in words."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from torch import Tensor

from pathnn.explain.explanation import Edge, PathScore
from pathnn.explain.tint import hex_color, tint
from pathnn.plots.graphs import MAX_VERTICES, sketch
from pathnn.plots.layout import graph_layout
from pathnn.plots.page import make_page


class GraphPicture:
    """A graph to draw on and to name paths in; vertices are their numbers, from 0."""

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        self.edge_index, self.num_nodes = edge_index, num_nodes

    @cached_property
    def _positions(self) -> Any:
        return graph_layout(self.edge_index, self.num_nodes)

    def words(self, path: PathScore) -> str:
        """A path as its vertices.

        >>> import torch
        >>> GraphPicture(torch.zeros(2, 0, dtype=torch.long), 3).words(PathScore((0, 2, 1), 0.5))
        '0–2–1'
        """
        return "–".join(map(str, path.vertices))

    def draw(self, vertices: Mapping[int, float], edges: Mapping[Edge, float], *, numbers: bool = True) -> str:
        """An SVG with vertices and edges coloured by their scores; nothing for a graph that no page holds."""
        from matplotlib import rc_context

        if not 0 < self.num_nodes <= MAX_VERTICES:
            return ""
        most = max((abs(score) for score in (*vertices.values(), *edges.values())), default=0.0)
        labels = [str(v) if numbers else "" for v in range(self.num_nodes)]
        graph = sketch(self.edge_index, self.num_nodes, labels=labels, positions=self._positions)
        figure, (axes,) = make_page([graph.size], [""])
        fills = [hex_color(tint(vertices.get(v, 0.0), most)) for v in range(self.num_nodes)]
        graph.draw(axes, fills=fills)
        for (u, v), score in edges.items():
            axes.plot(*graph.points[[u, v]].T, color=hex_color(tint(score, most)), linewidth=5, zorder=0.5)
        text = io.StringIO()
        with rc_context({"svg.hashsalt": "pathnn"}):  # the same names in every file
            figure.savefig(text, format="svg", metadata={"Date": None})
        svg = text.getvalue()
        return svg[svg.index("<svg") :]
