"""Graphs without features get the constant 1 at every vertex, as in the paper's synthetic experiments."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs


def with_ones(graphs: PackedGraphs, y: Tensor | None = None) -> PackedGraphs:
    """The same graphs with `x = 1` (one channel) and the targets `y`.

    >>> with_ones(PackedGraphs.from_edges([torch.tensor([[0, 1], [1, 0]])], [2]))[0].x.tolist()
    [[1.0], [1.0]]
    """
    return replace(graphs, x=torch.ones(graphs.num_nodes, 1, dtype=torch.bool), y=graphs.y if y is None else y)
