"""Resolve a device, measure its free memory, and work together with the other processes of Lightning Fabric."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from torch import nn

T = TypeVar("T")

CGROUP = Path("/sys/fs/cgroup")

STATES_PER_ENTRY = 8
"""Vectors of the hidden width that training keeps per entry: states, cells, gradients, gates."""


def resolve(name: str) -> torch.device:
    """Return the device of a name: "auto" (a GPU if there is one), "cpu", "cuda" or "cuda:N"."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:[0-9]+)?", name):
        raise ValueError(f"device={name!r} is unknown: expected auto, cpu, cuda or cuda:N.")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        found = f"this machine has {count} CUDA devices" if count else "there is no CUDA device here"
        raise ValueError(f"device={name!r}: {found}. Use auto or cpu.")
    return device


def device_name(device: torch.device) -> str:
    """Return the name of a GPU, or "cpu"."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else "cpu"


def free_memory(device: torch.device | str = "cpu") -> int:
    """Return how many bytes can be allocated on `device` now."""
    device = torch.device(device)
    if device.type == "cuda":
        # Torch holds memory that it does not use: it is free for this process, not for others.
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + held)
    available = [size for size in (_meminfo(), _cgroup()) if size is not None]
    return min(available) if available else 4 * 2**30


def default_max_entries(device: torch.device | str = "cpu", *, hidden_channels: int = 128) -> int:
    """Return how many trie entries half of the free memory holds during training."""
    per_entry = STATES_PER_ENTRY * 4 * hidden_channels
    return max(free_memory(device) // 2 // per_entry, 1024)


def _meminfo() -> int | None:
    """Return the free bytes of the machine, if Linux tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _cgroup() -> int | None:
    """Return the free bytes of the control group of this process, if it has a limit."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        used -= int(stat.get("inactive_file", 0)) + int(stat.get("active_file", 0))  # the kernel gives these back
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)


def leave_processes() -> None:
    """Leave the group of processes: else its threads can crash a process that ends after all work is done."""
    if _in_group():
        torch.distributed.destroy_process_group()


def _in_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def small_cublas_workspace() -> None:
    """Give cuBLAS 8 MiB instead of 32 unless it is set: NVIDIA requires it for runs that repeat bit by bit."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8")


def is_first_process() -> bool:
    """Return whether this is the first, or the only, process."""
    return not _in_group() or torch.distributed.get_rank() == 0


def on_first(fabric: Fabric, function: Callable[[], T]) -> T:
    """Call `function` in the first process, and return its result, or raise its error, in all processes."""
    if fabric.world_size == 1:
        return function()
    answer: tuple[Any, Exception | None] = (None, None)
    if fabric.is_global_zero:
        try:
            answer = (function(), None)
        except (ValueError, OSError) as error:
            answer = (None, error)
    result, failure = fabric.broadcast(answer)
    if failure is not None:
        raise failure
    return result


def share_buffers(fabric: Fabric, model: nn.Module) -> None:
    """Copy the buffers (statistics of BatchNorm) of the first process, which saves them, to all processes."""
    if fabric.world_size > 1:
        for buffer in model.buffers():
            torch.distributed.broadcast(buffer, src=0)
