"""Linear layers over many rows on a GPU: the gradient of a small weight is a long sum, and is taken in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pathnn.nn.engines.cuda import cuda_ready

if TYPE_CHECKING:
    from pathnn.nn.engines.cuda_product import SplitWeight

PART, MOST_PARTS = 128, 256
"""Rows of a part, or a multiple of that where there would be more parts than these."""

MANY = 8192
"""Rows from which on the products run on tensor cores (`engines.cuda_product`, in float32's accuracy)."""


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
        ctx.split = _split(x, weight)
        ctx.save_for_backward(x, weight)
        if ctx.split is None:
            return F.linear(x, weight, bias)
        from pathnn.nn.engines.cuda_product import linear

        with torch.cuda.device(x.device):
            return linear(x.contiguous(), ctx.split, None if bias is None else bias.contiguous())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        with torch.autocast(grad.device.type, enabled=False):  # backward() may have been called under it
            grad_x = _grad_of_rows(grad, weight, ctx.split) if ctx.needs_input_grad[0] else None
            grad_weight = grad_of_weight(grad.unsqueeze(0), x.unsqueeze(0)).squeeze(0)
            return grad_x, grad_weight, grad.sum(dim=0) if ctx.needs_input_grad[2] else None


def _split(x: Tensor, weight: Tensor) -> SplitWeight | None:
    """The weight as the products on tensor cores read it, or None where others are the better ones."""
    if x.size(0) < MANY or not (cuda_ready(x) and cuda_ready(weight)):
        return None
    from pathnn.nn.engines.cuda_product import split_of, terms

    with torch.cuda.device(x.device):
        return split_of(weight, terms())


def _grad_of_rows(grad: Tensor, weight: Tensor, split: SplitWeight | None) -> Tensor:
    if split is None:
        return grad @ weight
    from pathnn.nn.engines.cuda_product import grad_of_linear

    with torch.cuda.device(grad.device):
        return grad_of_linear(grad.contiguous(), split)


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
