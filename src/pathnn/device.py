"""How much memory is free, and how many trie entries fit into it."""

from __future__ import annotations

from pathlib import Path

import torch

CGROUP = Path("/sys/fs/cgroup")


STATES_PER_ENTRY = 8
"""Vectors of the hidden width that training keeps per entry: states, cells, gradients, gates."""


def free_memory(device: torch.device | str = "cpu") -> int:
    """Bytes that could be allocated on `device` now."""
    device = torch.device(device)
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) + _cached_by_torch(device)
    return _available_ram()


def default_max_entries(device: torch.device | str = "cpu", *, hidden_channels: int = 128) -> int:
    """How many trie entries may be worked on at once: what fits into half of the free memory while training.

    >>> default_max_entries("cpu", hidden_channels=64) >= 2 * default_max_entries("cpu", hidden_channels=512)
    True
    """
    per_entry = STATES_PER_ENTRY * 4 * hidden_channels
    return max(free_memory(device) // 2 // per_entry, 1024)


def _cached_by_torch(device: torch.device) -> int:
    """Memory that torch holds but does not use: free for us, not for others."""
    return int(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def _available_ram() -> int:
    """Bytes of memory this process can still have: the machine's, or its control group's if that is less."""
    available = [size for size in (_meminfo(), _cgroup()) if size is not None]
    return min(available) if available else 4 * 2**30


def _meminfo() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _cgroup() -> int | None:
    folder = CGROUP
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        used -= int(stat.get("inactive_file", 0)) + int(stat.get("active_file", 0))  # the kernel gives these back
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)
