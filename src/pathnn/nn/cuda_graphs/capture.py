"""Capture the kernels that a function launches as a CUDA graph, which replays them in one launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch

WARM_UP = 3
"""Runs before the capture, in which kernels are compiled and libraries create their handles."""


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """Return the one stream of a GPU for captures: torch reuses the memory of a pool only on the same stream."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def capture_cuda_graph(run: Callable[[], None], pool: Any = None) -> torch.cuda.CUDAGraph:
    """Capture the kernels that `run` launches; it is called a few times before: the caller restores what it changes.

    CUDA graphs that never run at the same time can share the memory `pool`, if each result is read before the next one
    runs. Capture the largest first: the others reuse its memory, and all take little more than the largest alone.
    """
    return capture_cuda_graphs([run], pool)[0]


def capture_cuda_graphs(runs: Sequence[Callable[[], None]], pool: Any = None) -> list[torch.cuda.CUDAGraph]:
    """Capture each of several functions that are called one after the other, as a CUDA graph of its own."""
    side = _side_stream(torch.cuda.current_device())
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for run in WARM_UP * [*runs]:
            run()
    torch.cuda.current_stream().wait_stream(side)
    graphs = []
    for run in runs:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], pool=pool, stream=side):  # libraries keep their memory per stream
            run()
    return graphs
