"""Products of float32 matrices on tensor cores, with float32's accuracy.

A number is written as a sum of two float16 numbers, after scaling by a power of two: 22 bits. A product is then three
products of float16 matrices (the fourth, of the two small parts, is below the last bit), each summed in float32; with
`TERMS` = 1 only the first, which has TF32's 11 bits. About twice as fast as cuBLAS in float32, and no less exact.

Hidden states are below 1, and are kept as such pairs (`HIDDEN_SCALE`). Weights are split once per step. Gradients
are split when they are read: their largest absolute value was collected when they were written, in `SLOTS` places.
What vertices bring along is scaled row by row.

Several models may be worked on at once: rows `each * m` on belong to model `m`, whose weights are the `m`-th of those
that lie one after the other. `each` is then a multiple of the blocks' heights; one model has all rows.
"""

from __future__ import annotations

import triton
import triton.language as tl

SLOTS = tl.constexpr(64)


HIDDEN_SCALE = tl.constexpr(4096.0)


@triton.jit
def power_of_two(most):
    """A power of two s such that `most / s` is between 2**11 and 2**12, and 1 / s."""
    bits = tl.maximum(most.to(tl.int32, bitcast=True) & 0x7F800000, 16 << 23) - (11 << 23)
    return bits.to(tl.float32, bitcast=True), ((254 << 23) - bits).to(tl.float32, bitcast=True)


@triton.jit
def split(x):
    """The two float16 numbers whose sum is x, up to 22 bits."""
    first = x.to(tl.float16)
    return first, (x - first.to(tl.float32)).to(tl.float16)


@triton.jit
def largest_of_rows(weight, out, cols, row_stride, BLOCK: tl.constexpr):
    """The largest absolute value of each row."""
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    x = tl.load(weight + row * row_stride + col, mask=col < cols, other=0.0)
    tl.store(out + row, tl.max(tl.abs(x), axis=0))


