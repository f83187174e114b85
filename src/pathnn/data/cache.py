"""Cache tensors on disk: checksummed, versioned, replaced as a whole, rebuilt when stale or damaged."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor

from pathnn.files import FileError, file_metadata, read_tensors, write_tensors

log = logging.getLogger(__name__)

FORMAT = "pathnn-cache"
VERSION = 2
"""Increased when the meaning of a file changes; files of other versions are rebuilt."""


def cached(path: Path, key: Mapping[str, object], build: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the tensors at `path` if they are intact and built from `key`, else build and write them.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.cache"
    ...     first = cached(path, {"of": 1}, lambda: {"a": torch.ones(2)})
    ...     again = cached(path, {"of": 1}, lambda: {"a": torch.zeros(2)})
    >>> again["a"].tolist()
    [1.0, 1.0]
    """
    found = read_cache(path, key)
    if found is not None:
        return found
    tensors = build()
    try:
        write_cache(path, key, tensors)
    except OSError as error:
        log.warning("%s could not be written (%s): continuing without a cache", path, error)
    return tensors


def read_cache(path: Path, key: Mapping[str, object]) -> dict[str, Tensor] | None:
    """Read the tensors at `path`; None if they are missing, damaged or built from another `key`."""
    try:
        tensors, found = read_tensors(path, kind=FORMAT, version=VERSION)
    except FileError as error:
        log.info("%s is built: %s", path, error)
        return None
    return tensors if found == json.loads(json.dumps(dict(key))) else None


def write_cache(path: Path, key: Mapping[str, object], tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors and what they were built from."""
    write_tensors(path, tensors, kind=FORMAT, version=VERSION, meta=key)


def cached_key(path: Path) -> dict[str, object] | None:
    """Read the key of the file at `path`; None if this version cannot read it."""
    found = file_metadata(path)
    if found.get("format") != FORMAT or found.get("version") != str(VERSION):
        return None
    return dict(json.loads(found["meta"]))
