"""Datasets by name: their specification, building one through the cache, and their state on this machine."""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.errors import DataError, UnknownDatasetError, reading
from pathnn.data.packed import TENSORS, PackedGraphs
from pathnn.data.sources import DataFile, find_file, get_file, verify_file
from pathnn.data.task import Continuous, Split, Task
from pathnn.files import FileError, cache_dir, file_metadata, flatten, read_tensors, sha256, unflatten, write_tensors

log = logging.getLogger(__name__)

FAMILIES = {
    "tu": ("dd", "proteins", "nci1", "enzymes", "imdb-binary", "imdb-multi"),
    "synthetic": (
        "csl", "exp", "cexp", "sr16622", "sr251256", "sr261034", "sr281264", "sr291467", "sr351668", "sr351899",
        "sr361446", "sr401224", "brec", "atlas",
    ),
    "molecules": ("zinc", "molhiv", "peptides-func", "peptides-struct", "esol"),
}  # fmt: skip
"""The datasets of each module of this package. A module is imported when one of its datasets is used."""


@dataclass(frozen=True)
class DatasetSpec:
    """One dataset by name; `build` gets one path per entry of `files`, None for a missing optional file.

    `files` has the forms of each file, the preferred one first. `facts` are the other fields of the task; `made_here`
    replaces its notes if the splits are not the published ones. A new `version` rebuilds caches of older ones.
    """

    name: str
    title: str
    num_graphs: int
    files: tuple[tuple[DataFile, ...], ...]
    build: Callable[..., Built]
    facts: Mapping[str, Any]
    made_here: str = ""
    optional: bool = False
    version: int = 1

    def task(self, built: Built) -> Task:
        """Return the task of the built graphs."""
        x = built.graphs.x
        facts: dict[str, Any] = {"node_features": None if x is None else Continuous(x.size(1)), **self.facts}
        if self.made_here and not built.published:
            facts["notes"] = self.made_here
        return Task(name=self.name, title=self.title, graphs=built.graphs, splits=built.splits, **facts)


PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Built:
    """The graphs and splits of a dataset; `published`: the splits are the published ones, not made here."""

    graphs: PackedGraphs
    splits: tuple[Split, ...] = ()
    published: bool = True

    def to_tree(self) -> dict[str, Any]:
        """Return tensors and plain values for `pathnn.files.flatten`; `from_tree` is the inverse."""
        graphs = {name: vars(self.graphs)[name] for name in (*TENSORS, "names")}
        return {"graphs": graphs, "splits": [vars(split) for split in self.splits], "published": self.published}

    @staticmethod
    def from_tree(tree: Mapping[str, Any]) -> Built:
        """Return the object that `to_tree` was called on."""
        splits = tuple(Split(**parts) for parts in tree["splits"])
        return Built(PackedGraphs(**tree["graphs"]), splits, tree["published"])


def load_arrays(path: Path, names: Sequence[str]) -> dict[str, Tensor]:
    """Read the arrays `names` of an `.npz` file as tensors."""
    # numpy would leave a damaged file open
    with reading(path, "an .npz file"), path.open("rb") as content, np.load(content, allow_pickle=False) as file:
        missing = sorted(set(names) - set(file.files))
        if missing:
            raise DataError(f"{path} lacks the arrays {missing}.")
        return {name: torch.from_numpy(file[name]) for name in names}


@cache
def _specs(family: str) -> dict[str, DatasetSpec]:
    return {spec.name: spec for spec in import_module(f"pathnn.data.datasets.{family}").specs()}


def dataset_names() -> tuple[str, ...]:
    """Return the names that `load_dataset` knows.

    >>> dataset_names()[:3]
    ('dd', 'proteins', 'nci1')
    """
    return tuple(name for names in FAMILIES.values() for name in names)


def is_dataset(name: str) -> bool:
    """Return whether `load_dataset` knows a name; upper and lower case are the same."""
    return name.lower() in dataset_names()


def get_spec(name: str) -> DatasetSpec:
    """Return the entry of a dataset; for an unknown name, raise `UnknownDatasetError` with the closest names."""
    family = next((family for family, names in FAMILIES.items() if name.lower() in names), None)
    if family is None:
        raise UnknownDatasetError(unknown_dataset(name))
    return _specs(family)[name.lower()]


