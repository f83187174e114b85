"""Measure the time of functions, including the work of the GPU."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch


def seconds(function: Callable[[], Any], times: int) -> list[float]:
    """Return the wall-clock time of each of several calls, including the work of the GPU."""
    found = []
    for _ in range(times):
        _wait()
        start = time.perf_counter()
        function()
        _wait()
        found.append(time.perf_counter() - start)
    return found


def medians(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the milliseconds of each way: medians of interleaved rounds, after one that does not count.

    >>> list(medians({"ours": lambda: None, "theirs": lambda: None}, 2))
    ['ours', 'theirs']
    """
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds + 1):
        for way, work in ways.items():
            times[way] += seconds(work, 1)
    return {way: 1e3 * statistics.median(found[1:]) for way, found in times.items()}


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let torch use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
