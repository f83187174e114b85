"""Recording what a function launches on a GPU as a CUDA graph, to be launched again as one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

WARM_UP = 3
"""Runs before recording, in which kernels are compiled and libraries make their handles."""


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """One for each GPU: torch lends a pool's memory again only to the stream that had it before."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def record(run: Callable[[], None], pool: Any = None) -> torch.cuda.CUDAGraph:
    """The launches of `run`, which is called some times before, on a stream beside the current one: whatever it changes
    has to be put back by the caller.

    ```python
    graph = record(lambda: out.copy_(model(x)))
    x.copy_(batch)
    graph.replay()                             # now `out` is that of the batch
    ```

    `pool` is memory that graphs share which never run at the same time, and whose results are read before another runs.
    Record the largest first: others then find room in what it took, and all take little more than the largest alone.
    """
    side = _side_stream(torch.cuda.current_device())
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=side):  # libraries keep their memory per stream
        run()
    return graph
