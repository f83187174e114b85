"""Every run seeds itself from (data, fold, seed), every epoch from that and its number: any of them can be
repeated alone. A dataset stands there with its name, a user's own data with a fingerprint of its graphs and targets.

Because an epoch's random numbers depend on its number and not on the epochs before it, a checkpoint at the
end of an epoch needs no state of a random generator, on the CPU or on any number of GPUs.
"""

from __future__ import annotations

import hashlib

import torch

from pathnn.data.datasets.registry import dataset_names
from pathnn.data.fingerprints import DataPrint
from pathnn.data.task import Task
from pathnn.engine.config import RunConfig


def data_key(config: RunConfig, task: Task) -> str:
    """What stands for the data of a run in its seeds, however the path of a file is written.

    >>> from pathnn.data import load_dataset
    >>> csl = load_dataset("csl")
    >>> data_key(RunConfig(data="csl"), csl)
    'csl'
    >>> data_key(RunConfig(data="mine.g6"), csl) == data_key(RunConfig(data="/home/me/mine.g6"), csl)
    True
    """
    if config.data.lower() in dataset_names():
        return config.data.lower()
    data = DataPrint.of(task, None)
    return f"{data.graphs} {data.targets}"


def run_seed(config: RunConfig, data: str, *parts: int | str) -> int:
    """The seed of a run, or with `parts` that of a part of it; 63 bits. `data` is what `data_key` returns.

    >>> a, b = RunConfig(data="csl", seed=1), RunConfig(data="csl", seed=2)
    >>> run_seed(a, "csl") == run_seed(a, "csl"), run_seed(a, "csl") == run_seed(b, "csl")
    (True, False)
    """
    key = "\0".join(map(str, (data, config.fold, config.seed, *parts)))
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1


def seed_torch(config: RunConfig, data: str, *parts: int | str) -> None:
    """Seed torch's generators (CPU and every GPU) for a run or a part of it."""
    torch.manual_seed(run_seed(config, data, *parts))
