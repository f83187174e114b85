"""Read networkx graphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.packed import PackedGraphs


def from_networkx(graphs: Iterable[Any]) -> PackedGraphs:
    """Pack a list of `networkx.Graph`: vertices in networkx's order, both directions of each edge, no loops.

    If every vertex of every graph has the attribute `x` (a number or a list of numbers), it becomes `x`. The graph
    attribute `y` becomes `y`.

    >>> import networkx
    >>> from_networkx([networkx.path_graph(3), networkx.cycle_graph(4)])
    PackedGraphs(graphs=2, nodes=7, edges=12, device='cpu')
    """
    if hasattr(graphs, "is_directed"):
        raise DataError(f"got one {type(graphs).__name__}: expected a list of graphs, from_networkx([graph]).")
    members = list(graphs)
    edges = [_edges(i, graph) for i, graph in enumerate(members)]
    packed = PackedGraphs.from_edges(edges, [graph.number_of_nodes() for graph in members])
    x = _stack("x", [values.get("x") for graph in members for _, values in graph.nodes(data=True)], "vertices")
    targets = [graph.graph.get("y") for graph in members]
    exact = [value if value is None or isinstance(value, Tensor) else np.array(value) for value in targets]
    y = _stack("y", exact, "graphs")  # Python's numbers are float64
    y = y.view(-1) if y is not None and not y.is_floating_point() and y.size(1) == 1 else y
    return replace(packed, x=x, y=y).validate()


def _edges(i: int, graph: Any) -> Tensor:
    if graph.is_directed():
        raise DataError(f"graph {i} is directed; expected undirected graphs: call to_undirected() on it first.")
    number = {vertex: position for position, vertex in enumerate(graph)}
    pairs = {(number[u], number[v]) for u, v in graph.edges() if u != v}
    return torch.tensor(sorted(pairs | {(v, u) for u, v in pairs}), dtype=torch.long).view(-1, 2).t()


def _stack(name: str, values: list[Any], things: str) -> Tensor | None:
    if not values or all(value is None for value in values):
        return None
    if any(value is None for value in values):
        raise DataError(f"some {things} have no attribute {name!r}: expected all of them to have it, or none.")
    rows = [torch.as_tensor(value).view(-1) for value in values]
    if len({row.numel() for row in rows}) > 1:
        raise DataError(f"attribute {name!r} has different lengths: expected the same number of values everywhere.")
    return torch.stack(rows)
