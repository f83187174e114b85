"""The products with the LSTM's weights on tensor cores, in float32's accuracy or in TF32's: launches of kernels."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

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
"""The gradient of a weight is summed by about so many programs, in parts: `parts_of`."""


MANY_PARTS, MANY_ROWS = 32, 1 << 15
"""From so many rows on at least so many parts are wanted."""


class Tile(NamedTuple):
    """What one program of a product works on (rows and columns of the result, and how many numbers of each sum at a
    time), and with what."""

    tall: int
    wide: int
    deep: int
    warps: int
    stages: int


HIDDEN = {64: Tile(128, 64, 32, 4, 3), 128: Tile(64, 128, 32, 4, 3)}


VERTICES = {64: Tile(64, 64, 32, 4, 3), 128: Tile(64, 128, 32, 4, 3)}
"""The tiles of `W_hh h` and its gradient, and of what vertices bring along, for each width of blocks."""


HIDDEN_WEIGHT = {64: Tile(64, 64, 64, 4, 2), 128: Tile(128, 64, 64, 8, 2)}


VERTICES_WEIGHT = Tile(64, 64, 64, 4, 2)
"""The tiles of the gradients of `W_hh`, for each width of blocks, and of the weight of the vertices."""


class SplitWeight(NamedTuple):
    """A weight `[4d, d]` in float16 parts: `parts` is `[2, 4d, width]`, over a power of two by `most`; or those of
    several models, one after the other, which have as many rows each of what they are multiplied with."""

    parts: Tensor
    most: Tensor
    channels: int
    terms: int
    models: int = 1

    @property
    def gates(self) -> int:
        """Rows of the weight of one model, 4d."""
        return self.parts.size(1) // self.models

    @property
    def width(self) -> int:
        """Length of a row of the parts: the channels, rounded up."""
        return self.parts.size(2)


def terms() -> int:
    """One where less than float32's accuracy is asked for (TF32 is allowed, or under `torch.autocast`), else two."""
    return 1 if _tf32_allowed() or torch.is_autocast_enabled("cuda") else 2


def _tf32_allowed() -> bool:
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32)
    except RuntimeError:  # the newer of torch's two ways to say so is in use
        return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def split_of(weight: Tensor, terms: int, models: int = 1) -> SplitWeight:
    """A weight, or those of several models one after the other, ready for the products."""
    rows, channels = weight.shape
    each = rows // models
    width = cover(channels, 8) * 8
    weight = weight.detach() if weight.stride(1) == 1 else weight.detach().contiguous()
    of_rows, most = weight.new_empty(rows), weight.new_empty(models)
    parts = weight.new_empty(2, rows, width, dtype=torch.float16)
    largest_of_rows[(rows,)](weight, of_rows, channels, weight.stride(0), BLOCK=power_above(width))
    split_weight[(rows,)](
        weight, of_rows, most, parts, rows, each, channels, weight.stride(0),
        WIDTH=width, BLOCK=power_above(width), ROWS=power_above(each),
    )  # fmt: skip
    return SplitWeight(parts, most, channels, terms, models)


def new_hidden(like: Tensor, entries: int, weight: SplitWeight) -> Tensor:
    """Room for hidden states in the form the products read: `[terms, entries, width]`, float16."""
    return like.new_empty(weight.terms, entries, weight.width, dtype=torch.float16)


def new_slots(like: Tensor, levels: int, models: int) -> Tensor:
    """Places in which the largest gradient of each level is collected: `[levels, models, SLOTS]`, zeros."""
    return torch.zeros(power_above(levels), models, SLOTS.value, dtype=torch.int32, device=like.device)


def project_hidden(hidden: Tensor, weight: SplitWeight, out: Tensor) -> None:
    """`out` = `hidden @ weight.T`, `[entries, 4d]`."""
    rows, gates = out.shape
    if rows == 0:
        return
    tile = HIDDEN[_width(gates)]
    times_transposed[(cover(rows, tile.tall) * cover(gates, tile.wide),)](
        hidden, weight.parts, weight.most, out, rows, rows // weight.models, hidden.stride(0), weight.parts.stride(0),
        N=gates, WIDTH=weight.width, TERMS=weight.terms, **_options(tile),
    )  # fmt: skip


def grad_of_hidden(grad: Tensor, slots: Tensor, weight: SplitWeight) -> Tensor:
    """`grad @ weight`, `[entries, d]`; `slots` is the row of the level."""
    rows, gates = grad.shape
    out = grad.new_empty(rows, weight.channels)
    if rows == 0:
        return out
    tile = HIDDEN[_width(weight.channels)]
    times_weight[(cover(rows, tile.tall) * cover(weight.channels, tile.wide),)](
        grad, slots, weight.parts, weight.most, out, rows, rows // weight.models, weight.parts.stride(0),
        N=weight.channels, K=gates, WIDTH=weight.width, TERMS=weight.terms, **_options(tile),
    )  # fmt: skip
    return out


