"""Adam for several models at once, each with its own step; models that rest are left as they are."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def adam_step(
    weight, grad, mean, square, owner, pace, number, rest1, rest2, eps, decay, BLOCK: tl.constexpr
):  # fmt: skip
    """One step of each weight; `owner` is its model, and `pace`, `[models, 3]`, says of a model: step size over the
    first bias correction, root of the second, and whether it takes part (not 0).

    `rest1` and `rest2` are 1 - beta: a beta rounded to float32 would be another by 1e-5 of its distance to 1."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = at < number
    model = tl.load(owner + at, mask=here, other=0)
    on = here & (tl.load(pace + model * 3 + 2, mask=here, other=0.0) != 0.0)
    size = tl.load(pace + model * 3, mask=on, other=0.0)
    root = tl.load(pace + model * 3 + 1, mask=on, other=1.0)
    w = tl.load(weight + at, mask=on, other=0.0)
    g = tl.load(grad + at, mask=on, other=0.0) + decay * w
    m = tl.load(mean + at, mask=on, other=0.0)
    m += rest1 * (g - m)
    v = tl.load(square + at, mask=on, other=0.0)
    v += rest2 * (g * g - v)
    tl.store(mean + at, m, mask=on)
    tl.store(square + at, v, mask=on)
    tl.store(weight + at, w - size * m / (tl.sqrt(v) / root + eps), mask=on)
