"""Sums over the edges at each vertex, read from the vertices themselves: nothing is written for an edge."""

from __future__ import annotations

import triton
import triton.language as tl

from pathnn.nn.backends.triton.kernels.product import part_of
from pathnn.nn.backends.triton.kernels.segment import upper_half


@triton.jit(do_not_specialize_on_alignment=["order", "start", "other", "kind", "scale"])
def sum_neighbours(
    x, order, start, other, kind, table, at, scale, out, own,
    WIDTH: tl.constexpr, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`out[v]` = `own x[v]` plus the sum, over the edges e of v, of `x[u]`, u = `other[e]`; the edges of v are
    `order[j]`, j from `start[v]` up to `start[v + 1]`.

    With `scale` (GCN) it is `scale[v]` times the sum of `scale[u] x[u]`, v itself included, loops left out. With
    `table` (GINE) the positive part of `x[u] + table[kind[e]]` is summed; with `at` as well, `x[u]` where `at[v] +
    table[kind[e]]` is positive, which is the gradient of it.
    """
    v = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    first, last = tl.load(start + v).to(tl.int64), tl.load(start + v + 1).to(tl.int64)
    here = tl.load(x + v * WIDTH + col, mask=width, other=0.0)
    total = tl.zeros([AT_ONCE, BLOCK], dtype=tl.float32)
    if at is not None:
        base = tl.load(at + v * WIDTH + col, mask=width, other=0.0)
    for j in range(first, last, AT_ONCE):
        place = j + tl.arange(0, AT_ONCE)
        on = place < last
        edge = tl.load(order + place, mask=on, other=0).to(tl.int64)
        u = tl.load(other + edge, mask=on, other=0).to(tl.int64)
        mask = on[:, None] & width[None, :]
        value = tl.load(x + u[:, None] * WIDTH + col[None, :], mask=mask, other=0.0)
        if table is not None:
            row = tl.load(kind + edge, mask=on, other=0).to(tl.int64)
            bond = tl.load(table + row[:, None] * WIDTH + col[None, :], mask=mask, other=0.0)
            if at is None:
                value = tl.where(on[:, None], tl.maximum(value + bond, 0.0), 0.0)
            else:
                value = tl.where(base[None, :] + bond > 0, value, 0.0)
        if scale is not None:
            value *= tl.load(scale + u, mask=on & (u != v), other=0.0)[:, None]
        total += value
    result = tl.sum(total, axis=0)
    if scale is None:
        result += own * here
    else:
        mine = tl.load(scale + v)
        result = mine * (result + mine * here)
    tl.store(out + v * WIDTH + col, result, mask=width)


@triton.jit(do_not_specialize=["each", "parts"], do_not_specialize_on_alignment=["source", "target", "kind"])
def sum_kinds(
    x, table, grad, source, target, kind, partial, each, parts,
    KINDS: tl.constexpr, ROOM: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of `table` in `sum_neighbours`: for each of a model's `KINDS` kinds, the sum over its edges e of
    `grad[target[e]]` where `x[source[e]] + table[kind[e]]` is positive; `partial[model, part]`, `[KINDS, WIDTH]`, to be
    summed over the parts. A model has `each` edges, and its kinds are counted after those of the models before it.

    A product with zeros and ones on tensor cores, as in `sum_small_tables`. `ROOM`: a power of two, at least `KINDS`.
    """
    program = tl.program_id(0).to(tl.int64)
    model = program // parts
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    kinds = tl.arange(0, ROOM)
    total = tl.zeros([ROOM, BLOCK], dtype=tl.float32)
    first, last = part_of(model * each, each.to(tl.int64), program - model * parts, parts, ROWS)
    for begin in range(first, last, ROWS):
        edge = begin + tl.arange(0, ROWS)
        on = edge < last
        u = tl.load(source + edge, mask=on, other=0).to(tl.int64)
        v = tl.load(target + edge, mask=on, other=0).to(tl.int64)
        row = tl.load(kind + edge, mask=on, other=0).to(tl.int64)
        mask = on[:, None] & width[None, :]
        value = tl.load(x + u[:, None] * WIDTH + col[None, :], mask=mask, other=0.0)
        value += tl.load(table + row[:, None] * WIDTH + col[None, :], mask=mask, other=0.0)
        up = tl.load(grad + v[:, None] * WIDTH + col[None, :], mask=mask, other=0.0)
        high, rest = upper_half(tl.where(value > 0, up, 0.0))
        middle, rest = upper_half(rest)
        low, _ = upper_half(rest)
        ones = tl.where(kinds[:, None] == (row - model * KINDS)[None, :], 1.0, 0.0).to(tl.bfloat16)
        total += tl.dot(ones, high, tl.dot(ones, middle, tl.dot(ones, low)))
    out = partial + program * (KINDS * WIDTH) + kinds[:, None] * WIDTH + col[None, :]
    tl.store(out, total, mask=(kinds < KINDS)[:, None] & width[None, :])
