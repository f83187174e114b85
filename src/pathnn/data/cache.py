"""Cache tensors on disk: checksummed, versioned, replaced as a whole, rebuilt when stale or damaged.

A cache file is one line of JSON (format, version, what it was built from, the checksum of the rest) followed
by the tensors in the safetensors format. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from pathnn.files import atomic_write

log = logging.getLogger(__name__)

FORMAT = "pathnn-cache"
VERSION = 1
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
        content = path.read_bytes()
    except OSError:
        return None
    head, _, payload = content.partition(b"\n")
    fault = _fault(head, payload, key)
    if fault is None:
        try:
            return dict(safetensors.torch.load(payload))
        except (SafetensorError, ValueError) as error:
            fault = str(error)
    log.info("%s is rebuilt: %s", path, fault)
    return None


def write_cache(path: Path, key: Mapping[str, object], tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors under a temporary name, then rename."""
    payload = to_bytes(tensors)
    head = {"format": FORMAT, "version": VERSION, "key": dict(key), "sha256": _digest(key, payload)}
    with atomic_write(path) as file:
        file.write(json.dumps(head, sort_keys=True).encode() + b"\n")
        file.write(payload)


def to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the tensors in the safetensors format, which refuses two names for the same memory."""
    separate: dict[str, Tensor] = {}
    seen = set()
    for name, tensor in tensors.items():
        separate[name] = tensor.clone() if tensor.data_ptr() in seen else tensor.contiguous()
        seen.add(tensor.data_ptr())
    return safetensors.torch.save(separate)


def cached_key(path: Path) -> dict[str, object] | None:
    """Read the key of the file at `path`; None if this version cannot read it."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline(1 << 20))
        return dict(head["key"]) if head["format"] == FORMAT and head["version"] == VERSION else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _fault(head: bytes, payload: bytes, key: Mapping[str, object]) -> str | None:
    try:
        fields = json.loads(head)
        if fields["format"] != FORMAT or fields["version"] != VERSION:
            return "it was written by another version"
        if fields["key"] != json.loads(json.dumps(dict(key))):
            return "it was built from something else"
        return None if fields["sha256"] == _digest(key, payload) else "it is damaged (checksum)"
    except (ValueError, KeyError, TypeError):
        return "it is damaged (header)"


def _digest(key: Mapping[str, object], payload: bytes) -> str:
    digest = hashlib.sha256(json.dumps(dict(key), sort_keys=True).encode())
    digest.update(payload)
    return digest.hexdigest()
