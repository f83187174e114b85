"""Kernels for padded batches: copy a trie into a padded one, and normalise rows without the padding.

BatchNorm reads the first `valid` rows of a matrix; `valid` is in the memory of the GPU. Statistics are computed per
chunk of rows and combined by every program that needs them: two launches, no atomics.
"""

from __future__ import annotations

import triton
import triton.language as tl

_NUMBERS = ["levels", "nodes", "all_nodes", "edges", "all_edges"]


@triton.jit(do_not_specialize=_NUMBERS, do_not_specialize_on_alignment=["vertex", "parent", "edge", "distance"])
def pad_levels(
    table, vertex, parent, edge, distance, out_vertex, out_parent, out_edge, out_distance,
    levels, nodes, all_nodes, edges, all_edges, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy each level of a trie into a padded one, and spread the padded entries evenly over the padding above.

    The rows of `table`, `[6, levels]`, are: entries; room for them; first entry and first child (-1: a root), here and
    in the padded trie. Programs of the second dimension share a level.
    """
    level = tl.program_id(0)
    size, room = tl.load(table + level), tl.load(table + levels + level)
    first, child = tl.load(table + 2 * levels + level), tl.load(table + 3 * levels + level)
    to, to_child = tl.load(table + 4 * levels + level), tl.load(table + 5 * levels + level)
    above = tl.load(table + level - 1, mask=level > 0, other=0)
    above_room = tl.load(table + levels + level - 1, mask=level > 0, other=0)
    free = (room - size).to(tl.int64)
    for begin in range(tl.program_id(1) * BLOCK, room, tl.num_programs(1) * BLOCK):
        j = begin + tl.arange(0, BLOCK)
        on, real = j < room, j < size
        share = (j - size).to(tl.int64)
        v = tl.load(vertex + first + j, mask=real, other=0)
        padding = nodes + (share * (all_nodes - nodes) // free).to(tl.int32)
        tl.store(out_vertex + to + j, tl.where(real, v, padding), mask=on)
        if distance is not None:
            tl.store(out_distance + to + j, tl.load(distance + first + j, mask=real, other=0), mask=on)
        below = on & (child >= 0)
        p = tl.load(parent + child + j, mask=real & below, other=0)
        padding = above + (share * (above_room - above) // free).to(tl.int32)
        tl.store(out_parent + to_child + j, tl.where(real, p, padding), mask=below)
        e = tl.load(edge + child + j, mask=real & below, other=0)
        padding = edges + (share * (all_edges - edges) // free).to(tl.int32)
        tl.store(out_edge + to_child + j, tl.where(real, e, padding), mask=below)


@triton.jit
def chunk_statistics(x, valid, partial, chunk, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Compute mean and sum of squared differences of the valid rows of each chunk: `partial[chunks, 2, d]`."""
    first = tl.program_id(0) * chunk
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    last = tl.minimum(first + chunk, tl.load(valid))
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for begin in range(first, last, ROWS):
        row = begin + tl.arange(0, ROWS)
        total += tl.load(
            x + row[:, None] * WIDTH + col[None, :], mask=(row < last)[:, None] & width[None, :], other=0.0
        )
    count = tl.maximum(last - first, 1)
    mean = tl.sum(total, axis=0) / count
    spread = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for begin in range(first, last, ROWS):
        row = begin + tl.arange(0, ROWS)
        on = (row < last)[:, None] & width[None, :]
        away = tl.load(x + row[:, None] * WIDTH + col[None, :], mask=on, other=0.0) - mean[None, :]
        spread += tl.where(on, away * away, 0.0)
    out = partial + tl.program_id(0) * (2 * WIDTH) + col
    tl.store(out, mean, mask=width)
    tl.store(out + WIDTH, tl.sum(spread, axis=0), mask=width)


@triton.jit
def normalise(
    x, valid, partial, weight, bias, running_mean, running_var, out, mean_out, scale_out,
    rows, chunk, chunks, eps, momentum,
    RELU: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, ROWS: tl.constexpr, TIMES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Normalise `TIMES * ROWS` rows with the padding, then ReLU if `RELU`; the first programs update the statistics."""
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    true = tl.load(valid)
    n = tl.maximum(true, 1)
    part = tl.arange(0, CHUNKS)
    here = (part < chunks)[:, None] & width[None, :]
    at = partial + part[:, None] * (2 * WIDTH) + col[None, :]
    means = tl.load(at, mask=here, other=0.0)
    count = tl.minimum(tl.maximum(n - part * chunk, 0), chunk).to(tl.float32)
    mean = tl.sum(means * count[:, None], axis=0) / n
    away = means - mean[None, :]
    spread = tl.load(at + WIDTH, mask=here, other=0.0) + away * away * count[:, None]
    square = tl.sum(tl.where(here, spread, 0.0), axis=0)
    scale = 1.0 / tl.sqrt(square / n + eps)
    w = tl.load(weight + col, mask=width, other=0.0)
    b = tl.load(bias + col, mask=width, other=0.0)
    for time in range(TIMES):
        row = (tl.program_id(0) * TIMES + time) * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & width[None, :]
        place = row[:, None] * WIDTH + col[None, :]
        value = (tl.load(x + place, mask=mask, other=0.0) - mean[None, :]) * (scale * w)[None, :] + b[None, :]
        if RELU:
            value = tl.maximum(value, 0.0)
        tl.store(out + place, value, mask=mask)
    if tl.program_id(0) == 0:
        tl.store(mean_out + col, mean, mask=width)
        tl.store(scale_out + col, scale, mask=width)
        learns = width & (true > 0)
        old = tl.load(running_mean + col, mask=width, other=0.0)
        tl.store(running_mean + col, old + momentum * (mean - old), mask=learns)
        old = tl.load(running_var + col, mask=width, other=0.0)
        tl.store(running_var + col, old + momentum * (square / tl.maximum(n - 1, 1) - old), mask=learns)


@triton.jit
def chunk_gradients(
    grad, x, valid, mean, scale, weight, bias, partial, chunk,
    RELU: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the gradient, and its product with the normalised input, over the valid rows of each chunk."""
    first = tl.program_id(0) * chunk
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    last = tl.minimum(first + chunk, tl.load(valid))
    m = tl.load(mean + col, mask=width, other=0.0)
    s = tl.load(scale + col, mask=width, other=0.0)
    w = tl.load(weight + col, mask=width, other=0.0)
    b = tl.load(bias + col, mask=width, other=0.0)
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    along = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for begin in range(first, last, ROWS):
        row = begin + tl.arange(0, ROWS)
        on = (row < last)[:, None] & width[None, :]
        place = row[:, None] * WIDTH + col[None, :]
        g = tl.load(grad + place, mask=on, other=0.0)
        away = tl.load(x + place, mask=on, other=0.0) - m[None, :]
        if RELU:
            g = tl.where(away * (s * w)[None, :] + b[None, :] > 0.0, g, 0.0)
        total += g
        along += g * away * s[None, :]
    out = partial + tl.program_id(0) * (2 * WIDTH) + col
    tl.store(out, tl.sum(total, axis=0), mask=width)
    tl.store(out + WIDTH, tl.sum(along, axis=0), mask=width)


@triton.jit
def normalise_backward(
    grad, x, valid, mean, scale, weight, bias, partial, grad_x, grad_weight, grad_bias, rows, chunks,
    RELU: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, ROWS: tl.constexpr, TIMES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of the input, zero in the padding; the first programs also write those of the parameters."""
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    true = tl.load(valid)
    n = tl.maximum(true, 1)
    part = tl.arange(0, CHUNKS)
    here = (part < chunks)[:, None] & width[None, :]
    at = partial + part[:, None] * (2 * WIDTH) + col[None, :]
    total = tl.sum(tl.load(at, mask=here, other=0.0), axis=0)
    along = tl.sum(tl.load(at + WIDTH, mask=here, other=0.0), axis=0)
    m = tl.load(mean + col, mask=width, other=0.0)
    s = tl.load(scale + col, mask=width, other=0.0)
    w = tl.load(weight + col, mask=width, other=0.0)
    b = tl.load(bias + col, mask=width, other=0.0)
    for time in range(TIMES):
        row = (tl.program_id(0) * TIMES + time) * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & width[None, :]
        on = (row < true)[:, None] & width[None, :]
        place = row[:, None] * WIDTH + col[None, :]
        g = tl.load(grad + place, mask=on, other=0.0)
        away = tl.load(x + place, mask=on, other=0.0) - m[None, :]
        if RELU:
            g = tl.where(away * (s * w)[None, :] + b[None, :] > 0.0, g, 0.0)
        normal = away * s[None, :]
        value = (w * s)[None, :] * (g - (total / n)[None, :] - normal * (along / n)[None, :])
        tl.store(grad_x + place, tl.where(on, value, 0.0), mask=mask)
    if tl.program_id(0) == 0:
        tl.store(grad_weight + col, along, mask=width)
        tl.store(grad_bias + col, total, mask=width)