def add_grad_of_weight(
    grad: Tensor, slots: Tensor, hidden: Tensor, weight: SplitWeight, partial: Tensor | None, spans: Tensor | None
) -> Tensor:
    """`grad.T @ hidden` for all levels at once, in parts: `[models, parts, 4d, d]`, added to `partial` if there is one.

    `spans` says where the rows of several models lie: `kernels.product.transposed_times_hidden`.
    """
    rows, gates = grad.shape
    tile = HIDDEN_WEIGHT[_width(weight.channels)]
    blocks = cover(weight.channels, tile.tall) * cover(gates, tile.wide)
    out, parts = _parts(grad, weight, blocks, partial)
    transposed_times_hidden[blocks, weight.models * parts](
        grad, slots, hidden, spans, out, rows, parts, out.size(1), weight.models, hidden.stride(0),
        ADD=partial is not None, K=gates, N=weight.channels, WIDTH=weight.width, LEVELS=slots.size(0),
        TERMS=weight.terms, SPANS=1 if spans is None else spans.size(0), **_options(tile),
    )  # fmt: skip
    return out


class LinearParts(NamedTuple):
    """Gradients of a linear layer, to be summed over the parts: of the weight, `[models, parts, 4d, d]`, and of the
    bias, `[models, parts, 4d]`."""

    weight: Tensor
    bias: Tensor | None

    def sums(self) -> tuple[Tensor, Tensor | None]:
        """The gradients, those of several models one after the other: `[models * 4d, d]` and `[models, 4d]`."""
        return self.weight.sum(dim=1).flatten(0, 1), None if self.bias is None else self.bias.sum(dim=1)


def add_grad_of_linear(
    grad: Tensor, x: Tensor, weight: SplitWeight, partial: LinearParts | None = None, *, bias: bool
) -> LinearParts:
    """`grad.T @ x` and, with `bias`, the sum of the rows of `grad`, in parts; added to `partial` if there is one."""
    rows, gates = grad.shape
    tile = VERTICES_WEIGHT
    blocks = cover(gates, tile.tall) * cover(weight.channels, tile.wide)
    out, parts = _parts(grad, weight, blocks, None if partial is None else partial.weight)
    sums = grad.new_empty(out.shape[:3]) if partial is None and bias else None if partial is None else partial.bias
    transposed_times_rows[blocks, weight.models * parts](
        grad, x, out, sums, rows // weight.models, parts, out.size(1),
        ADD=partial is not None, K=gates, N=weight.channels, TERMS=weight.terms, **_options(tile),
    )  # fmt: skip
    return LinearParts(out, sums)


def _width(columns: int) -> int:
    """The blocks, 64 or 128 wide, that leave the fewest idle lanes; the wider ones of equals."""
    return 128 if cover(columns, 128) * 2 <= cover(columns, 64) else 64


def _options(tile: Tile) -> dict[str, int]:
    return {
        "BM": tile.tall, "BN": tile.wide, "BK": tile.deep, "num_warps": tile.warps, "num_stages": tile.stages,
    }  # fmt: skip


def _parts(grad: Tensor, weight: SplitWeight, blocks: int, partial: Tensor | None) -> tuple[Tensor, int]:
    """Room for the gradient of a weight in parts, and how many of them there are to write to; a part is the work of
    so many `blocks`."""
    gates, rows = grad.size(1), grad.size(0) // weight.models
    least = MANY_PARTS if rows >= MANY_ROWS else LEAST_PARTS
    parts = parts_of(
        rows, ROWS_PER_PART, blocks=blocks * weight.models, programs=PROGRAMS, least=least, most=MOST_PARTS
    )
    parts = parts if partial is None else min(parts, partial.size(1))
    return grad.new_empty(weight.models, parts, gates, weight.channels) if partial is None else partial, parts


def linear(x: Tensor, weight: SplitWeight, bias: Tensor | None) -> Tensor:
    """`x @ weight.T + bias`, `[rows, 4d]`."""
    return _rows_times(x, weight, bias, x.new_empty(x.size(0), weight.gates), transposed=True)


def grad_of_linear(grad: Tensor, weight: SplitWeight) -> Tensor:
    """`grad @ weight`, `[rows, d]`."""
    return _rows_times(grad, weight, None, grad.new_empty(grad.size(0), weight.channels), transposed=False)


def _rows_times(x: Tensor, weight: SplitWeight, bias: Tensor | None, out: Tensor, *, transposed: bool) -> Tensor:
    rows, columns = out.shape
    if rows == 0:
        return out
    tile = VERTICES[_width(columns)]
    rows_times[(cover(rows, tile.tall) * cover(columns, tile.wide),)](
        x, weight.parts, weight.most, bias, out, rows, rows // weight.models, weight.parts.stride(0),
        N=columns, K=x.size(1), WIDTH=weight.width, TRANSPOSED=transposed, TERMS=weight.terms, **_options(tile),
    )  # fmt: skip
    return out
