"""Every run seeds itself from (data, fold, seed), every epoch from that and its number: any of them can be
repeated alone.

Because an epoch's random numbers depend on its number and not on the epochs before it, a checkpoint at the
end of an epoch needs no state of a random generator, on the CPU or on any number of GPUs.
"""

from __future__ import annotations

import hashlib

import torch

from pathnn.engine.config import RunConfig


def run_seed(config: RunConfig, *parts: int | str) -> int:
    """The seed of a run, or with `parts` that of a part of it; 63 bits.

    >>> a, b = RunConfig(data="csl", seed=1), RunConfig(data="csl", seed=2)
    >>> run_seed(a) == run_seed(a), run_seed(a) == run_seed(b)
    (True, False)
    """
    key = "\0".join(map(str, (config.data, config.fold, config.seed, *parts)))
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1


def seed_torch(config: RunConfig, *parts: int | str) -> None:
    """Seed torch's generators (CPU and every GPU) for a run or a part of it."""
    torch.manual_seed(run_seed(config, *parts))
