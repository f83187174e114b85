"""Where runs are done, and what of a machine each of them gets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from pathnn.training.config import Device, RunConfig


@dataclass(frozen=True)
class Settings:
    """What is the same for all runs of a call.

    Attributes:
        work: the folder of the run folders.
        device: "auto", "cpu" or "cuda".
        jobs: how many workers share this machine.
        together: how many runs a worker trains at once on a GPU, where they differ in fold, seed and dropout alone.
    """

    work: Path
    device: Device = "auto"
    jobs: int = 1
    together: int = 1


def device_of(config: RunConfig) -> torch.device:
    """Where a run computes."""
    cuda = config.device == "cuda" or (config.device == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if cuda else "cpu")


def use_cores(jobs: int) -> None:
    """Give this process its share of the cores, and no more threads than `OMP_NUM_THREADS` allows."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    threads = max(1, available // jobs)
    torch.set_num_threads(min(threads, int(allowed)) if allowed.isdigit() and int(allowed) else threads)
