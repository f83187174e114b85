"""Steps on a GPU: how long they take, how long it is busy, how much memory they need, and the floor of their time."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from pathnn_reproduction.bench.gpu_sides import Bench, Step

FLOPS, BYTES = 67e12, 4.8e12
"""Float operations and bytes of memory traffic per second of an H200, by its data sheet."""


def milliseconds(steps: list[Step], rounds: int) -> float:
    """Per step, over `rounds` passes over the batches with one wait at the end of each; the median."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for step in steps:
            step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start) / len(steps))
    return statistics.median(times)


def busy(steps: list[Step]) -> tuple[float, list[tuple[float, int, str]]]:
    """Milliseconds of GPU work per step, and the kernels with the most of it: (ms per step, launches, name)."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        for step in steps:
            step()
        torch.cuda.synchronize()
    kernels = [
        (event.self_device_time_total / 1e3 / len(steps), event.count, event.key)
        for event in profiler.key_averages()
        if event.device_type.name == "CUDA" and not event.key.startswith("ProfilerStep")
    ]
    return sum(ms for ms, _, _ in kernels), sorted(kernels, reverse=True)[:25]


def measured(make: Callable[[], list[Step]], rounds: int) -> dict[str, Any]:
    """Time, GPU work and peak memory (MiB above what is allocated before) of the steps that `make` makes."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()  # each side's own count as its memory
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    steps = make()
    for step in steps:
        step()
    ms = milliseconds(steps, rounds)
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20
    work, kernels = busy(steps)
    return {"ms": ms, "busy_ms": work, "mib": peak, "kernels": kernels}


def floor_ms(bench: Bench, phase: str) -> float:
    """A yardstick: the time that the LSTM's work alone takes on an H200 at its full rates, products in plain float32.

    Operations: W_hh times h once per inner entry, W_ih once per vertex and layer, three times that in training.
    Bytes: tokens and tables read once, h and c of the inner entries written (in training also read) once.
    """
    d, total = bench.model.config.hidden_channels, 0.0
    for index in bench.batches:
        trie = bench.graphs.select(index).trie
        assert trie is not None
        inner = sum(sum(levels[:-1]) for levels in trie.sizes)
        rows = inner + trie.k * trie.num_nodes
        factor = 3 if phase == "train" else 1
        flops = factor * 2 * 4 * d * d * rows
        traffic = factor * (trie.nbytes + 4 * (2 * d * inner + 5 * d * trie.k * trie.num_nodes))
        total += max(flops / FLOPS, traffic / BYTES)
    return 1e3 * total / len(bench.batches)
