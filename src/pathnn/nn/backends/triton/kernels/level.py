"""The forward and the backward pass of one level of the LSTM.

The activations use the GPU's exponentials and reciprocals (about one unit in the last place), take denormal numbers as
zero, and do not branch. Both are exact within 4e-7 (2.1e-7 was measured on an H200); tanh within a few units in the
last place, the logistic function of numbers far below 0 within more (about 20 at -12).
"""

from __future__ import annotations

import triton
from triton import language as tl
from triton.language.extra import libdevice

from pathnn.nn.backends.triton.kernels.product import HIDDEN_SCALE, SLOTS, split


@triton.jit
def sigmoid(x):
    """Compute the logistic function."""
    return libdevice.fast_dividef(1.0, 1.0 + libdevice.exp2(x * -1.4426950408889634))


@triton.jit
def tanh(x):
    """Compute 1 - 2 / (exp(2x) + 1); near 0, where that would cancel, a minimax polynomial (relative error 5e-9)."""
    far = 1.0 - libdevice.fast_dividef(2.0, libdevice.exp2(x * 2.8853900817779268) + 1.0)
    u = x * x
    p = -0.005895157810300589 * u + 0.020795971155166626
    p = p * u - 0.053783830255270004
    p = p * u + 0.13331924378871918
    p = p * u - 0.33333298563957214
    return tl.where(tl.abs(x) < 0.6, x + x * (u * p), far)


_INDICES = ["parent", "vertex", "edge", "distance", "start"]
_NUMBERS = ["entries", "parents", "dummy_row", "no_edge", "first_entry", "first_parent", "first_child"]


@triton.jit(do_not_specialize=["number"], do_not_specialize_on_alignment=["edge", "types", "out"])
def look_up_types(edge, types, out, number, BLOCK: tl.constexpr):
    """Write the type of each of `number` edges, `types[edge]`; edges below 0 stay."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    e = tl.load(edge + at, mask=at < number, other=-1)
    found = tl.load(types + e, mask=e >= 0, other=0).to(tl.int32)
    tl.store(out + at, tl.where(e < 0, e, found), mask=at < number)


@triton.jit
def _load4(table, row, col, mask, CHANNELS: tl.constexpr):
    """Load the four gates of some rows of a table `[rows, 4 * CHANNELS]`."""
    at = table + row[:, None] * (4 * CHANNELS) + col[None, :]
    i = tl.load(at, mask=mask, other=0.0)
    f = tl.load(at + CHANNELS, mask=mask, other=0.0)
    g = tl.load(at + 2 * CHANNELS, mask=mask, other=0.0)
    o = tl.load(at + 3 * CHANNELS, mask=mask, other=0.0)
    return i, f, g, o


@triton.jit
def _add_inputs(
    i, f, g, o, at, live, col, mask, vertex, edge, distance,
    vertex_table, edge_table, distance_table, dummy_row, no_edge, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Add the rows of the projected inputs that the entries `at` read."""
    v = tl.load(vertex + at, mask=live, other=0)
    a, b, c, d = _load4(vertex_table, tl.where(v < 0, dummy_row, v).to(tl.int64), col, mask, CHANNELS)
    i, f, g, o = i + a, f + b, g + c, o + d
    if edge is not None:
        e = tl.load(edge + at, mask=live, other=-1)
        a, b, c, d = _load4(edge_table, tl.where(e < 0, no_edge, e).to(tl.int64), col, mask, CHANNELS)
        i, f, g, o = i + a, f + b, g + c, o + d
    if distance is not None:
        row = tl.load(distance + at, mask=live, other=0).to(tl.int64)
        a, b, c, d = _load4(distance_table, row, col, mask, CHANNELS)
        i, f, g, o = i + a, f + b, g + c, o + d
    return i, f, g, o


