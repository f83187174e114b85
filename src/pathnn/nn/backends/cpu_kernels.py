"""The compiled loops of `cpu_loops` for torch tensors. float32 only."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from pathnn.nn.backends import cpu_loops
from pathnn.nn.backends.tokens import LevelInput, ProjectedInputs

BLOCK_PARENTS: int | None = 512
"""Parents worked on at a time: what is computed for them stays in the cache until their children have read it."""


def forward_level(level: LevelInput, tables: ProjectedInputs, hidden: Tensor, cell: Tensor | None) -> None:
    """Write the states of a level into `hidden` and `cell` (None where no later step reads it)."""
    cpu_loops.forward_level(_inputs(level, tables), _array(hidden), _array(cell))


def backward_level(
    level: LevelInput,
    tables: ProjectedInputs,
    grad_hidden: Tensor,
    grad_cell: Tensor | None,
    grads: ProjectedInputs,
    grad_projected: Tensor | None,
    grad_cell_parent: Tensor | None,
) -> None:
    """Add the gradients of a level to those of the tables, of the projected parents and of the parents' cells."""
    gradients = cpu_loops.Gradients(
        hidden=_array(grad_hidden),
        cell=_array(grad_cell),
        vertex_table=_array(grads.vertex),
        edge_table=_array(grads.edge if level.edge is not None else None),
        distance_table=_array(grads.distance if level.distance is not None else None),
        projected=_array(grad_projected),
        parent_cell=_array(grad_cell_parent),
    )
    cpu_loops.backward_level(_inputs(level, tables), gradients)


def sum_rows(target: Tensor, index: Tensor, rows: Tensor) -> None:
    """`target[index[j]] += rows[j]` for every `j`, in order."""
    cpu_loops.sum_rows(_array(target), index.numpy(), _array(rows))


def _inputs(level: LevelInput, tables: ProjectedInputs) -> cpu_loops.Inputs:
    width = tables.vertex.size(1)
    nothing = np.zeros(level.vertex.numel(), dtype=np.int32)
    parent, vertex, edge, distance = (
        nothing if index is None else index.numpy()
        for index in (level.parent, level.vertex, level.edge, level.distance)
    )
    return cpu_loops.Inputs(
        parent=parent,
        vertex=vertex,
        edge=edge,
        distance=distance,
        projected=_array(level.projected, (1, width)),
        cell=_array(level.cell, (1, width // 4)),
        vertex_table=_array(tables.vertex),
        edge_table=_array(tables.edge if level.edge is not None else None, (1, width)),
        distance_table=_array(tables.distance if level.distance is not None else None, (1, width)),
    )


def _array(tensor: Tensor | None, absent: tuple[int, int] = (0, 0)) -> np.ndarray[Any, Any]:
    """The tensor's own memory as an array, or zeros of shape `absent`."""
    if tensor is None:
        return np.zeros(absent, dtype=np.float32)
    assert tensor.is_contiguous()
    return tensor.detach().numpy()
