"""One level of the trie in plain torch operations: any device, any floating type; the pattern for other
kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.nn.backends.tokens import LevelInput, ProjectedInputs

BLOCK_PARENTS: int | None = None
"""All parents of a level at a time: few large operations."""


def _gates(level: LevelInput, tables: ProjectedInputs) -> tuple[Tensor, ...]:
    """The activated gates i, f, g, o of every entry, views of one `[n, 4d]` tensor."""
    z = tables.vertex.index_select(0, level.vertex)
    if level.projected is not None and level.parent is not None:
        z += level.projected.index_select(0, level.parent)
    if tables.edge is not None and level.edge is not None:
        z += tables.edge.index_select(0, level.edge)
    if tables.distance is not None and level.distance is not None:
        z += tables.distance.index_select(0, level.distance)
    i, f, g, o = z.chunk(4, dim=1)
    return i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()


def _cell_before(level: LevelInput) -> Tensor | None:
    if level.cell is None or level.parent is None:
        return None
    return level.cell.index_select(0, level.parent)


def forward_level(level: LevelInput, tables: ProjectedInputs, hidden: Tensor, cell: Tensor | None) -> None:
    """Write the states of a level into `hidden` and `cell` (None where no later step reads it)."""
    i, f, g, o = _gates(level, tables)
    before = _cell_before(level)
    state = torch.mul(i, g, out=cell) if cell is not None else i * g
    if before is not None:
        state.addcmul_(f, before)
    torch.mul(o, state.tanh(), out=hidden)


def backward_level(
    level: LevelInput,
    tables: ProjectedInputs,
    grad_hidden: Tensor,
    grad_cell: Tensor | None,
    grads: ProjectedInputs,
    grad_projected: Tensor | None,
    grad_cell_parent: Tensor | None,
) -> None:
    """Add the gradients of a level to those of the tables, of the projected parents and of the parents'
    cells."""
    i, f, g, o = _gates(level, tables)
    before = _cell_before(level)
    state = i * g if before is None else (i * g).addcmul_(f, before)
    state.tanh_()
    grad_state = grad_hidden * o * (1 - state * state)
    if grad_cell is not None:
        grad_state += grad_cell
    if grad_cell_parent is not None and level.parent is not None:
        grad_cell_parent.index_add_(0, level.parent, grad_state * f)
    grad_f = torch.zeros_like(f) if before is None else grad_state * before * f * (1 - f)
    grad_z = torch.cat(
        [
            grad_state * g * i * (1 - i),
            grad_f,
            grad_state * i * (1 - g * g),
            grad_hidden * state * o * (1 - o),
        ],
        dim=1,
    )
    sum_rows(grads.vertex, level.vertex, grad_z)
    if grad_projected is not None and level.parent is not None:
        sum_rows(grad_projected, level.parent, grad_z)
    if grads.edge is not None and level.edge is not None:
        _sum_into_few(grads.edge, level.edge, grad_z)
    if grads.distance is not None and level.distance is not None:
        _sum_into_few(grads.distance, level.distance, grad_z)


def sum_rows(target: Tensor, index: Tensor, rows: Tensor) -> None:
    """`target[index[j]] += rows[j]` for every `j`; in order on the CPU, in any order on other devices."""
    target.index_add_(0, index, rows)


def _sum_into_few(target: Tensor, index: Tensor, rows: Tensor) -> None:
    """The same for a table of few rows, as a matrix product: no contention for the rows, the same sum every
    time."""
    if target.size(0) > 64:
        return sum_rows(target, index, rows)
    one_hot = torch.zeros(target.size(0), rows.size(0), dtype=rows.dtype, device=rows.device)
    one_hot[index.long(), torch.arange(rows.size(0), device=rows.device)] = 1
    target.addmm_(one_hot, rows)
    return None
