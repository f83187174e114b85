"""The state of each dataset on this machine: list, fetch and verify."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pathnn.data.cache import cached_key, read_cache
from pathnn.data.datasets.base import DatasetSpec
from pathnn.data.datasets.registry import built_path, dataset_names, get_spec, load_built
from pathnn.data.errors import DataError
from pathnn.data.sources import DataFile, find_file, verify_file


@dataclass(frozen=True)
class DatasetStatus:
    """The state of a dataset: built in the cache, its files on this machine, or on the network."""

    name: str
    title: str
    graphs: int
    cached: bool
    files_at_hand: bool
    built_in: bool
    downloadable: bool
    files: tuple[str, ...]

    @property
    def available(self) -> bool:
        """Whether the dataset can be loaded without the network."""
        return self.cached or self.files_at_hand or self.built_in


@dataclass(frozen=True)
class FileCheck:
    """A file of a dataset, or its build: "ok", "damaged", "missing" or "unknown" (no known checksum)."""

    name: str
    state: str


def dataset_status() -> list[DatasetStatus]:
    """Return the state of every dataset; check local files, but build nothing.

    ```python
    missing = [status.name for status in dataset_status() if not status.available]
    ```
    """
    return [_status(get_spec(name)) for name in dataset_names()]


def fetch(name: str) -> Path:
    """Build a dataset in the cache (files from the mirror, then the network) and return its file.

    ```python
    path = fetch("csl")
    ```
    """
    spec = get_spec(name)
    load_built(spec)
    return built_path(spec)


def verify(name: str) -> list[FileCheck]:
    """Check the files of a dataset against their checksums, and its cached build against its own.

    ```python
    damaged = [check.name for check in verify("csl") if check.state == "damaged"]
    ```
    """
    spec = get_spec(name)
    path = built_path(spec)
    state = "missing"
    if path.is_file():
        key = cached_key(path)
        sound = key is not None and key.get("builder") == spec.version and read_cache(path, key) is not None
        state = "ok" if sound else "damaged"
    return [*map(_check_file, spec.files), FileCheck(path.name, state)]


def _status(spec: DatasetSpec) -> DatasetStatus:
    key = cached_key(built_path(spec))
    return DatasetStatus(
        name=spec.name,
        title=spec.title,
        graphs=spec.num_graphs,
        cached=key is not None and key.get("builder") == spec.version,
        files_at_hand=bool(spec.files) and all(map(_at_hand, spec.files)),
        built_in=spec.optional or not spec.files,
        downloadable=all(any(file.url for file in forms) for forms in spec.files),
        files=tuple(forms[0].name for forms in spec.files),
    )


def _at_hand(forms: tuple[DataFile, ...]) -> bool:
    try:
        return find_file(*forms) is not None
    except DataError:
        return False


def _check_file(forms: tuple[DataFile, ...]) -> FileCheck:
    for file in forms:
        sound = verify_file(file)
        if sound is not None:
            return FileCheck(file.name, "ok" if sound else "damaged")
    return FileCheck(forms[0].name, "unknown" if _at_hand(forms) else "missing")
