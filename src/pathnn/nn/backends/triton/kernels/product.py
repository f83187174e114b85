"""Products of float32 matrices on tensor cores, as exact as float32.

A number is scaled by a power of two and split into two float16 numbers: 22 bits. A product is then three products of
float16 matrices (the fourth, of the two small parts, is below the last bit), each summed in float32; with `TERMS` = 1
only the first, which has 11 bits like TF32. This is about twice as fast as cuBLAS in float32, and no less exact.

Hidden states are below 1, and are kept as such pairs (`HIDDEN_SCALE`). Weights are split once per step. Gradients are
split when they are read; their largest absolute value is collected in `SLOTS` places when they are written. Vertices
are scaled row by row.
"""

from __future__ import annotations

import triton
import triton.language as tl

SLOTS = tl.constexpr(64)
HIDDEN_SCALE = tl.constexpr(4096.0)


@triton.jit
def power_of_two(most):
    """Return a power of two s such that `most / s` is between 2**11 and 2**12, and 1 / s."""
    bits = tl.maximum(most.to(tl.int32, bitcast=True) & 0x7F800000, 16 << 23) - (11 << 23)
    return bits.to(tl.float32, bitcast=True), ((254 << 23) - bits).to(tl.float32, bitcast=True)


@triton.jit
def split(x):
    """Return the two float16 numbers whose sum is x, up to 22 bits."""
    first = x.to(tl.float16)
    return first, (x - first.to(tl.float32)).to(tl.float16)


@triton.jit
def largest_of_rows(weight, out, cols, row_stride, BLOCK: tl.constexpr):
    """Write the largest absolute value of each row."""
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    x = tl.load(weight + row * row_stride + col, mask=col < cols, other=0.0)
    tl.store(out + row, tl.max(tl.abs(x), axis=0))


