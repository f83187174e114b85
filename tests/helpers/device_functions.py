"""Functions of NVIDIA's libdevice that Triton's interpreter lacks, and kernels around functions of ours."""

from __future__ import annotations

import triton
import triton.language as tl

from pathnn.nn.backends.triton.kernels.level import sigmoid, tanh
from pathnn.nn.backends.triton.kernels.segment import upper_half


@triton.jit
def exp2(x):
    return tl.exp2(x)


@triton.jit
def fast_dividef(x, y):
    return x / y


@triton.jit
def activate(x, sigmoids, tanhs, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(sigmoids + at, sigmoid(value))
    tl.store(tanhs + at, tanh(value))


@triton.jit
def halves(x, parts, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    high, rest = upper_half(tl.load(x + at))
    middle, rest = upper_half(rest)
    low, rest = upper_half(rest)
    tl.store(parts + at, high.to(tl.float32))
    tl.store(parts + BLOCK + at, middle.to(tl.float32))
    tl.store(parts + 2 * BLOCK + at, low.to(tl.float32))
    tl.store(parts + 3 * BLOCK + at, rest)
