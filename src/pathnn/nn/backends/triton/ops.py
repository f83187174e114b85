"""Three small operations on a GPU: rows of a small table, sums of groups of rows, and linear layers over many rows."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pathnn.nn.backends import base
from pathnn.nn.backends.triton.order import sort_keys

MOST_ROWS = 128
"""The largest table for `lookup`; above, the sorted gradient of `nn.Embedding` is faster."""

PART, MOST_PARTS = 128, 256
"""The gradient of a weight is summed in parts of `PART` rows, or more rows if there would be more than `MOST_PARTS`."""

MANY = 8192
"""From this many rows on, linear layers run on tensor cores (`products`, as exact as float32)."""


def lookup(table: Tensor, index: Tensor) -> Tensor:
    """Return rows of a float32 table of at most `MOST_ROWS` rows; its gradient is summed in a fixed order."""
    out: Tensor = _Lookup.apply(table, index)  # type: ignore[no-untyped-call]
    return out


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, index: Tensor) -> Tensor:
        index = index.contiguous()  # the kernel of the gradient needs it
        ctx.save_for_backward(index)
        ctx.rows = weight.size(0)
        return weight.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        from pathnn.nn.backends.triton.sweep import sum_small_parts

        (index,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            return grad.new_zeros(ctx.rows, grad.size(1)).index_add(0, index, grad), None
        with torch.cuda.device(grad.device):  # a product with zeros and ones
            return sum_small_parts(grad.contiguous(), index, None, 0, ctx.rows, 0).sum(dim=0), None


def segment_sum(rows: Tensor, group: Tensor, groups: int) -> Tensor:
    """Return the sums of the rows of each group, `[groups, d]`: float32, in a fixed order, differentiable once."""
    out: Tensor = _SegmentSum.apply(rows, group, groups)  # type: ignore[no-untyped-call]
    return out


class _SegmentSum(torch.autograd.Function):
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


def tall_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute `F.linear` for many rows, differentiable once; the gradient of the weight is summed in parts."""
    out: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.split = None
        if x.size(0) < MANY or not (base.on_triton(x) and base.on_triton(weight)):
            return F.linear(x, weight, bias)
        from pathnn.nn.backends.triton.products import linear, split_of, terms

        with torch.cuda.device(x.device):
            ctx.split = split_of(weight, terms())
            return linear(x.contiguous(), ctx.split, None if bias is None else bias.contiguous())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        with torch.autocast(grad.device.type, enabled=False):  # backward() may be called under autocast
            if ctx.split is None:
                grad_x = grad @ weight if of_x else None
                return grad_x, grad_of_weight(grad, x) if of_weight else None, grad.sum(dim=0) if of_bias else None
            from pathnn.nn.backends.triton.products import add_grad_of_linear, grad_of_linear

            with torch.cuda.device(grad.device):
                grad, x = grad.contiguous(), x.contiguous()
                grad_x = grad_of_linear(grad, ctx.split) if of_x else None
                if not of_weight:
                    return grad_x, None, grad.sum(dim=0) if of_bias else None
                return grad_x, *add_grad_of_linear(grad, x, ctx.split, bias=of_bias).sums()


def grad_of_weight(grad: Tensor, x: Tensor) -> Tensor:
    """Return `grad.T @ x` for `[rows, out]` and `[rows, in]`, summed in parts and the rest."""
    rows, wide = grad.shape
    each = PART * max(1, -(-rows // (PART * MOST_PARTS)))
    parts = rows // each
    if parts < 2:
        return grad.t() @ x
    whole = parts * each
    left = grad[:whole].reshape(parts, each, wide).transpose(1, 2)
    total = torch.bmm(left, x[:whole].reshape(parts, each, x.size(1))).sum(dim=0)
    return total if whole == rows else total.addmm_(grad[whole:].t(), x[whole:])