@triton.jit
def split_weight(
    weight, of_rows, most, out, rows, each, cols, row_stride,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Both parts of a matrix over its power of two: `out[2, rows, WIDTH]`, zeros right of the last column. The largest
    of `of_rows` of each model goes to `most`."""
    row = tl.program_id(0)
    model = row // each
    col = tl.arange(0, BLOCK)
    every = tl.arange(0, ROWS)
    largest = tl.max(tl.load(of_rows + model * each + every, mask=every < each, other=0.0), axis=0)
    tl.store(most + model, largest, mask=row == model * each)
    _, inverse = power_of_two(largest)
    x = tl.load(weight + row * row_stride + col, mask=col < cols, other=0.0)
    first, second = split(x * inverse)
    tl.store(out + row * WIDTH + col, first, mask=col < WIDTH)
    tl.store(out + (rows + row) * WIDTH + col, second, mask=col < WIDTH)


@triton.jit(do_not_specialize=["rows", "each"])
def times_transposed(
    hidden, weight, most, out, rows, each, plane, weight_plane,
    N: tl.constexpr, WIDTH: tl.constexpr, TERMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """`out[rows, N]` = `hidden @ weight.T`; both in parts, of rows `WIDTH` long, their planes so far apart."""
    blocks: tl.constexpr = (N + BN - 1) // BN
    first = (tl.program_id(0) // blocks).to(tl.int64) * BM
    row = first + tl.arange(0, BM)
    model = first // each
    weight += model * (N * WIDTH)
    col = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, WIDTH, BK):
        at = k + tl.arange(0, BK)
        inside = at < WIDTH
        a = hidden + row[:, None] * WIDTH + at[None, :]
        b = weight + col[None, :] * WIDTH + at[:, None]
        a_mask = (row < rows)[:, None] & inside[None, :]
        b_mask = (col < N)[None, :] & inside[:, None]
        a1 = tl.load(a, mask=a_mask, other=0.0)
        b1 = tl.load(b, mask=b_mask, other=0.0)
        if TERMS == 1:
            total += tl.dot(a1, b1)
        else:
            part = tl.dot(tl.load(a + plane, mask=a_mask, other=0.0), b1)
            part = tl.dot(a1, tl.load(b + weight_plane, mask=b_mask, other=0.0), part)
            total += tl.dot(a1, b1, part)
    scale, _ = power_of_two(tl.load(most + model))
    place = out + row[:, None] * N + col[None, :]
    tl.store(place, total * (scale / HIDDEN_SCALE), mask=(row < rows)[:, None] & (col < N)[None, :])


@triton.jit(do_not_specialize=["rows", "each"])
def times_weight(
    grad, slots, weight, most, out, rows, each, weight_plane,
    N: tl.constexpr, K: tl.constexpr, WIDTH: tl.constexpr, TERMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """`out[rows, N]` = `grad[rows, K] @ weight`; the weight in parts, the gradient's largest value in `slots`."""
    blocks: tl.constexpr = (N + BN - 1) // BN
    first = (tl.program_id(0) // blocks).to(tl.int64) * BM
    row = first + tl.arange(0, BM)
    col = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    model = first // each
    weight += model * (K * WIDTH)
    grad_scale, inverse = power_of_two(_largest(slots + model * SLOTS, 1, 1))
    total = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        inside = at < K
        a = tl.load(grad + row[:, None] * K + at[None, :], mask=(row < rows)[:, None] & inside[None, :], other=0.0)
        b = weight + at[:, None] * WIDTH + col[None, :]
        b_mask = inside[:, None] & (col < WIDTH)[None, :]
        a1, a2 = split(a * inverse)
        b1 = tl.load(b, mask=b_mask, other=0.0)
        if TERMS == 1:
            total += tl.dot(a1, b1)
        else:
            part = tl.dot(a2, b1)
            part = tl.dot(a1, tl.load(b + weight_plane, mask=b_mask, other=0.0), part)
            total += tl.dot(a1, b1, part)
    scale, _ = power_of_two(tl.load(most + model))
    place = out + row[:, None] * N + col[None, :]
    tl.store(place, total * scale * grad_scale, mask=(row < rows)[:, None] & (col < N)[None, :])


@triton.jit(do_not_specialize=["rows", "each"])
def rows_times(
    x, weight, most, bias, out, rows, each, weight_plane,
    N: tl.constexpr, K: tl.constexpr, WIDTH: tl.constexpr, TRANSPOSED: tl.constexpr, TERMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """`out[rows, N]` = `x[rows, K] @ weight` (or its transpose) plus `bias`; the weight in parts, x scaled by rows."""
    blocks: tl.constexpr = (N + BN - 1) // BN
    first = (tl.program_id(0) // blocks).to(tl.int64) * BM
    row = first + tl.arange(0, BM)
    col = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    model = first // each
    weight += model * ((N if TRANSPOSED else K) * WIDTH)
    total = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        a = tl.load(x + row[:, None] * K + at[None, :], mask=(row < rows)[:, None] & (at < K)[None, :], other=0.0)
        if TRANSPOSED:
            b = weight + col[None, :] * WIDTH + at[:, None]
            b_mask = (col < N)[None, :] & (at < WIDTH)[:, None]
        else:
            b = weight + at[:, None] * WIDTH + col[None, :]
            b_mask = (at < K)[:, None] & (col < WIDTH)[None, :]
        own_scale, inverse = power_of_two(tl.max(tl.abs(a), axis=1))
        a1, a2 = split(a * inverse[:, None])
        b1 = tl.load(b, mask=b_mask, other=0.0)
        if TERMS == 1:
            part = tl.dot(a1, b1)
        else:
            part = tl.dot(a2, b1)
            part = tl.dot(a1, tl.load(b + weight_plane, mask=b_mask, other=0.0), part)
            part = tl.dot(a1, b1, part)
        total += part * own_scale[:, None]
    scale, _ = power_of_two(tl.load(most + model))
    total *= scale
    if bias is not None:
        total += tl.load(bias + model * N + col, mask=col < N, other=0.0)[None, :]
    tl.store(out + row[:, None] * N + col[None, :], total, mask=(row < rows)[:, None] & (col < N)[None, :])


@triton.jit(do_not_specialize=["rows", "parts", "room", "models"])
def transposed_times_hidden(
    grad, slots, hidden, spans, partial, rows, parts, room, models, plane,
    ADD: tl.constexpr, K: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr, LEVELS: tl.constexpr, TERMS: tl.constexpr,
    SPANS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """`partial[model, part]`, `[K, N]`, = `grad.T @ hidden` over the rows of a part (`ADD`: plus what was there), to be
    summed over the parts; there is `room` for at least so many parts of each model.

    `slots` has `LEVELS` (a power of two) times `models` times `SLOTS` places. The rows of a model are those of `SPANS`
    levels: where a level begins and how many rows of it are one model's, `[SPANS, 2]`; one model needs no `spans`.
    """
    blocks: tl.constexpr = (N + BM - 1) // BM
    col = (tl.program_id(0) % blocks) * BM + tl.arange(0, BM)
    gate = (tl.program_id(0) // blocks) * BN + tl.arange(0, BN)
    part = tl.program_id(1).to(tl.int64)
    model = part // parts
    grad_scale, inverse = power_of_two(_largest(slots + model * SLOTS, LEVELS, models))
    total = tl.zeros([BM, BN], dtype=tl.float32)
    for span in range(SPANS):
        begin, each = part * 0, rows.to(tl.int64)
        if spans is not None:
            begin, each = tl.load(spans + 2 * span).to(tl.int64), tl.load(spans + 2 * span + 1).to(tl.int64)
        first, last = part_of(begin + model * each, each, part - model * parts, parts, BK)
        for k in range(first, last, BK):
            row = k + tl.arange(0, BK)
            live = (row < last)[:, None]
            a = hidden + row[:, None] * WIDTH + col[None, :]
            a_mask = live & (col < WIDTH)[None, :]
            b = tl.load(grad + row[:, None] * K + gate[None, :], mask=live & (gate < K)[None, :], other=0.0)
            a1 = tl.load(a, mask=a_mask, other=0.0)
            b1, b2 = split(b * inverse)
            if TERMS == 1:
                total += tl.dot(tl.trans(a1), b1)
            else:
                both = tl.dot(tl.trans(tl.load(a + plane, mask=a_mask, other=0.0)), b1)
                both = tl.dot(tl.trans(a1), b2, both)
                total += tl.dot(tl.trans(a1), b1, both)
    place = partial + (model * (room - parts) + part) * (K * N) + gate[None, :] * N + col[:, None]
    mask = (gate < K)[None, :] & (col < N)[:, None]
    total *= grad_scale / HIDDEN_SCALE
    if ADD:
        total += tl.load(place, mask=mask, other=0.0)
    tl.store(place, total, mask=mask)


@triton.jit(do_not_specialize=["each", "parts", "room"])
def transposed_times_rows(
    grad, x, partial, sums, each, parts, room,
    ADD: tl.constexpr, K: tl.constexpr, N: tl.constexpr, TERMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """`partial[model, part]`, `[K, N]`, = `grad.T @ x` over the rows of a part (`ADD`: plus what was there), to be
    summed over the parts; both are scaled by columns. `sums[model, part]`, `[K]`, is the sum of those rows of `grad`
    (likewise), if that is wanted."""
    blocks: tl.constexpr = (N + BN - 1) // BN
    gate = (tl.program_id(0) // blocks) * BM + tl.arange(0, BM)
    col = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    part = tl.program_id(1).to(tl.int64)
    model = part // parts
    first, last = part_of(model * each, each.to(tl.int64), part - model * parts, parts, BK)
    total = tl.zeros([BM, BN], dtype=tl.float32)
    whole = tl.zeros([BM], dtype=tl.float32)
    for k in range(first, last, BK):
        row = k + tl.arange(0, BK)
        live = (row < last)[:, None]
        a = tl.load(grad + row[:, None] * K + gate[None, :], mask=live & (gate < K)[None, :], other=0.0)
        b = tl.load(x + row[:, None] * N + col[None, :], mask=live & (col < N)[None, :], other=0.0)
        if sums is not None:
            whole += tl.sum(a, axis=0)
        a_scale, a_inverse = power_of_two(tl.max(tl.abs(a), axis=0))
        b_scale, b_inverse = power_of_two(tl.max(tl.abs(b), axis=0))
        a1, a2 = split(a * a_inverse[None, :])
        b1, b2 = split(b * b_inverse[None, :])
        if TERMS == 1:
            both = tl.dot(tl.trans(a1), b1)
        else:
            both = tl.dot(tl.trans(a2), b1)
            both = tl.dot(tl.trans(a1), b2, both)
            both = tl.dot(tl.trans(a1), b1, both)
        total += both * a_scale[:, None] * b_scale[None, :]
    own = model * (room - parts) + part
    place = partial + own * (K * N) + gate[:, None] * N + col[None, :]
    mask = (gate < K)[:, None] & (col < N)[None, :]
    if ADD:
        total += tl.load(place, mask=mask, other=0.0)
    tl.store(place, total, mask=mask)
    if sums is not None:  # every block of columns finds the same sums: the first one writes
        place = sums + own * K + gate
        mask = (gate < K) & (tl.program_id(0) % blocks == 0)
        if ADD:
            whole += tl.load(place, mask=mask, other=0.0)
        tl.store(place, whole, mask=mask)


@triton.jit
def part_of(begin, each, part, parts, BLOCK: tl.constexpr):
    """The first row of a part of `each` rows from `begin` on, and the row after its last; parts are whole blocks."""
    size = ((each + parts - 1) // parts + BLOCK - 1) // BLOCK * BLOCK
    first = begin + part * size
    return first, tl.minimum(first + size, begin + each)


@triton.jit
def _largest(slots, LEVELS: tl.constexpr, models):
    """The largest of the absolute values whose bits were collected in `slots`, `[LEVELS, models, SLOTS]`, for one model
    (the first, from where `slots` points to)."""
    at = tl.arange(0, LEVELS * SLOTS)
    return tl.max(tl.load(slots + at // SLOTS * (models * SLOTS) + at % SLOTS), axis=0).to(tl.float32, bitcast=True)