def unknown_dataset(name: str) -> str:
    """Say that no dataset has a name, and which names are close to it."""
    close = difflib.get_close_matches(name.lower(), dataset_names(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}? Known" if close else "known"
    return f"dataset {name!r} is unknown: {hint} are {', '.join(dataset_names())}."


def load_dataset(name: str) -> Task:
    """Load a dataset by name. It is built once, then read from the cache.

    Files come from the cache (`PATHNN_DATA`), the mirror (`PATHNN_MIRROR`) or the network, in this order.

    ```python
    task = load_dataset("csl")
    train = task.graphs.subset(task.splits[0].train)
    ```
    """
    spec = get_spec(name)
    return spec.task(load_built(spec))


def built_path(spec: DatasetSpec) -> Path:
    """Return where the built dataset is cached."""
    return cache_dir() / "built" / f"{spec.name}.pathnn"


FORMAT = "pathnn-built"
VERSION = 1  # increased when the meaning of a built file changes; files of other versions are rebuilt


def load_built(spec: DatasetSpec) -> Built:
    """Read the graphs and splits of a dataset from the cache, or build them."""
    paths = [find_file(*forms) for forms in spec.files]
    if None in paths:
        built = _read_built(spec, _key(spec))
        if built is not None:
            return built
        if not spec.optional:
            paths = [get_file(*forms) for forms in spec.files]
    key = {**_key(spec), "sources": {path.name: sha256(path) for path in paths if path is not None}}
    built = _read_built(spec, key)
    if built is None:
        built = _build(spec, paths)
        tensors: dict[str, Tensor] = {}
        tree = flatten(built.to_tree(), "built", tensors)
        try:
            write_tensors(built_path(spec), tensors, kind=FORMAT, version=VERSION, meta={**key, "tree": tree})
        except OSError as error:
            log.warning("%s could not be written (%s): continuing without a cache", built_path(spec), error)
    return built


def _key(spec: DatasetSpec) -> dict[str, Any]:
    """Return what a cached build must have been made from, whatever its files."""
    return {"dataset": spec.name, "builder": spec.version}


def _read_built(spec: DatasetSpec, key: Mapping[str, Any]) -> Built | None:
    """Read a build from the cache; None if it is missing, damaged, or made from something else than `key` says."""
    try:
        tensors, meta = read_tensors(built_path(spec), kind=FORMAT, version=VERSION)
    except FileError as error:
        log.info("%s is built: %s", spec.name, error)
        return None
    return Built.from_tree(unflatten(meta["tree"], tensors)) if key.items() <= meta.items() else None


def _is_cached(spec: DatasetSpec) -> bool:
    """Return whether the cache has a build of this version; do not read its tensors."""
    text = file_metadata(built_path(spec))
    if (text.get("format"), text.get("version")) != (FORMAT, str(VERSION)):
        return False
    return _key(spec).items() <= json.loads(text["meta"]).items()


def _build(spec: DatasetSpec, paths: Sequence[Path | None]) -> Built:
    log.info("building %s", spec.name)
    built = spec.build(*paths)
    if len(built.graphs) != spec.num_graphs:
        raise DataError(
            f"{spec.name}: {', '.join(path.name for path in paths if path)} gave {len(built.graphs)} graphs; "
            f"expected {spec.num_graphs}. Put a whole copy of the published file in its place."
        )
    spec.task(built).validate()
    return built


@dataclass(frozen=True)
class DatasetStatus:
    """The state of a dataset: built in the cache, its files on this machine, or on the network (`source`)."""

    name: str
    title: str
    graphs: int
    cached: bool
    files_at_hand: bool
    built_in: bool
    downloadable: bool
    files: tuple[str, ...]
    source: str

    @property
    def available(self) -> bool:
        """Return whether the dataset can be loaded without the network."""
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
    return [
        DatasetStatus(
            name=spec.name,
            title=spec.title,
            graphs=spec.num_graphs,
            cached=_is_cached(spec),
            files_at_hand=bool(spec.files) and all(map(_at_hand, spec.files)),
            built_in=spec.optional or not spec.files,
            downloadable=all(any(file.url for file in forms) for forms in spec.files),
            files=tuple(forms[0].name for forms in spec.files),
            source=next((file.url for forms in spec.files for file in forms if file.url), ""),
        )
        for spec in map(get_spec, dataset_names())
    ]


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
    state = "missing" if not path.is_file() else "damaged" if _read_built(spec, _key(spec)) is None else "ok"
    return [*map(_check_file, spec.files), FileCheck(path.name, state)]


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
