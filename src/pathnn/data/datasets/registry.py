"""The registry: which datasets there are, and loading one through the cache."""

from __future__ import annotations

import difflib
import logging
from functools import cache
from pathlib import Path

from pathnn.data.cache import cached, cached_key, read_cache
from pathnn.data.datasets import atlas, brec, csl, esol, exp, ogb, sr, tu, zinc
from pathnn.data.datasets.base import Built, DatasetSpec
from pathnn.data.errors import DataError, UnknownDatasetError
from pathnn.data.sources import DataFile, find_file, get_file
from pathnn.data.task import Task
from pathnn.files import cache_dir, sha256

log = logging.getLogger(__name__)

FAMILIES = (tu, zinc, ogb, csl, exp, sr, brec, atlas, esol)


@cache
def _specs() -> dict[str, DatasetSpec]:
    return {spec.name: spec for family in FAMILIES for spec in family.specs()}


def dataset_names() -> tuple[str, ...]:
    """The names that `load_dataset` knows.

    >>> dataset_names()[:3]
    ('dd', 'proteins', 'nci1')
    """
    return tuple(_specs())


def get_spec(name: str) -> DatasetSpec:
    """The entry of a dataset; an unknown name is an error with the closest names.

    >>> get_spec("zink")
    Traceback (most recent call last):
    ...
    pathnn.data.errors.UnknownDatasetError: dataset 'zink' is unknown: did you mean zinc? Known are dd, ...
    """
    spec = _specs().get(name.lower())
    if spec is None:
        close = difflib.get_close_matches(name.lower(), dataset_names(), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}? Known" if close else "known"
        raise UnknownDatasetError(f"dataset {name!r} is unknown: {hint} are {', '.join(dataset_names())}.")
    return spec


def load_dataset(name: str) -> Task:
    """A dataset by name: its graphs, features, splits and facts. Built once, then read from the cache.

    Files come from the cache (`PATHNN_DATA`), the mirror (`PATHNN_MIRROR`) or the network, in this order.

    ```python
    task = load_dataset("csl")
    train = task.graphs.subset(task.splits[0].train)
    ```
    """
    spec = get_spec(name)
    return spec.task(load_built(spec))


def built_path(spec: DatasetSpec) -> Path:
    """Where the built dataset is cached."""
    return cache_dir() / "built" / f"{spec.name}.pathnn"


def load_built(spec: DatasetSpec) -> Built:
    """Graphs and splits of a dataset, from the cache or built anew."""
    at_hand = [_find(forms) for forms in spec.files]
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


def _find(forms: tuple[DataFile, ...]) -> Path | None:
    return next((path for path in map(find_file, forms) if path is not None), None)


def _without_sources(spec: DatasetSpec) -> Built | None:
    """A cached build whose source files are gone: used if this version of the builder made it."""
    key = cached_key(built_path(spec))
    if key is None or key.get("dataset") != spec.name or key.get("builder") != spec.version:
        return None
    tensors = read_cache(built_path(spec), key)
    return None if tensors is None else Built.from_tensors(tensors)


def _build(spec: DatasetSpec, paths: tuple[Path | None, ...]) -> Built:
    log.info("building %s", spec.name)
    built = spec.build(paths)
    if len(built.graphs) != spec.num_graphs:
        raise DataError(
            f"{spec.name}: {', '.join(path.name for path in paths if path)} gave {len(built.graphs)} graphs; "
            f"expected {spec.num_graphs}. Put a whole copy of the published file in its place."
        )
    spec.task(built).validate()
    return built