@triton.jit(do_not_specialize=_NUMBERS, do_not_specialize_on_alignment=_INDICES)
def forward_entries(
    parent, vertex, edge, distance, vertex_table, edge_table, distance_table, projected,
    hidden, cell, leaf_hidden, entries, first_entry, first_parent, dummy_row, no_edge, plane,
    CHANNELS: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the states of a level: to `hidden` and `cell` from row `first_entry` on, h to `leaf_hidden`, or both.

    c of the parents is in `cell` from row `first_parent` on; `projected`, `[parents, 4d]`, is their `W_hh h`.
    `hidden` has `PARTS` planes of rows of length `WIDTH`, as the products read them (`kernels.product`).
    """
    at = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = at < entries
    mask = live[:, None] & (col < CHANNELS)[None, :]
    i = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    f, g, o, before = i, i, i, i
    if parent is not None:
        p = tl.load(parent + at, mask=live, other=0).to(tl.int64)
        i, f, g, o = _load4(projected, p, col, mask, CHANNELS)
        before = tl.load(cell + (first_parent + p)[:, None] * CHANNELS + col[None, :], mask=mask, other=0.0)
    i, f, g, o = _add_inputs(
        i, f, g, o, at, live, col, mask, vertex, edge, distance,
        vertex_table, edge_table, distance_table, dummy_row, no_edge, CHANNELS,
    )  # fmt: skip
    c = sigmoid(f) * before + sigmoid(i) * tanh(g)
    h = sigmoid(o) * tanh(c)
    if leaf_hidden is not None:
        tl.store(leaf_hidden + at[:, None] * CHANNELS + col[None, :], h, mask=mask)
    if hidden is not None:
        tl.store(cell + (first_entry + at)[:, None] * CHANNELS + col[None, :], c, mask=mask)
        out = (first_entry + at)[:, None] * WIDTH + col[None, :]
        padded = live[:, None] & (col < WIDTH)[None, :]
        first, second = split(tl.where(mask, h * HIDDEN_SCALE, 0.0))
        tl.store(hidden + out, first, mask=padded)
        if PARTS == 2:
            tl.store(hidden + plane + out, second, mask=padded)


@triton.jit(do_not_specialize=_NUMBERS, do_not_specialize_on_alignment=_INDICES)
def backward_children(
    start, vertex, edge, distance, vertex_table, edge_table, distance_table, projected, cell,
    grad_hidden, grad_source, grad_cell, grad_gates, grad_projected, grad_cell_parent, slots,
    parents, first_entry, first_parent, first_child, dummy_row, no_edge,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the gradients before activation of the children of some parents, and their sums.

    The children of parent `p` are the entries `start[p]:start[p + 1]`, counted from `first_child`; without `start`
    there are no parents, and each entry is an only child. Gradients of gates go to `grad_gates` from row `first_entry`
    on, their sums to `grad_projected` (it may be `projected`: a program reads its rows before it writes them), those of
    c of the parents (`cell` from row `first_parent` on) to `grad_cell_parent`. The gradient of h is the sum of
    `grad_hidden[child]` and `grad_source[vertex]`, if given. `slots` collects the bits of the largest absolute sum: an
    atomic maximum does not depend on the order.
    """
    p = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = p < parents
    width = (col < CHANNELS)[None, :]
    mask = live[:, None] & width
    zero = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    pi, pf, pg, po, before = zero, zero, zero, zero, zero
    first = p
    count = tl.where(live, 1, 0)
    if start is not None:
        first = tl.load(start + p, mask=live, other=0).to(tl.int64) - first_child
        count = (tl.load(start + p + 1, mask=live, other=0).to(tl.int64) - first_child - first).to(tl.int32)
        pi, pf, pg, po = _load4(projected, p, col, mask, CHANNELS)
        before = tl.load(cell + (first_parent + p)[:, None] * CHANNELS + col[None, :], mask=mask, other=0.0)
    sum_i, sum_f, sum_g, sum_o, sum_c = zero, zero, zero, zero, zero
    for t in range(tl.max(count, axis=0)):
        at = first + t
        on = t < count
        here = on[:, None] & width
        i, f, g, o = _add_inputs(
            pi, pf, pg, po, at, on, col, here, vertex, edge, distance,
            vertex_table, edge_table, distance_table, dummy_row, no_edge, CHANNELS,
        )  # fmt: skip
        i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
        c = tanh(f * before + i * g)
        dh = zero
        if grad_hidden is not None:
            dh += tl.load(grad_hidden + at[:, None] * CHANNELS + col[None, :], mask=here, other=0.0)
        if grad_source is not None:
            v = tl.load(vertex + at, mask=on, other=0).to(tl.int64)
            dh += tl.load(grad_source + v[:, None] * CHANNELS + col[None, :], mask=here, other=0.0)
        dc = dh * o * (1.0 - c * c)
        if grad_cell is not None:
            dc += tl.load(grad_cell + at[:, None] * CHANNELS + col[None, :], mask=here, other=0.0)
        di = dc * g * i * (1.0 - i)
        df = dc * before * f * (1.0 - f)
        dg = dc * i * (1.0 - g * g)
        do = dh * c * o * (1.0 - o)
        out = grad_gates + (first_entry + at)[:, None] * (4 * CHANNELS) + col[None, :]
        tl.store(out, di, mask=here)
        tl.store(out + CHANNELS, df, mask=here)
        tl.store(out + 2 * CHANNELS, dg, mask=here)
        tl.store(out + 3 * CHANNELS, do, mask=here)
        # rows past their last child have dh = dc = 0, and so add nothing
        sum_i, sum_f, sum_g, sum_o, sum_c = sum_i + di, sum_f + df, sum_g + dg, sum_o + do, sum_c + dc * f
    if start is not None:
        out = grad_projected + p[:, None] * (4 * CHANNELS) + col[None, :]
        tl.store(out, sum_i, mask=mask)
        tl.store(out + CHANNELS, sum_f, mask=mask)
        tl.store(out + 2 * CHANNELS, sum_g, mask=mask)
        tl.store(out + 3 * CHANNELS, sum_o, mask=mask)
        tl.store(grad_cell_parent + p[:, None] * CHANNELS + col[None, :], sum_c, mask=mask)
        most = tl.maximum(tl.maximum(tl.abs(sum_i), tl.abs(sum_f)), tl.maximum(tl.abs(sum_g), tl.abs(sum_o)))
        bits = tl.max(tl.max(most, axis=1), axis=0).to(tl.int32, bitcast=True)
        tl.atomic_max(slots + tl.program_id(0) % SLOTS, bits, sem="relaxed")
