"""The trie engine's work on one core or one GPU: all levels down, and all levels up again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from pathnn.nn.backends import torch_kernels
from pathnn.nn.backends.tokens import LevelInput, LevelTokens, ProjectedInputs

State = tuple[Tensor, Tensor]
"""h and c of the entries of one level."""


def kernels_for(like: Tensor) -> ModuleType:
    """The module whose `forward_level`, `backward_level` and `sum_rows` suit a tensor's device and type."""
    if like.device.type == "cpu" and like.dtype == torch.float32:
        from pathnn.nn.backends import cpu_kernels

        return cpu_kernels
    return torch_kernels


def forward_sweep(
    tables: ProjectedInputs, weight_hh: Tensor, levels: list[LevelTokens], out: Tensor | None, *, summed: bool
) -> list[State]:
    """Run all levels, return the states of the inner ones.

    The paths' states go to `out`: added to the rows of their sources if `summed`, else one row each. Without
    `out` the last level is left out.
    """
    kernels = kernels_for(tables.vertex)
    kept: list[State] = []
    for rows in levels[:-1]:
        hidden = tables.vertex.new_empty(rows.num_entries, weight_hh.size(1))
        cell = torch.empty_like(hidden)
        for block in _blocks(rows, weight_hh, kept[-1] if kept else None, kernels.BLOCK_PARENTS):
            kernels.forward_level(block.level, tables, hidden[block.entries], cell[block.entries])
        kept.append((hidden, cell))
    if out is not None:
        for block in _blocks(levels[-1], weight_hh, kept[-1], kernels.BLOCK_PARENTS):
            _forward_last(kernels, tables, block, out, summed)
    return kept


def _forward_last(kernels: ModuleType, tables: ProjectedInputs, block: _Block, out: Tensor, summed: bool) -> None:
    """Write the states of a block of paths to its rows of `out`, or add them to their sources' rows."""
    hidden = out.new_empty(block.level.vertex.numel(), out.size(1)) if summed else out[block.entries]
    kernels.forward_level(block.level, tables, hidden, None)
    if summed:
        kernels.sum_rows(out, block.level.vertex, hidden)


def backward_sweep(
    tables: ProjectedInputs,
    weight_hh: Tensor,
    levels: list[LevelTokens],
    kept: list[State],
    grad: Tensor,
    grads: ProjectedInputs,
    grad_weight: Tensor,
    *,
    summed: bool,
) -> None:
    """Add to `grads` and `grad_weight` what `grad`, the gradient of what `forward_sweep` writes, brings."""
    kernels = kernels_for(tables.vertex)
    grad_hidden: Tensor | None = None if summed else grad
    grad_cell: Tensor | None = None
    for t in range(len(levels) - 1, -1, -1):
        parents = kept[t - 1] if t else None
        above = None if parents is None else (torch.empty_like(parents[0]), torch.zeros_like(parents[1]))
        for block in _blocks(levels[t], weight_hh, parents, kernels.BLOCK_PARENTS):
            level, entries = block.level, block.entries
            d_hidden = grad.index_select(0, level.vertex) if grad_hidden is None else grad_hidden[entries]
            d_cell = None if grad_cell is None else grad_cell[entries]
            if parents is None or above is None or level.projected is None:
                kernels.backward_level(level, tables, d_hidden, d_cell, grads, None, None)
                continue
            d_projected = torch.zeros_like(level.projected)
            kernels.backward_level(level, tables, d_hidden, d_cell, grads, d_projected, above[1][block.parents])
            torch.mm(d_projected, weight_hh, out=above[0][block.parents])
            grad_weight.addmm_(d_projected.t(), parents[0][block.parents])
        grad_hidden, grad_cell = above if above is not None else (None, None)


class _Block(NamedTuple):
    """Some consecutive parents, all their children, and what the children's step reads."""

    parents: slice
    entries: slice
    level: LevelInput


def _blocks(rows: LevelTokens, weight_hh: Tensor, parents: State | None, size: int | None) -> Iterator[_Block]:
    """A level in blocks of `size` parents (None: all of them), with `W_hh h` of the parents computed for each."""
    if parents is None or rows.parent is None:
        everything = LevelInput(*rows, projected=None, cell=None)
        yield _Block(slice(0, 0), slice(0, rows.num_entries), everything)
        return
    hidden, cell = parents
    starts = list(range(0, hidden.size(0), size)) if size and hidden.size(0) else [0]
    bounds = [0, rows.num_entries]
    if len(starts) > 1:
        inner = torch.tensor(starts[1:], dtype=rows.parent.dtype)
        bounds[1:1] = torch.searchsorted(rows.parent, inner).tolist()
    for (a, b), (first, last) in zip(pairwise([*starts, hidden.size(0)]), pairwise(bounds), strict=True):
        block = rows.slice(first, last, parent_start=a) if len(starts) > 1 else rows
        level = LevelInput(*block, projected=hidden[a:b] @ weight_hh.t(), cell=cell[a:b])
        yield _Block(slice(a, b), slice(first, last), level)
