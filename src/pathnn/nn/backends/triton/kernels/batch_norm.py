"""Batch normalisation over the first rows of a matrix: how many is read from the GPU's memory, the rest is padding.

Statistics are taken per chunk of rows and put together by every program that needs them: two launches, no atomics.
Several models of `each` rows may be worked on at once, each with its own number of valid rows (none: nothing is learnt
from them), statistics and parameters; the last axis of the programs counts them.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def chunk_statistics(
    x, valid, partial, each, chunk, chunks,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Mean and sum of squared differences of the valid rows of each chunk of `chunk` rows: `partial[chunks, 2, d]`."""
    model = tl.program_id(2).to(tl.int64)
    x += model * each * WIDTH
    valid += model
    partial += model * chunks * 2 * WIDTH
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
    each, chunk, chunks, eps, momentum,
    RELU: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, ROWS: tl.constexpr, TIMES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The normalised rows, padding included, with `RELU` their positive parts, `TIMES` times `ROWS` of them; the first
    programs also write the statistics and the running ones."""
    model = tl.program_id(2).to(tl.int64)
    x += model * each * WIDTH
    out += model * each * WIDTH
    partial += model * chunks * 2 * WIDTH
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    own = model * WIDTH + col
    width = col < WIDTH
    true = tl.load(valid + model)
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
    w = tl.load(weight + own, mask=width, other=0.0)
    b = tl.load(bias + own, mask=width, other=0.0)
    for time in range(TIMES):
        row = (tl.program_id(0) * TIMES + time) * ROWS + tl.arange(0, ROWS)
        mask = (row < each)[:, None] & width[None, :]
        place = row[:, None] * WIDTH + col[None, :]
        value = (tl.load(x + place, mask=mask, other=0.0) - mean[None, :]) * (scale * w)[None, :] + b[None, :]
        if RELU:
            value = tl.maximum(value, 0.0)
        tl.store(out + place, value, mask=mask)
    if tl.program_id(0) == 0:
        tl.store(mean_out + own, mean, mask=width)
        tl.store(scale_out + own, scale, mask=width)
        learns = width & (true > 0)
        old = tl.load(running_mean + own, mask=width, other=0.0)
        tl.store(running_mean + own, old + momentum * (mean - old), mask=learns)
        old = tl.load(running_var + own, mask=width, other=0.0)
        tl.store(running_var + own, old + momentum * (square / tl.maximum(n - 1, 1) - old), mask=learns)


@triton.jit
def chunk_gradients(
    grad, x, valid, mean, scale, weight, bias, partial, each, chunk, chunks,
    RELU: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The sums of the gradient, and of its product with the normalised input, over the valid rows of each chunk."""
    model = tl.program_id(2).to(tl.int64)
    x += model * each * WIDTH
    grad += model * each * WIDTH
    partial += model * chunks * 2 * WIDTH
    first = tl.program_id(0) * chunk
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    own = model * WIDTH + col
    width = col < WIDTH
    last = tl.minimum(first + chunk, tl.load(valid + model))
    m = tl.load(mean + own, mask=width, other=0.0)
    s = tl.load(scale + own, mask=width, other=0.0)
    w = tl.load(weight + own, mask=width, other=0.0)
    b = tl.load(bias + own, mask=width, other=0.0)
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
    grad, x, valid, mean, scale, weight, bias, partial, grad_x, grad_weight, grad_bias, each, chunks,
    RELU: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, ROWS: tl.constexpr, TIMES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of the input, zero in the padding; the first programs also write those of weight and bias."""
    model = tl.program_id(2).to(tl.int64)
    x += model * each * WIDTH
    grad += model * each * WIDTH
    grad_x += model * each * WIDTH
    partial += model * chunks * 2 * WIDTH
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    own = model * WIDTH + col
    width = col < WIDTH
    true = tl.load(valid + model)
    n = tl.maximum(true, 1)
    part = tl.arange(0, CHUNKS)
    here = (part < chunks)[:, None] & width[None, :]
    at = partial + part[:, None] * (2 * WIDTH) + col[None, :]
    total = tl.sum(tl.load(at, mask=here, other=0.0), axis=0)
    along = tl.sum(tl.load(at + WIDTH, mask=here, other=0.0), axis=0)
    m = tl.load(mean + own, mask=width, other=0.0)
    s = tl.load(scale + own, mask=width, other=0.0)
    w = tl.load(weight + own, mask=width, other=0.0)
    b = tl.load(bias + own, mask=width, other=0.0)
    for time in range(TIMES):
        row = (tl.program_id(0) * TIMES + time) * ROWS + tl.arange(0, ROWS)
        mask = (row < each)[:, None] & width[None, :]
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
        tl.store(grad_weight + own, along, mask=width)
        tl.store(grad_bias + own, total, mask=width)
