"""Linear layers over many rows on a GPU: the gradient of a small weight is a long sum, and is taken in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pathnn.nn.backends import base

if TYPE_CHECKING:
    from pathnn.nn.backends.triton.products import SplitWeight


PART, MOST_PARTS = 128, 256
"""Rows of a part, or a multiple of that where there would be more parts than these."""


MANY = 8192
"""Rows from which on the products run on tensor cores (`products`, in float32's accuracy)."""


WIDE, WHOLE = 96, 128
"""Where several models are multiplied at once: from such widths on, and each with whole blocks of rows."""


class TallLinear(nn.Module):
    """`nn.Linear` for many rows; the parameters are those of `linear` itself.

    >>> TallLinear(nn.Linear(4, 8))(torch.ones(1000, 4)).shape
    torch.Size([1000, 8])
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        """`[rows, in]` to `[rows, out]`."""
        if torch.is_autocast_enabled(x.device.type):
            out: Tensor = self.linear(x)
            return out
        return tall_linear(x, self.linear.weight, self.linear.bias)


def tall_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear` for many rows: `[rows, in]` to `[rows, out]`, differentiable once.

    With a weight `[models, out, in]` (and a bias `[models, out]`) each model has its own for its share of the rows.

    >>> tall_linear(torch.ones(1000, 4), torch.ones(2, 4)).unique().item()
    4.0
    >>> tall_linear(torch.ones(2, 4), torch.stack([torch.ones(1, 4), torch.zeros(1, 4)])).tolist()
    [[4.0], [0.0]]
    """
    out: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.split = _split(x, weight)
        ctx.save_for_backward(x, weight)
        if ctx.split is not None:
            from pathnn.nn.backends.triton.products import linear

            with torch.cuda.device(x.device):
                return linear(x.contiguous(), ctx.split, None if bias is None else bias.contiguous())
        if weight.dim() == 2:
            return F.linear(x, weight, bias)
        rows = x.reshape(weight.size(0), -1, x.size(1))
        if bias is None:
            return torch.bmm(rows, weight.transpose(1, 2)).flatten(0, 1)
        return torch.baddbmm(bias.unsqueeze(1), rows, weight.transpose(1, 2)).flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        wants = ctx.needs_input_grad
        with torch.autocast(grad.device.type, enabled=False):  # backward() may have been called under it
            if ctx.split is not None:
                grad_x, grad_weight, grad_bias = _split_backward(grad.contiguous(), x.contiguous(), ctx.split, wants)
            else:
                stacked = weight.reshape(-1, *weight.shape[-2:])
                grad_x, grad_weight, grad_bias = _backward(grad, x, stacked, wants)
            shape = weight.shape  # without or with models
            grad_weight = None if grad_weight is None else grad_weight.view(shape)
            return grad_x, grad_weight, None if grad_bias is None else grad_bias.view(shape[:-1])


def _split(x: Tensor, weight: Tensor) -> SplitWeight | None:
    """The weight as the products on tensor cores read it, or None where others are the better ones."""
    if x.size(0) < MANY or not (base.on_triton(x) and base.on_triton(weight)):
        return None
    models = weight.size(0) if weight.dim() == 3 else 1
    if models > 1 and (min(weight.shape[1:]) < WIDE or x.size(0) % (models * WHOLE)):
        return None
    from pathnn.nn.backends.triton.products import split_of, terms

    with torch.cuda.device(x.device):
        return split_of(weight.reshape(-1, weight.size(-1)), terms(), models)


def _backward(grad: Tensor, x: Tensor, weight: Tensor, wants: Sequence[bool]) -> tuple[Tensor | None, ...]:
    """The gradients of x, weight and bias that are wanted, for a weight `[models, out, in]`."""
    models, wide, deep = weight.shape
    grad = grad.reshape(models, -1, wide)
    grad_x = torch.matmul(grad, weight).flatten(0, 1) if wants[0] else None
    grad_weight = grad_of_weight(grad, x.reshape(models, -1, deep)) if wants[1] else None
    return grad_x, grad_weight, grad.sum(dim=1) if wants[2] else None


def _split_backward(grad: Tensor, x: Tensor, split: SplitWeight, wants: Sequence[bool]) -> tuple[Tensor | None, ...]:
    """The gradients of x, weight and bias that are wanted."""
    from pathnn.nn.backends.triton.products import add_grad_of_linear, grad_of_linear

    with torch.cuda.device(grad.device):
        grad_x = grad_of_linear(grad, split) if wants[0] else None
        if not wants[1]:
            return grad_x, None, grad.view(split.models, -1, grad.size(1)).sum(dim=1) if wants[2] else None
        weight, bias = add_grad_of_linear(grad, x, split, bias=wants[2]).sums()
        return grad_x, weight, bias


def grad_of_weight(grad: Tensor, x: Tensor) -> Tensor:
    """`grad.T @ x` of each model, in parts of some rows and what is left: `[models, rows, out]` and
    `[models, rows, in]` to `[models, out, in]`.

    >>> grad_of_weight(torch.ones(1, 300, 2), torch.ones(1, 300, 3)).unique().item()
    300.0
    """
    models, rows, wide = grad.shape
    each = PART * max(1, -(-rows // (PART * MOST_PARTS)))
    parts, deep = rows // each, x.size(2)
    if parts < 2:
        return torch.bmm(grad.transpose(1, 2), x)
    whole = parts * each
    left = grad[:, :whole].reshape(models * parts, each, wide).transpose(1, 2)
    right = x[:, :whole].reshape(models * parts, each, deep)
    total = torch.bmm(left, right).view(models, parts, wide, deep).sum(dim=1)
    return total if whole == rows else total.baddbmm_(grad[:, whole:].transpose(1, 2), x[:, whole:])
