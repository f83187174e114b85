"""Linear layers over many rows on a GPU: the gradient of a small weight is a long sum, and is taken in parts."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

PART = 128
"""Rows of a part."""


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

    >>> tall_linear(torch.ones(1000, 4), torch.ones(2, 4)).unique().item()
    4.0
    """
    out: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        grad_x = grad @ weight if ctx.needs_input_grad[0] else None
        grad_weight = grad_of_weight(grad.unsqueeze(0), x.unsqueeze(0)).squeeze(0)
        return grad_x, grad_weight, grad.sum(dim=0) if ctx.needs_input_grad[2] else None


def grad_of_weight(grad: Tensor, x: Tensor) -> Tensor:
    """`grad.T @ x` of each model, in parts of `PART` rows and what is left: `[models, rows, out]` and
    `[models, rows, in]` to `[models, out, in]`.

    >>> grad_of_weight(torch.ones(1, 300, 2), torch.ones(1, 300, 3)).unique().item()
    300.0
    """
    models, rows, wide = grad.shape
    parts, deep = rows // PART, x.size(2)
    if parts < 2:
        return torch.bmm(grad.transpose(1, 2), x)
    whole = parts * PART
    left = grad[:, :whole].reshape(models * parts, PART, wide).transpose(1, 2)
    right = x[:, :whole].reshape(models * parts, PART, deep)
    total = torch.bmm(left, right).view(models, parts, wide, deep).sum(dim=1)
    return total if whole == rows else total.baddbmm_(grad[:, whole:].transpose(1, 2), x[:, whole:])