@triton.jit
def split_weight(
    weight, of_rows, most, out, rows, cols, row_stride,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Split a matrix divided by its power of two: `out[2, rows, WIDTH]`, zeros right of the last column."""
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    every = tl.arange(0, ROWS)
    largest = tl.max(tl.load(of_rows + every, mask=every < rows, other=0.0), axis=0)
    tl.store(most, largest, mask=row == 0)
    _, inverse = power_of_two(largest)
    x = tl.load(weight + row * row_stride + col, mask=col < cols, other=0.0)
    first, second = split(x * inverse)
    tl.store(out + row * WIDTH + col, first, mask=col < WIDTH)
    tl.store(out + (rows + row) * WIDTH + col, second, mask=col < WIDTH)


@triton.jit(do_not_specialize=["rows"])
def times_transposed(
    hidden, weight, most, out, rows, plane, weight_plane,
    N: tl.constexpr, WIDTH: tl.constexpr, TERMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Compute `out[rows, N]` = `hidden @ weight.T`, both split: rows of length `WIDTH`, in planes."""
    blocks: tl.constexpr = (N + BN - 1) // BN
    row = (tl.program_id(0) // blocks).to(tl.int64) * BM + tl.arange(0, BM)
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
    scale, _ = power_of_two(tl.load(most))
    place = out + row[:, None] * N + col[None, :]
    tl.store(place, total * (scale / HIDDEN_SCALE), mask=(row < rows)[:, None] & (col < N)[None, :])


@triton.jit(do_not_specialize=["rows"])
def times_weight(
    grad, slots, weight, most, out, rows, weight_plane,
    N: tl.constexpr, K: tl.constexpr, WIDTH: tl.constexpr, TERMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Compute `out[rows, N]` = `grad[rows, K] @ weight`, the weight split, the largest gradient in `slots`."""
    blocks: tl.constexpr = (N + BN - 1) // BN
    row = (tl.program_id(0) // blocks).to(tl.int64) * BM + tl.arange(0, BM)
    col = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    grad_scale, inverse = power_of_two(_largest(slots, 1))
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
    scale, _ = power_of_two(tl.load(most))
    place = out + row[:, None] * N + col[None, :]
    tl.store(place, total * scale * grad_scale, mask=(row < rows)[:, None] & (col < N)[None, :])


@triton.jit(do_not_specialize=["rows"])
def rows_times(
    x, weight, most, bias, out, rows, weight_plane,
    N: tl.constexpr, K: tl.constexpr, WIDTH: tl.constexpr, TRANSPOSED: tl.constexpr, TERMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Compute `out[rows, N]` = `x[rows, K] @ weight` (or its transpose) + `bias`; split weight, x scaled by rows."""
    blocks: tl.constexpr = (N + BN - 1) // BN
    row = (tl.program_id(0) // blocks).to(tl.int64) * BM + tl.arange(0, BM)
    col = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
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
    scale, _ = power_of_two(tl.load(most))
    total *= scale
    if bias is not None:
        total += tl.load(bias + col, mask=col < N, other=0.0)[None, :]
    tl.store(out + row[:, None] * N + col[None, :], total, mask=(row < rows)[:, None] & (col < N)[None, :])


@triton.jit(do_not_specialize=["rows", "parts"])
def transposed_times_hidden(
    grad, slots, hidden, partial, rows, parts, plane,
    ADD: tl.constexpr, K: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr, LEVELS: tl.constexpr, TERMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Write (`ADD`: add) `grad.T @ hidden` over the rows of a part to `partial[part]`, `[K, N]`."""
    blocks: tl.constexpr = (N + BM - 1) // BM
    col = (tl.program_id(0) % blocks) * BM + tl.arange(0, BM)
    gate = (tl.program_id(0) // blocks) * BN + tl.arange(0, BN)
    part = tl.program_id(1).to(tl.int64)
    grad_scale, inverse = power_of_two(_largest(slots, LEVELS))
    total = tl.zeros([BM, BN], dtype=tl.float32)
    first, last = part_of(rows.to(tl.int64), part, parts, BK)
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
    place = partial + part * (K * N) + gate[None, :] * N + col[:, None]
    mask = (gate < K)[None, :] & (col < N)[:, None]
    total *= grad_scale / HIDDEN_SCALE
    if ADD:
        total += tl.load(place, mask=mask, other=0.0)
    tl.store(place, total, mask=mask)


@triton.jit(do_not_specialize=["rows", "parts"])
def transposed_times_rows(
    grad, x, partial, sums, rows, parts,
    ADD: tl.constexpr, K: tl.constexpr, N: tl.constexpr, TERMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Write (`ADD`: add) `grad.T @ x` over the rows of a part, both scaled by columns, to `partial[part]`, `[K, N]`."""
    blocks: tl.constexpr = (N + BN - 1) // BN
    gate = (tl.program_id(0) // blocks) * BM + tl.arange(0, BM)
    col = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    part = tl.program_id(1).to(tl.int64)
    first, last = part_of(rows.to(tl.int64), part, parts, BK)
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
    place = partial + part * (K * N) + gate[:, None] * N + col[None, :]
    mask = (gate < K)[:, None] & (col < N)[None, :]
    if ADD:
        total += tl.load(place, mask=mask, other=0.0)
    tl.store(place, total, mask=mask)
    if sums is not None:  # of `grad`: every block of columns finds the same, and the first one writes
        place = sums + part * K + gate
        mask = (gate < K) & (tl.program_id(0) % blocks == 0)
        if ADD:
            whole += tl.load(place, mask=mask, other=0.0)
        tl.store(place, whole, mask=mask)


@triton.jit
def part_of(rows, part, parts, BLOCK: tl.constexpr):
    """Return the first row of a part and the row after its last; parts are whole blocks."""
    size = ((rows + parts - 1) // parts + BLOCK - 1) // BLOCK * BLOCK
    first = part * size
    return first, tl.minimum(first + size, rows)


@triton.jit
def _largest(slots, LEVELS: tl.constexpr):
    """Return the largest of the absolute values whose bits are in `slots`, `[LEVELS, SLOTS]`: powers of two."""
    return tl.max(tl.load(slots + tl.arange(0, LEVELS * SLOTS)), axis=0).to(tl.float32, bitcast=True)
