"""BatchNorm that ignores padding.

The number of rows without padding is in the memory of the GPU, so that all batches can have the same shape.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pathnn.nn.backends.triton.kernels.blocks import column_block, cover, power_above

MOST_CHUNKS = 128
ROWS = 32

PROGRAMS, MOST_TIMES = 512, 8
"""With more programs than this, each works on several times as many rows, since all read all statistics."""


class PaddedBatchNorm1d(nn.Module):
    """`nn.BatchNorm1d` over the first `valid` rows; parameters and running statistics are those of `norm` itself.

    Rows after them are also normalised, so that they stay finite, and get no gradient.

    Args:
        norm: with affine parameters, running statistics and a momentum.
        valid: `[1]`, int32, on the GPU.
        relu: whether to apply ReLU as well.
    """

    def __init__(self, norm: nn.BatchNorm1d, valid: Tensor, *, relu: bool = False) -> None:
        super().__init__()
        if norm.weight is None or norm.running_mean is None or norm.momentum is None:
            raise ValueError(f"{norm}: expected affine=True, track_running_stats=True and a momentum.")
        self.norm, self.valid, self.relu = norm, valid, relu

    def forward(self, x: Tensor) -> Tensor:
        """Normalise `[rows, channels]`."""
        norm = self.norm
        if not self.training:
            out: Tensor = norm(x)
            return out.relu() if self.relu else out
        assert norm.num_batches_tracked is not None
        norm.num_batches_tracked.add_(1)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.momentum is not None
        return padded_norm(
            x, norm.weight, norm.bias, self.valid, norm.running_mean, norm.running_var,
            eps=norm.eps, momentum=norm.momentum, relu=self.relu,
        )  # fmt: skip


def padded_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    valid: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    *,
    eps: float,
    momentum: float,
    relu: bool,
) -> Tensor:
    """Normalise the rows of `x`, `[rows, d]`, over the valid ones, apply ReLU, and update the running statistics.

    `valid` has one number per stacked model, each with an equal share of the rows; weight, bias and statistics are
    `[models, d]`.
    """
    out: Tensor = _PaddedNorm.apply(  # type: ignore[no-untyped-call]
        x, weight, bias, valid, running_mean, running_var, eps, momentum, relu
    )
    return out


class _PaddedNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        valid: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        eps: float,
        momentum: float,
        relu: bool,
    ) -> Tensor:
        from pathnn.nn.backends.triton.kernels.batch_norm import chunk_statistics, normalise

        x = x.contiguous()
        models, width, block = valid.numel(), x.size(1), column_block(x.size(1), largest=32)
        each = x.size(0) // models
        chunk, chunks = _chunks(each)
        partial = x.new_empty(models, chunks, 2, width, dtype=torch.float32)
        out, mean, scale = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        chunk_statistics[chunks, cover(width, block), models](
            x, valid, partial, each, chunk, chunks, WIDTH=width, ROWS=ROWS, BLOCK=block
        )
        times = _times(each, cover(width, block) * models)
        normalise[cover(each, ROWS * times), cover(width, block), models](
            x, valid, partial, weight, bias, running_mean, running_var, out, mean, scale, each, chunk, chunks,
            eps, momentum, RELU=relu, WIDTH=width, CHUNKS=power_above(chunks), ROWS=ROWS, TIMES=times, BLOCK=block,
        )  # fmt: skip
        ctx.save_for_backward(x, weight, bias, valid, mean, scale)
        ctx.relu = relu
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        from pathnn.nn.backends.triton.kernels.batch_norm import chunk_gradients, normalise_backward

        x, weight, bias, valid, mean, scale = ctx.saved_tensors
        grad = grad.contiguous()
        models, width, block = valid.numel(), x.size(1), column_block(x.size(1), largest=32)
        each = x.size(0) // models
        chunk, chunks = _chunks(each)
        partial = x.new_empty(models, chunks, 2, width, dtype=torch.float32)
        grad_x, grad_weight, grad_bias = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        chunk_gradients[chunks, cover(width, block), models](
            grad, x, valid, mean, scale, weight, bias, partial, each, chunk, chunks,
            RELU=ctx.relu, WIDTH=width, ROWS=ROWS, BLOCK=block,
        )  # fmt: skip
        times = _times(each, cover(width, block) * models)
        normalise_backward[cover(each, ROWS * times), cover(width, block), models](
            grad, x, valid, mean, scale, weight, bias, partial, grad_x, grad_weight, grad_bias, each, chunks,
            RELU=ctx.relu, WIDTH=width, CHUNKS=power_above(chunks), ROWS=ROWS, TIMES=times, BLOCK=block,
        )  # fmt: skip
        return grad_x, grad_weight, grad_bias, None, None, None, None, None, None


def _times(rows: int, others: int) -> int:
    """Return how many blocks of `ROWS` rows a program works on, a power of two, given `others` for the same rows."""
    return 1 << min(max(cover(rows, ROWS) * others // PROGRAMS, 1), MOST_TIMES).bit_length() - 1


def _chunks(rows: int) -> tuple[int, int]:
    """Return the rows per chunk, a multiple of `ROWS`, and the number of chunks, at most `MOST_CHUNKS`."""
    chunk = cover(cover(rows, MOST_CHUNKS), ROWS) * ROWS
    return chunk, cover(rows, chunk)
