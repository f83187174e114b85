"""PyG's `Data` objects into packed graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs
from pathnn.data.ragged import offsets

FIELDS = ("x", "edge_attr", "y")


def from_pyg(data_list: Iterable[Any]) -> PackedGraphs:
    """Pack a PyG dataset or any list of `Data`: `x`, `edge_index`, `edge_attr`, `y` and the size.

    >>> from torch_geometric.data import Data
    >>> from_pyg([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=torch.tensor([1.5]))])
    PackedGraphs(graphs=1, nodes=2, edges=2, device='cpu')
    """
    from torch_geometric.data.data import BaseData

    if isinstance(data_list, BaseData):
        raise ValueError(f"one {type(data_list).__name__} came: expected a dataset or a list, from_pyg([data]).")
    graphs = list(data_list)
    if not graphs:
        raise ValueError("no graphs came: expected a PyG dataset or a list with at least one Data.")
    for i, data in enumerate(graphs):
        _check(i, data)
    fields = {name: _stack(name, graphs) for name in FIELDS}
    return PackedGraphs(
        edge_index=torch.cat([data.edge_index for data in graphs], dim=1),
        node_ptr=offsets(torch.tensor([data.num_nodes for data in graphs])),
        edge_ptr=offsets(torch.tensor([data.edge_index.size(1) for data in graphs])),
        x=fields["x"],
        edge_attr=fields["edge_attr"],
        y=fields["y"],
    ).validate()


def _check(i: int, data: Any) -> None:
    edge_index = getattr(data, "edge_index", None)
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"graph {i}: expected torch_geometric.data.Data with edge_index [2, edges], got {data!r}.")


def _stack(name: str, graphs: list[Any]) -> Tensor | None:
    values: list[Any] = [getattr(data, name, None) for data in graphs]
    if all(value is None for value in values):
        return None
    missing = next((i for i, value in enumerate(values) if value is None), None)
    if missing is not None:
        raise ValueError(f"graph {missing} has no {name}, others have: expected all graphs to have it, or none.")
    if name == "y":
        values = [_target(i, value) for i, value in enumerate(values)]
    shapes = {tuple(value.shape[1:]) for value in values}
    if len(shapes) > 1:
        raise ValueError(f"{name} has rows of different shapes, {sorted(shapes)}: expected one shape for all graphs.")
    return torch.cat(values)


def _target(i: int, y: Any) -> Tensor:
    """PyG stores a graph's target as a number, as `[1]` or as `[1, targets]`; all become one row."""
    y = y if isinstance(y, Tensor) else torch.from_numpy(np.array(y))  # Python's numbers are float64
    y = y.view(1) if y.dim() == 0 else y
    if y.size(0) != 1:
        raise ValueError(f"graph {i}: y has shape {tuple(y.shape)}; expected one target row, [1] or [1, targets].")
    return y
