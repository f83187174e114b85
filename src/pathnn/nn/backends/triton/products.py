"""Launch the products with weights on tensor cores, as exact as float32 or TF32."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pathnn.nn.backends.base import tf32_allowed
from pathnn.nn.backends.triton.kernels.blocks import cover, parts_of, power_above
from pathnn.nn.backends.triton.kernels.product import (
    SLOTS,
    largest_of_rows,
    rows_times,
    split_weight,
    times_transposed,
    times_weight,
    transposed_times_hidden,
    transposed_times_rows,
)

PROGRAMS, LEAST_PARTS, MOST_PARTS, ROWS_PER_PART = 512, 16, 128, 512
"""The numbers of programs, parts and rows of the gradient of a weight (`parts_of`)."""

MANY_PARTS, MANY_ROWS = 32, 1 << 15
"""From `MANY_ROWS` rows on, there are at least `MANY_PARTS` parts."""


class Tile(NamedTuple):
    """The rows (M) and columns (N) that a program of a product computes, the depth of a step (K), and how it runs."""

    BM: int
    BN: int
    BK: int
    num_warps: int
    num_stages: int


HIDDEN = {64: Tile(128, 64, 32, 4, 3), 128: Tile(64, 128, 32, 4, 3)}
VERTICES = {64: Tile(64, 64, 32, 4, 3), 128: Tile(64, 128, 32, 4, 3)}
"""The tiles of `W_hh h` and its gradient, and of projected vertices, for each width of blocks."""

HIDDEN_WEIGHT = {64: Tile(64, 64, 64, 4, 2), 128: Tile(128, 64, 64, 8, 2)}
VERTICES_WEIGHT = Tile(64, 64, 64, 4, 2)
"""The tiles of the gradients of `W_hh`, for each width of blocks, and of the weight of the vertices."""


class SplitWeight(NamedTuple):
    """A weight `[4d, d]` in float16 parts, `[2, 4d, width]`, divided by a power of two that `most` gives."""

    parts: Tensor
    most: Tensor
    channels: int
    terms: int

    @property
    def width(self) -> int:
        """Length of a row of the parts: the channels, rounded up."""
        return self.parts.size(2)


def terms() -> int:
    """Return 1 if TF32 is allowed or `torch.autocast` is on, else 2."""
    return 1 if tf32_allowed() or torch.is_autocast_enabled("cuda") else 2


def split_of(weight: Tensor, terms: int) -> SplitWeight:
    """Split a weight for the products."""
    rows, channels = weight.shape
    width = cover(channels, 8) * 8
    weight = weight.detach() if weight.stride(1) == 1 else weight.detach().contiguous()
    of_rows, most = weight.new_empty(rows), weight.new_empty(1)
    parts = weight.new_empty(2, rows, width, dtype=torch.float16)
    largest_of_rows[(rows,)](weight, of_rows, channels, weight.stride(0), BLOCK=power_above(width))
    split_weight[(rows,)](
        weight, of_rows, most, parts, rows, channels, weight.stride(0),
        WIDTH=width, BLOCK=power_above(width), ROWS=power_above(rows),
    )  # fmt: skip
    return SplitWeight(parts, most, channels, terms)


def new_slots(like: Tensor, levels: int) -> Tensor:
    """Return zeros, `[levels, SLOTS]`, in which kernels collect the largest gradient of each level."""
    return torch.zeros(power_above(levels), SLOTS.value, dtype=torch.int32, device=like.device)


def project_hidden(hidden: Tensor, weight: SplitWeight, out: Tensor) -> None:
    """Compute `out` = `hidden @ weight.T`, `[entries, 4d]`."""
    rows, gates = out.shape
    if rows == 0:
        return
    tile = HIDDEN[_width(gates)]
    times_transposed[(cover(rows, tile.BM) * cover(gates, tile.BN),)](
        hidden, weight.parts, weight.most, out, rows, hidden.stride(0), weight.parts.stride(0),
        N=gates, WIDTH=weight.width, TERMS=weight.terms, **tile._asdict(),
    )  # fmt: skip


def grad_of_hidden(grad: Tensor, slots: Tensor, weight: SplitWeight) -> Tensor:
    """Return `grad @ weight`, `[entries, d]`; `slots` is the row of the level."""
    rows, gates = grad.shape
    out = grad.new_empty(rows, weight.channels)
    if rows == 0:
        return out
    tile = HIDDEN[_width(weight.channels)]
    times_weight[(cover(rows, tile.BM) * cover(weight.channels, tile.BN),)](
        grad, slots, weight.parts, weight.most, out, rows, weight.parts.stride(0),
        N=weight.channels, K=gates, WIDTH=weight.width, TERMS=weight.terms, **tile._asdict(),
    )  # fmt: skip
    return out


def add_grad_of_weight(
    grad: Tensor, slots: Tensor, hidden: Tensor, weight: SplitWeight, partial: Tensor | None
) -> Tensor:
    """Return `grad.T @ hidden` for all levels, in parts `[parts, 4d, d]`, added to `partial` if given."""
    rows, gates = grad.shape
    tile = HIDDEN_WEIGHT[_width(weight.channels)]
    blocks = cover(weight.channels, tile.BM) * cover(gates, tile.BN)
    out, parts = _parts(grad, weight, blocks, partial)
    transposed_times_hidden[blocks, parts](
        grad, slots, hidden, out, rows, parts, hidden.stride(0),
        ADD=partial is not None, K=gates, N=weight.channels, WIDTH=weight.width, LEVELS=slots.size(0),
        TERMS=weight.terms, **tile._asdict(),
    )  # fmt: skip
    return out


class LinearParts(NamedTuple):
    """Gradients of a linear layer in parts: of the weight, `[parts, 4d, d]`, and of the bias, `[parts, 4d]`."""

    weight: Tensor
    bias: Tensor | None

    def sums(self) -> tuple[Tensor, Tensor | None]:
        """Return the gradients, `[4d, d]` and `[4d]`."""
        return self.weight.sum(dim=0), None if self.bias is None else self.bias.sum(dim=0)


def add_grad_of_linear(
    grad: Tensor, x: Tensor, weight: SplitWeight, partial: LinearParts | None = None, *, bias: bool
) -> LinearParts:
    """Return `grad.T @ x` and, with `bias`, the sum of the rows of `grad`, in parts, added to `partial` if given."""
    rows, gates = grad.shape
    tile = VERTICES_WEIGHT
    blocks = cover(gates, tile.BM) * cover(weight.channels, tile.BN)
    out, parts = _parts(grad, weight, blocks, None if partial is None else partial.weight)
    sums = grad.new_empty(out.shape[:2]) if partial is None and bias else None if partial is None else partial.bias
    transposed_times_rows[blocks, parts](
        grad, x, out, sums, rows, parts,
        ADD=partial is not None, K=gates, N=weight.channels, TERMS=weight.terms, **tile._asdict(),
    )  # fmt: skip
    return LinearParts(out, sums)


def _width(columns: int) -> int:
    """Return the width of blocks, 64 or 128, with the fewest idle lanes; the larger of equals."""
    return 128 if cover(columns, 128) * 2 <= cover(columns, 64) else 64


def _parts(grad: Tensor, weight: SplitWeight, blocks: int, partial: Tensor | None) -> tuple[Tensor, int]:
    """Return a tensor for the gradient of a weight in parts, and how many to write; a part takes `blocks` programs."""
    rows, gates = grad.shape
    least = MANY_PARTS if rows >= MANY_ROWS else LEAST_PARTS
    parts = parts_of(rows, ROWS_PER_PART, blocks=blocks, programs=PROGRAMS, least=least, most=MOST_PARTS)
    if partial is None:
        return grad.new_empty(parts, gates, weight.channels), parts
    return partial, min(parts, partial.size(0))


def linear(x: Tensor, weight: SplitWeight, bias: Tensor | None) -> Tensor:
    """Return `x @ weight.T + bias`, `[rows, 4d]`."""
    return _rows_times(x, weight, bias, x.new_empty(x.size(0), weight.parts.size(1)), transposed=True)


def grad_of_linear(grad: Tensor, weight: SplitWeight) -> Tensor:
    """Return `grad @ weight`, `[rows, d]`."""
    return _rows_times(grad, weight, None, grad.new_empty(grad.size(0), weight.channels), transposed=False)


def _rows_times(x: Tensor, weight: SplitWeight, bias: Tensor | None, out: Tensor, *, transposed: bool) -> Tensor:
    rows, columns = out.shape
    if rows == 0:
        return out
    tile = VERTICES[_width(columns)]
    rows_times[(cover(rows, tile.BM) * cover(columns, tile.BN),)](
        x, weight.parts, weight.most, bias, out, rows, weight.parts.stride(0),
        N=columns, K=x.size(1), WIDTH=weight.width, TRANSPOSED=transposed, TERMS=weight.terms, **tile._asdict(),
    )  # fmt: skip
    return out
