"""The form of a dataset's entry in the registry: its files, how to build it, and how its task reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pathnn.data.built import Built
from pathnn.data.sources import DataFile
from pathnn.data.task import Task


@dataclass(frozen=True)
class DatasetSpec:
    """One dataset by name.

    Attributes:
        num_graphs: how many graphs it has, checked after building.
        files: for each thing that is needed, the forms it may come in, the preferred one first.
        build: makes the graphs and splits from one path per entry of `files` (None for an optional one not at
            hand).
        task: adds the facts.
        optional: whether it can be built without its files.
        version: raised when `build` changes what it makes; caches of other versions are rebuilt.
    """

    name: str
    title: str
    num_graphs: int
    files: tuple[tuple[DataFile, ...], ...]
    build: Callable[[tuple[Path | None, ...]], Built]
    task: Callable[[Built], Task]
    optional: bool = False
    version: int = 1


def needed(path: Path | None) -> Path:
    """The path of a file that a builder cannot do without."""
    assert path is not None, "a file that is not optional was not looked for"
    return path
