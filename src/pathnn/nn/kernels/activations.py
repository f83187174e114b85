"""The LSTM's activations, in few instructions.

Exponentials and reciprocals are the GPU's own (about one unit in the last place), denormal numbers are zero; nothing
branches. Both are right within 4e-7 (2.1e-7 was seen on an H200); tanh within a few units in its last place, the
logistic function of numbers far below 0 within more (some 20 at -12): the exponential's argument is rounded.
"""
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: check-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import triton
from triton import language as tl
from triton.language.extra import libdevice


@triton.jit
def sigmoid(x):
    """The logistic function."""
    return libdevice.fast_dividef(1.0, 1.0 + libdevice.exp2(x * -1.4426950408889634))


@triton.jit
def tanh(x):
    """1 - 2 / (exp(2x) + 1), and where that would cancel a polynomial, with the least largest relative error (5e-9)."""
    far = 1.0 - libdevice.fast_dividef(2.0, libdevice.exp2(x * 2.8853900817779268) + 1.0)
    u = x * x
    p = -0.005895157810300589 * u + 0.020795971155166626
    p = p * u - 0.053783830255270004
    p = p * u + 0.13331924378871918
    p = p * u - 0.33333298563957214
    return tl.where(tl.abs(x) < 0.6, x + x * (u * p), far)
