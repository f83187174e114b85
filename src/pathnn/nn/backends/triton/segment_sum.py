"""Sums of the rows of each group on a GPU, in a fixed order where `index_add_` would use atomics."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pathnn.nn.backends.triton.order import sort_keys


def cuda_sum(rows: Tensor, group: Tensor, groups: int) -> Tensor:
    """`out[g]`, `[groups, d]`: the sum of the rows of group `g`; float32 on a GPU, differentiable once."""
    out: Tensor = _CudaSum.apply(rows, group, groups)  # type: ignore[no-untyped-call]
    return out


class _CudaSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, group: Tensor, groups: int) -> Tensor:
        from pathnn.nn.backends.triton.sweep import sum_rows

        ctx.save_for_backward(group)
        out = rows.new_empty(groups, rows.size(1))
        with torch.cuda.device(rows.device):
            sum_rows(rows.contiguous(), sort_keys(group, groups), out, first_row=0)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (group,) = ctx.saved_tensors
        return grad.index_select(0, group), None, None
