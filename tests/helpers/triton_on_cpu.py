"""Triton's interpreter in the place of a GPU: the kernels' own code, run on the CPU, block by block and slowly.

It shows wrong indices, masks and sums, not races or what a compiler makes of the code: the tests marked `cuda` do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

MISSING = (
    "a GPU is at hand: the tests marked cuda are the better ones"
    if torch.cuda.is_available()
    else "Triton is not installed: pip install triton==3.6.0 (Linux)"
    if find_spec("triton") is None
    else None
)
"""Why the interpreter cannot be used here, or None."""


class Interpreted:
    """The Triton backend on the CPU; `off` for the backend of the CPU, to compare with."""

    def __init__(self) -> None:
        self._on = True

    def ready(self, like: Tensor) -> bool:
        """In the place of `on_triton`."""
        return self._on and like.dtype == torch.float32

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        self._on = False
        try:
            yield
        finally:
            self._on = True


def install(patch: pytest.MonkeyPatch) -> Interpreted:
    """Make everything that asks for a GPU take the CPU and the interpreter."""
    from pathnn.nn.backends import base

    interpreted = Interpreted()
    patch.setattr(base, "on_triton", interpreted.ready)
    mend_triton(patch)
    _no_streams(patch)
    _no_graphs(patch)
    return interpreted


def mend_triton(patch: pytest.MonkeyPatch) -> None:
    """What the interpreter lacks: exponentials, products of bfloat16, whole numbers from arrays of one (new NumPys)."""
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime import interpreter

    from device_functions import exp2, fast_dividef

    def widen(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        bits = handle.data.astype(np.uint32) << 16
        return interpreter.TensorHandle(bits.view(np.float32), tl.float32)

    create_dot, patch_tensor = interpreter.InterpreterBuilder.create_dot, interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    patch.setattr(libdevice, "exp2", exp2)
    patch.setattr(libdevice, "fast_dividef", fast_dividef)
    patch.setattr(
        interpreter.InterpreterBuilder,
        "create_dot",
        lambda self, a, b, *rest: create_dot(self, widen(a), widen(b), *rest),
    )
    patch.setattr(interpreter, "_patch_lang_tensor", patched)


def _no_streams(patch: pytest.MonkeyPatch) -> None:
    import pathnn.nn.backends.triton.shared_gradients as collect

    stream = SimpleNamespace(wait_stream=lambda other: None, cuda_stream=0)
    patch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    patch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    patch.setattr(torch.cuda, "current_stream", lambda: stream)
    patch.setattr(collect, "_side_stream", lambda device: stream)


def _no_graphs(patch: pytest.MonkeyPatch) -> None:
    """Steps that would be replayed are run again."""
    from pathnn.nn.cuda_graphs import capture as captures
    from pathnn.training.cuda_graphs import capture as graphs

    def capture(runs: Sequence[Callable[[], None]], pool: Any = None) -> Any:
        for run in 2 * [*runs]:
            run()
        return [SimpleNamespace(replay=run) for run in runs]

    whole = graphs.CudaGraphStep._capture

    def capture_step(self: Any) -> None:
        whole(self)
        again = self._graph.replay

        def replay() -> None:
            again()
            self._grads = [(p, p.grad) for p in self.model.parameters() if p.grad is not None]

        self._graph = SimpleNamespace(replay=replay)

    patch.setattr(captures, "capture_cuda_graphs", capture)
    patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    patch.setattr(graphs.CudaGraphStep, "_capture", capture_step)
    patch.setattr(Tensor, "pin_memory", lambda self: self)
    patch.setattr(torch.cuda, "get_rng_state", torch.get_rng_state)
    patch.setattr(torch.cuda, "set_rng_state", torch.set_rng_state)
    patch.setattr(torch.cuda, "graph_pool_handle", lambda: None)


def same_dropout(patch: pytest.MonkeyPatch) -> None:
    """Dropout that drops the same places of every tensor, in whatever order tensors come."""

    def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if not training or p == 0:
            return x
        row, col = torch.arange(x.size(0))[:, None], torch.arange(x.size(1))[None, :]
        return x * ((row * 7919 + col * 104729 + row * col) % 97 >= 97 * p) / (1 - p)

    patch.setattr(F, "dropout", dropout)
    patch.setattr(nn.Dropout, "forward", lambda self, x: dropout(x, self.p, self.training))


def difference(value: Tensor, truth: Tensor) -> float:
    """The norm of the difference over the norm."""
    return float((value - truth).norm() / truth.norm().clamp(min=1e-6))


def large_batches(patch: pytest.MonkeyPatch) -> None:
    """Small batches are worked on in as many parts as large ones, and by the kernels that are for those."""
    from pathnn.nn.backends.triton import backend, ops, products, sweep
    from pathnn.nn.cuda_graphs import padded_modules

    patch.setattr(products, "ROWS_PER_PART", 8)
    patch.setattr(sweep, "ROWS_PER_SMALL_PART", 32)
    patch.setattr(padded_modules, "ROWS", 4)
    patch.setattr(padded_modules, "PROGRAMS", 2)
    patch.setattr(ops, "MANY", 16)
    patch.setattr(backend, "TYPES_AT_ONCE", 16)
