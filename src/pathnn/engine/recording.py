"""Recording what a function launches on a GPU as a CUDA graph, to be launched again as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

WARM_UP = 3
"""Runs before recording, in which kernels are compiled and libraries make their handles."""


def record(run: Callable[[], None], pool: Any = None) -> torch.cuda.CUDAGraph:
    """The launches of `run`, which is called some times before, on a stream of its own: whatever it changes has to be
    put back by the caller.

    ```python
    graph = record(lambda: out.copy_(model(x)))
    x.copy_(batch)
    graph.replay()                             # now `out` is that of the batch
    ```

    `pool` is memory that graphs share which never run at the same time. Record the largest first: others then find room
    in what it took, and all of them take little more than the largest alone.
    """
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.empty_cache()  # of the stream's memory, which nobody else could use, not even the graph
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=side):  # libraries keep their memory per stream
        run()
    return graph
