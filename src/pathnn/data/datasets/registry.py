"""The names of all datasets, and loading one through the cache."""

from __future__ import annotations

import difflib
import logging
from functools import cache
from importlib import import_module
from pathlib import Path

from pathnn.data.cache import cached, cached_key, read_cache
from pathnn.data.datasets.base import Built, DatasetSpec
from pathnn.data.errors import DataError, UnknownDatasetError
from pathnn.data.sources import find_file, get_file
from pathnn.data.task import Task
from pathnn.files import cache_dir, sha256

log = logging.getLogger(__name__)

FAMILIES = {
    "tu": ("dd", "proteins", "nci1", "enzymes", "imdb-binary", "imdb-multi"),
    "zinc": ("zinc",),
    "ogb": ("molhiv",),
    "peptides": ("peptides-func", "peptides-struct"),
    "csl": ("csl",),
    "exp": ("exp", "cexp"),
    "pairs": (
        "sr16622", "sr251256", "sr261034", "sr281264", "sr291467", "sr351668", "sr351899", "sr361446", "sr401224",
        "brec", "atlas",
    ),
    "esol": ("esol",),
}  # fmt: skip
"""The datasets of each module of this package. A module is imported when one of its datasets is used."""


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
    """Return whether `load_dataset` knows a name; upper and lower case are the same.

    >>> is_dataset("ZINC"), is_dataset("zinc.csv")
    (True, False)
    """
    return name.lower() in dataset_names()


def get_spec(name: str) -> DatasetSpec:
    """Return the entry of a dataset; for an unknown name, raise `UnknownDatasetError` with the closest names.

    >>> get_spec("zink")
    Traceback (most recent call last):
    ...
    pathnn.data.errors.UnknownDatasetError: dataset 'zink' is unknown: did you mean zinc? Known are dd, ...
    """
    family = next((family for family, names in FAMILIES.items() if name.lower() in names), None)
    if family is None:
        close = difflib.get_close_matches(name.lower(), dataset_names(), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}? Known" if close else "known"
        raise UnknownDatasetError(f"dataset {name!r} is unknown: {hint} are {', '.join(dataset_names())}.")
    return _specs(family)[name.lower()]


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


def load_built(spec: DatasetSpec) -> Built:
    """Read the graphs and splits of a dataset from the cache, or build them."""
    at_hand = [find_file(*forms) for forms in spec.files]
    if None in at_hand:
        built = _without_sources(spec)
        if built is not None:
            return built
        if not spec.optional:
            at_hand = [get_file(*forms) for forms in spec.files]
    paths = tuple(at_hand)
    key = {
        "dataset": spec.name,
        "builder": spec.version,
        "sources": {path.name: sha256(path) for path in paths if path is not None},
    }
    return Built.from_tensors(cached(built_path(spec), key, lambda: _build(spec, paths).to_tensors()))


def _without_sources(spec: DatasetSpec) -> Built | None:
    """Read a cached build without its source files, if this version of the builder made it."""
    key = cached_key(built_path(spec))
    if key is None or key.get("dataset") != spec.name or key.get("builder") != spec.version:
        return None
    tensors = read_cache(built_path(spec), key)
    return None if tensors is None else Built.from_tensors(tensors)


def _build(spec: DatasetSpec, paths: tuple[Path | None, ...]) -> Built:
    log.info("building %s", spec.name)
    built = spec.build(*paths)
    if len(built.graphs) != spec.num_graphs:
        raise DataError(
            f"{spec.name}: {', '.join(path.name for path in paths if path)} gave {len(built.graphs)} graphs; "
            f"expected {spec.num_graphs}. Put a whole copy of the published file in its place."
        )
    spec.task(built).validate()
    return built
