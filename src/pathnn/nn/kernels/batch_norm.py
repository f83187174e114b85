"""Batch normalisation over the first rows of a matrix: how many is read from the GPU's memory, the rest is padding.

Statistics are taken per chunk of rows and put together by every program that needs them: two launches, no atomics.
"""
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: check-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def chunk_statistics(
    x, valid, partial, chunk,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Mean and sum of squared differences of the valid rows of each chunk of `chunk` rows: `partial[chunks, 2, d]`."""
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
    RELU: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The normalised rows, padding included, with `RELU` their positive parts; the first programs also write the
    statistics and the running ones."""
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    n = tl.load(valid)
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
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = (row < rows)[:, None] & width[None, :]
    place = row[:, None] * WIDTH + col[None, :]
    w = tl.load(weight + col, mask=width, other=0.0)
    b = tl.load(bias + col, mask=width, other=0.0)
    value = (tl.load(x + place, mask=mask, other=0.0) - mean[None, :]) * (scale * w)[None, :] + b[None, :]
    if RELU:
        value = tl.maximum(value, 0.0)
    tl.store(out + place, value, mask=mask)
    if tl.program_id(0) == 0:
        tl.store(mean_out + col, mean, mask=width)
        tl.store(scale_out + col, scale, mask=width)
        old = tl.load(running_mean + col, mask=width, other=0.0)
        tl.store(running_mean + col, old + momentum * (mean - old), mask=width)
        old = tl.load(running_var + col, mask=width, other=0.0)
        tl.store(running_var + col, old + momentum * (square / tl.maximum(n - 1, 1) - old), mask=width)


@triton.jit
def chunk_gradients(
    grad, x, valid, mean, scale, weight, bias, partial, chunk,
    RELU: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The sums of the gradient, and of its product with the normalised input, over the valid rows of each chunk."""
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
    RELU: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of the input, zero in the padding; the first programs also write those of weight and bias."""
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    width = col < WIDTH
    n = tl.load(valid)
    part = tl.arange(0, CHUNKS)
    here = (part < chunks)[:, None] & width[None, :]
    at = partial + part[:, None] * (2 * WIDTH) + col[None, :]
    total = tl.sum(tl.load(at, mask=here, other=0.0), axis=0)
    along = tl.sum(tl.load(at + WIDTH, mask=here, other=0.0), axis=0)
    m = tl.load(mean + col, mask=width, other=0.0)
    s = tl.load(scale + col, mask=width, other=0.0)
    w = tl.load(weight + col, mask=width, other=0.0)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = (row < rows)[:, None] & width[None, :]
    on = (row < n)[:, None] & width[None, :]
    place = row[:, None] * WIDTH + col[None, :]
    g = tl.load(grad + place, mask=on, other=0.0)
    away = tl.load(x + place, mask=on, other=0.0) - m[None, :]
    if RELU:
        b = tl.load(bias + col, mask=width, other=0.0)
        g = tl.where(away * (s * w)[None, :] + b[None, :] > 0.0, g, 0.0)
    normal = away * s[None, :]
    value = (w * s)[None, :] * (g - (total / n)[None, :] - normal * (along / n)[None, :])
    tl.store(grad_x + place, tl.where(on, value, 0.0), mask=mask)
    if tl.program_id(0) == 0:
        tl.store(grad_weight + col, along, mask=width)
        tl.store(grad_bias + col, total, mask=width)
