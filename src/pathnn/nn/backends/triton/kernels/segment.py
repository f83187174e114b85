"""Sums of rows with the same place, in a fixed order: no atomics, the same bits every time."""

from __future__ import annotations

import triton
import triton.language as tl

from pathnn.nn.backends.triton.kernels.product import part_of


@triton.jit(do_not_specialize=["first_row", "stride", "span"], do_not_specialize_on_alignment=["order", "start"])
def sum_segments(
    rows, order, start, out, first_row, stride, span,
    ADD: tl.constexpr, WIDTH: tl.constexpr, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum `rows[order[j] - first_row]`, j from `start[stride * s]` to `start[stride * s + span]`, to `out[s]`."""
    s = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    first = tl.load(start + s * stride).to(tl.int64)
    last = tl.load(start + s * stride + span).to(tl.int64)
    total = tl.zeros([AT_ONCE, BLOCK], dtype=tl.float32)
    for j in range(first, last, AT_ONCE):
        at = j + tl.arange(0, AT_ONCE)
        on = at < last
        row = tl.load(order + at, mask=on, other=0).to(tl.int64) - first_row
        total += tl.load(rows + row[:, None] * WIDTH + col[None, :], mask=on[:, None] & width[None, :], other=0.0)
    result = tl.sum(total, axis=0)
    if ADD:
        result += tl.load(out + s * WIDTH + col, mask=width, other=0.0)
    tl.store(out + s * WIDTH + col, result, mask=width)


@triton.jit
def upper_half(x):
    """Return the first 16 bits of x as a bfloat16 number, and the rest of x. Uses bits: conversions are slow."""
    bits = x.to(tl.int32, bitcast=True)
    half = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    return half, x - (bits & -65536).to(tl.float32, bitcast=True)


@triton.jit(
    do_not_specialize=["entries", "roots", "parts"], do_not_specialize_on_alignment=["edge", "distance", "masks"]
)
def sum_small_tables(
    rows, edge, distance, masks, partial, entries, roots, parts,
    ADD: tl.constexpr, EDGES: tl.constexpr, DISTANCES: tl.constexpr, TABLE: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the `rows` of the entries that read each of `EDGES` rows of the edge table, then each of `DISTANCES` rows of
    the distance table, into `partial[program]`, `[EDGES + DISTANCES, WIDTH]`; `ADD` adds to what is there.

    With `masks`, the first rows are the components in the mask of each type instead. This is a product with zeros and
    ones on tensor cores; a float32 number is the sum of three bfloat16 numbers, so nothing is lost. `edge` begins after
    the first `roots` entries, which have none. `TABLE` is a power of two, at least 16 and `EDGES + DISTANCES`.
    """
    program = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    place = tl.arange(0, TABLE)
    total = tl.zeros([TABLE, BLOCK], dtype=tl.float32)
    first, last = part_of(entries.to(tl.int64), program, parts, ROWS)
    for begin in range(first, last, ROWS):
        at = begin + tl.arange(0, ROWS)
        on = at < last
        values = tl.load(rows + at[:, None] * WIDTH + col[None, :], mask=on[:, None] & width[None, :], other=0.0)
        reads = tl.zeros([TABLE, ROWS], dtype=tl.float32)
        if edge is not None:
            kind = tl.load(edge + (at - roots), mask=on & (at >= roots), other=-1)
            if masks is None:
                reads += tl.where(place[:, None] == kind[None, :], 1.0, 0.0)
            else:
                bits = tl.load(masks + kind, mask=kind >= 0, other=0)
                here = (bits[None, :] >> tl.minimum(place, 31)[:, None]) & 1
                reads += tl.where((place < EDGES)[:, None], here.to(tl.float32), 0.0)
        if distance is not None:
            far = tl.load(distance + at, mask=on, other=-1 - EDGES)
            reads += tl.where(place[:, None] == (EDGES + far)[None, :], 1.0, 0.0)
        ones = reads.to(tl.bfloat16)
        high, rest = upper_half(values)
        middle, rest = upper_half(rest)
        low, _ = upper_half(rest)
        # tensor cores round sums down: keep them short
        total += tl.dot(ones, high, tl.dot(ones, middle, tl.dot(ones, low)))
    out = partial + program * ((EDGES + DISTANCES) * WIDTH) + place[:, None] * WIDTH + col[None, :]
    mask = (place < EDGES + DISTANCES)[:, None] & width[None, :]
    if ADD:
        total += tl.load(out, mask=mask, other=0.0)
    tl.store(out, total, mask=mask)
