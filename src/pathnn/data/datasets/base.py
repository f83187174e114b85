"""What the families of datasets share: the entry in the registry, built graphs, arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.errors import ARCHIVE_ERRORS, DataError
from pathnn.data.packed import TENSORS, PackedGraphs
from pathnn.data.sources import DataFile
from pathnn.data.task import Split, Task


@dataclass(frozen=True)
class DatasetSpec:
    """One dataset by name.

    Attributes:
        num_graphs: its number of graphs, checked after building.
        files: for each file, its possible forms, the preferred one first.
        build: makes the graphs and splits from one path per entry of `files` (None for a missing optional file).
        facts: the fields of the task besides its name, title, graphs and splits, as a function of what was built.
        optional: whether it can be built without its files.
        version: increased when `build` changes its result; caches of other versions are rebuilt.
    """

    name: str
    title: str
    num_graphs: int
    files: tuple[tuple[DataFile, ...], ...]
    build: Callable[..., Built]
    facts: Callable[[Built], dict[str, Any]]
    optional: bool = False
    version: int = 1

    def task(self, built: Built) -> Task:
        """Return the task of the built graphs."""
        return Task(name=self.name, title=self.title, graphs=built.graphs, splits=built.splits, **self.facts(built))


PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Built:
    """The graphs and splits of a dataset; the rest of its task is code.

    `published` says whether the splits are the published ones, or were made here without a file.
    """

    graphs: PackedGraphs
    splits: tuple[Split, ...] = ()
    published: bool = True

    def to_tensors(self) -> dict[str, Tensor]:
        """Return everything as tensors by name; `from_tensors` is the inverse."""
        tensors = self.graphs.tensors()
        if self.graphs.names is not None:
            tensors["names"] = torch.from_numpy(np.frombuffer("\n".join(self.graphs.names).encode(), np.uint8).copy())
        for i, split in enumerate(self.splits):
            for part, index in zip(PARTS, (split.train, split.val, split.test), strict=True):
                tensors[f"split.{i}.{part}"] = index
        tensors["published"] = torch.tensor([self.published])
        return tensors

    @staticmethod
    def from_tensors(tensors: dict[str, Tensor]) -> Built:
        """Return the object that `to_tensors` was called on."""
        fields: dict[str, Any] = {name: tensors[name] for name in TENSORS if name in tensors}
        if "names" in tensors:
            fields["names"] = tuple(bytes(tensors["names"].numpy()).decode().split("\n"))
        graphs = PackedGraphs(**fields)
        count = len({name.split(".")[1] for name in tensors if name.startswith("split.")})
        splits = tuple(Split(*(tensors[f"split.{i}.{part}"] for part in PARTS)) for i in range(count))
        return Built(graphs, splits, bool(tensors["published"]))


def load_arrays(path: Path, names: Sequence[str]) -> dict[str, Tensor]:
    """Read the arrays `names` of an `.npz` file as tensors."""
    try:
        # numpy would leave a damaged file open
        with path.open("rb") as content, np.load(content, allow_pickle=False) as file:
            missing = sorted(set(names) - set(file.files))
            if missing:
                raise DataError(f"{path} lacks the arrays {missing}.")
            return {name: torch.from_numpy(file[name]) for name in names}
    except (*ARCHIVE_ERRORS, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read as .npz: {error}. Put a whole copy in its place.") from error


def with_ones(graphs: PackedGraphs, y: Tensor | None = None) -> PackedGraphs:
    """Replace the features by `x = 1` (one channel), and the targets by `y` if given.

    >>> with_ones(PackedGraphs.from_edges([torch.tensor([[0, 1], [1, 0]])], [2]))[0].x.tolist()
    [[1.0], [1.0]]
    """
    return replace(graphs, x=torch.ones(graphs.num_nodes, 1, dtype=torch.bool), y=graphs.y if y is None else y)
