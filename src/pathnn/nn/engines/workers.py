"""Parts of a trie on several cores: each in a thread of its own, with matrix products on that one core.

Level after level, small products and loops take turns; threads inside each of them would mostly wait for each
other. Parts cut by roots need to meet only at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Barrier
from typing import TypeVar

import torch

Part = TypeVar("Part")
Result = TypeVar("Result")

MOST_WORKERS = 16
"""Each has gradients of the tables of its own, so memory grows with their number."""


def num_workers(numbers: int, *, at_least: int = 1 << 18) -> int:
    """In how many parts to do work on so many numbers: one part per thread of torch, none smaller than `at_least`."""
    return max(1, min(torch.get_num_threads(), MOST_WORKERS, numbers // at_least))


def run_parts(function: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """`[function(part) for part in parts]`, without recording gradients, in threads if there are several parts.

    One part is small work, and runs on one core, too: the threads of a small product mostly wait for each other.
    """
    if len(parts) == 1:
        with _one_thread():
            return [function(parts[0])]
    inference = torch.is_inference_mode_enabled()

    def task(part: Part) -> Result:
        with torch.inference_mode(inference), torch.no_grad():  # both are properties of a thread
            return function(part)

    pool = _pool(os.getpid(), len(parts))
    jobs: list[Future[Result]] = [pool.submit(task, part) for part in parts]
    return [job.result() for job in jobs]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch's operations of this thread on one core."""
    threads = torch.get_num_threads()
    if threads > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads > 1:
            torch.set_num_threads(threads)


@cache
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """Threads that use one core each; a fork has another process id and so gets threads of its own."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="pathnn")
    threads, started = torch.get_num_threads(), Barrier(workers)

    def start(_: int) -> None:
        torch.set_num_threads(1)
        started.wait()

    list(pool.map(start, range(workers)))
    torch.set_num_threads(threads)  # torch hands the last number set anywhere to threads that start later
    return pool
