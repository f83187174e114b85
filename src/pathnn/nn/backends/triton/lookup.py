"""Rows of a small table on a GPU, with a gradient that takes one product with zeros and ones, in a fixed order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

MOST_ROWS = 128
"""Above, the sorted gradient of `nn.Embedding` is the better one."""


class SmallEmbedding(nn.Module):
    """`nn.Embedding` of at most `MOST_ROWS` rows, float32, on a GPU; the weight is that of `embedding` itself."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding

    @property
    def weight(self) -> Tensor:
        """The table itself."""
        return self.embedding.weight

    def forward(self, index: Tensor) -> Tensor:
        """The rows `index`, `[n]`: `[n, d]`."""
        return lookup(self.embedding.weight, index)


def lookup(table: Tensor, index: Tensor) -> Tensor:
    """The rows `index`, `[n]`, of a table of at most `MOST_ROWS` rows, float32, on a GPU: `[n, d]`."""
    out: Tensor = _Lookup.apply(table, index)  # type: ignore[no-untyped-call]
    return out


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, index: Tensor) -> Tensor:
        index = index.contiguous()  # the kernel of the gradient counts on it
        ctx.save_for_backward(index)
        ctx.rows = weight.size(0)
        return weight.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        from pathnn.nn.backends.triton.sweep import sum_few_parts

        (index,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            return grad.new_zeros(ctx.rows, grad.size(1)).index_add(0, index, grad), None
        with torch.cuda.device(grad.device):
            parts = sum_few_parts(grad.contiguous(), index, None, 0, ctx.rows, 0)
            return parts[0].sum(dim=0), None
