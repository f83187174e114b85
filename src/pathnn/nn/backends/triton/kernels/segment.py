"""Sums of rows that go to the same place, in a fixed order: no atomics, the same bits every time."""

from __future__ import annotations

import triton
import triton.language as tl

from pathnn.nn.backends.triton.kernels.product import part_of


@triton.jit(do_not_specialize=["first_row", "stride", "span"], do_not_specialize_on_alignment=["order", "start"])
def sum_segments(
    rows, order, start, out, first_row, stride, span,
    ADD: tl.constexpr, WIDTH: tl.constexpr, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`out[s]` = sum (`ADD`: plus what was there) of `rows[order[j] - first_row]`, `j` from `start[stride * s]` up to
    `start[stride * s + span]`."""
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
    """The bfloat16 number that the first 16 bits of x are, and the rest of x. Bits, because conversions are slow."""
    bits = x.to(tl.int32, bitcast=True)
    half = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    return half, x - (bits & -65536).to(tl.float32, bitcast=True)


@triton.jit(
    do_not_specialize=["entries", "roots", "parts", "room"],
    do_not_specialize_on_alignment=["edge", "distance", "marks"],
)
def sum_small_tables(
    rows, edge, distance, marks, spans, partial, entries, roots, parts, room,
    ADD: tl.constexpr, EDGES: tl.constexpr, DISTANCES: tl.constexpr, KINDS: tl.constexpr,
    SPANS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """For each of `EDGES` rows of the edge table, then each of `DISTANCES` rows of the distance table, the sum of the
    `rows` of the entries that read it: into (`ADD`: to) `partial[program]`, `[EDGES + DISTANCES, WIDTH]`, to be summed.
    With `marks` there are `EDGES` parts instead, and an entry reads those whose bit is in the mark of its kind.

    A product with a matrix of zeros and ones on tensor cores; a float32 number is the sum of three bfloat16 ones, so
    that nothing is lost. The first `roots` entries have no edge, so `edge` begins with the entry after them. `KINDS` is
    a power of two not below 16 that holds both. The entries of one of several models are those of `SPANS` levels
    (`kernels.product.transposed_times_hidden`), its distances are counted after those of the models before it.
    """
    program = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    kinds = tl.arange(0, KINDS)
    total = tl.zeros([KINDS, BLOCK], dtype=tl.float32)
    model = program // parts
    for span in range(SPANS):
        start, each = program * 0, entries.to(tl.int64)
        if spans is not None:
            start, each = tl.load(spans + 2 * span).to(tl.int64), tl.load(spans + 2 * span + 1).to(tl.int64)
        first, last = part_of(start + model * each, each, program - model * parts, parts, ROWS)
        for begin in range(first, last, ROWS):
            at = begin + tl.arange(0, ROWS)
            on = at < last
            values = tl.load(rows + at[:, None] * WIDTH + col[None, :], mask=on[:, None] & width[None, :], other=0.0)
            reads = tl.zeros([KINDS, ROWS], dtype=tl.float32)
            if edge is not None:
                kind = tl.load(edge + (at - roots), mask=on & (at >= roots), other=-1)
                if marks is None:
                    reads += tl.where(kinds[:, None] == kind[None, :], 1.0, 0.0)
                else:
                    bits = tl.load(marks + kind, mask=kind >= 0, other=0)
                    here = (bits[None, :] >> tl.minimum(kinds, 31)[:, None]) & 1
                    reads += tl.where((kinds < EDGES)[:, None], here.to(tl.float32), 0.0)
            if distance is not None:
                far = tl.load(distance + at, mask=on, other=-1 - EDGES) - model * DISTANCES
                reads += tl.where(kinds[:, None] == (EDGES + far)[None, :], 1.0, 0.0)
            ones = reads.to(tl.bfloat16)
            high, rest = upper_half(values)
            middle, rest = upper_half(rest)
            low, _ = upper_half(rest)
            total += tl.dot(
                ones, high, tl.dot(ones, middle, tl.dot(ones, low))
            )  # tensor cores round sums down: keep them short
    out = (
        partial
        + (model * (room - parts) + program) * ((EDGES + DISTANCES) * WIDTH)
        + kinds[:, None] * WIDTH
        + col[None, :]
    )
    mask = (kinds < EDGES + DISTANCES)[:, None] & width[None, :]
    if ADD:
        total += tl.load(out, mask=mask, other=0.0)
    tl.store(out, total, mask=mask)
