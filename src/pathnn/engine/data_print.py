"""What the data of a run was, in a few characters, so that other data under the same name is noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pathnn.data.datasets.registry import dataset_names
from pathnn.data.packed import widen
from pathnn.data.task import Split, Task

CHUNK = 2**20
"""Numbers at a time."""

OTHER_SPLIT = "the split is another"


@dataclass(frozen=True)
class DataPrint:
    """The number of graphs, and fingerprints of the graphs, of their targets, and of the split.

    >>> from pathnn.data import load_dataset
    >>> task = load_dataset("csl")
    >>> one, other = (DataPrint.of(task, split) for split in task.splits[:2])
    >>> one.graphs == other.graphs, one.difference(other)
    (True, 'the split is another')
    """

    num_graphs: int
    graphs: str
    targets: str
    split: str

    @staticmethod
    def of(task: Task, split: Split | None) -> DataPrint:
        """The print of a task and one of its splits, if it has any."""
        tensors = task.graphs.tensors()
        targets = {"y": tensors.pop("y")} if "y" in tensors else {}
        return DataPrint(len(task.graphs), _digest(tensors), _digest(targets), _digest(vars(split) if split else {}))

    def difference(self, now: DataPrint) -> str | None:
        """What is different now, in words, or None."""
        if now.num_graphs != self.num_graphs:
            return f"it had {self.num_graphs} graphs, and has {now.num_graphs} now"
        if now.graphs != self.graphs:
            return "its graphs are others"
        if now.targets != self.targets:
            return "its targets are others"
        return None if now.split == self.split else OTHER_SPLIT

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> DataPrint | None:
        """The inverse of `to_dict`; None for what was written before there were prints."""
        names = [entry.name for entry in fields(cls)]
        if not values or any(name not in values for name in names):
            return None
        return cls(**{name: values[name] for name in names})


def same_place(data: str, other: str) -> bool:
    """Whether two names of data are those of one dataset, or lead to one file.

    >>> same_place("zinc", "ZINC"), same_place("zinc", "./zinc")
    (True, False)
    """
    names = dataset_names()
    if data == other or data.lower() in names or other.lower() in names:
        return data == other or data.lower() == other.lower()
    here, there = Path(data).expanduser(), Path(other).expanduser()
    return here.exists() and there.exists() and here.samefile(there)


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """The first characters of a SHA-256 over names, shapes, and numbers as a model reads them."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        digest.update(f"{name} {tuple(tensor.shape)};".encode())
        flat = tensor.flatten()
        for start in range(0, flat.numel(), CHUNK):
            part = widen(flat[start : start + CHUNK].cpu())
            digest.update(part.contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
