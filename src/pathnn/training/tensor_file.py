"""Checksummed safetensors files with a format, a version and JSON in their metadata.

Any safetensors reader can open them. Nothing in them can execute code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pathnn.files import atomic_write
from pathnn.training.errors import CheckpointError, RunFolderError
from pathnn.training.tree import to_cpu


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], *, kind: str, version: int, meta: Mapping[str, Any]
) -> None:
    """Write tensors and `meta` under a temporary name, then rename; `kind` says what the file is."""
    own = to_cpu(dict(tensors))
    text = {"format": kind, "version": str(version), "meta": json.dumps(meta, sort_keys=True)}
    text["sha256"] = checksum(own, text)
    payload = safetensors.torch.save(own, metadata=text)
    write_file(path, payload)


def read_tensors(path: Path, *, kind: str, version: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the `meta` of a file that `write_tensors` wrote; all else is a `CheckpointError`."""
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder: expected a file, such as the model.safetensors of a run folder.")
    try:
        with safe_open(path, framework="pt") as file:
            text = dict(file.metadata() or {})
            names = list(file.keys())
            tensors = {name: file.get_tensor(name) for name in names} if _readable(text, kind, version) else {}
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist: expected a folder that pathnn train has written.") from None
    except (SafetensorError, OSError, ValueError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{path} is damaged or no {kind} file ({error}). Use a copy of it, or train again with --overwrite."
        ) from error
    if text.get("format") != kind:
        raise CheckpointError(
            f"{path} is no {kind} file: its format is {text.get('format')!r}. Give one that pathnn train has written."
        )
    if text.get("version") != str(version):
        raise CheckpointError(
            f"{path} has version {text.get('version')} of the format {kind}; this pathnn reads version "
            f"{version}. Use the pathnn that wrote it, or train again with --overwrite."
        )
    if text.get("sha256") != checksum(tensors, text):
        raise CheckpointError(
            f"{path} is damaged: its checksum is wrong. Use a copy of it, or train again with --overwrite."
        )
    return tensors, dict(json.loads(text["meta"]))


def format_of(path: Path) -> str | None:
    """What kind of file it says it is, None for a file of others, or none."""
    try:
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("format")
    except (SafetensorError, OSError, ValueError):
        return None


def checksum(tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> str:
    """SHA-256 of the tensors (name, type, shape, bytes) and the metadata."""
    digest = hashlib.sha256()
    for key in ("format", "version", "meta"):
        digest.update(text.get(key, "").encode() + b"\0")
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return digest.hexdigest()


def write_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    with writing(path), atomic_write(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` while `path` is written, such as a full disk, into a `RunFolderError`."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"{path} could not be written: {error.strerror or error}. What was there before is kept: "
            "make room or mend the folder, then go on with --resume."
        ) from error


def _readable(text: Mapping[str, str], kind: str, version: int) -> bool:
    return text.get("format") == kind and text.get("version") == str(version)
