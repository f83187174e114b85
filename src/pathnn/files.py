"""Write files as a whole, lock them, and read and write checksummed files of tensors.

A tensor file is a safetensors file with a format, a version, JSON and a checksum in its metadata. Any safetensors
reader can open it, and nothing in it can execute code.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import secrets
import stat
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from torch import Tensor


class FileError(ValueError):
    """A file that is missing, damaged, or of another format or version."""


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`, and rename it to `path` if the block succeeds; the umask gives its mode.

    Of two processes that write the same path, the last rename wins. A killed process leaves a file that ends in `.tmp`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not mkstemp: only the owner may read its files, and the umask cannot be read without setting it.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_file(path: Path, content: bytes | str) -> None:
    """Write a file as a whole or not at all."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def check_ending(out: Path, *endings: str) -> None:
    """Raise `ValueError` unless `out` can be a file whose name has one of the endings."""
    if out.is_dir() or not out.name.lower().endswith(endings):
        raise ValueError(
            f"{out} cannot be written: expected the name of a {', '.join(endings[:-1])} or {endings[-1]} file."
        )


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV as a whole or not at all."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: expected the name of a .csv file.")
    replace_file(path, csv_text(chain([header], rows)))


def plain_file(path: str, flags: int) -> int:
    """Open a regular file without following symbolic links; pass it to `open` as `opener`."""
    try:
        handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed; remove it", path) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a plain file; remove it", path)
    return handle


@contextmanager
def locked_file(path: Path, *, wait: bool = True) -> Iterator[BinaryIO]:
    """Open a file for reading and appending, and lock it against other processes that call this function.

    The file is created, but never truncated. Raises `BlockingIOError` if another process has the lock, unless `wait`,
    and another `OSError` for a symbolic link. Windows has no `flock`: there, only a warning is given.
    """
    with open(path, "a+b", opener=plain_file) as file:
        try:
            import fcntl
        except ImportError:
            text = f"{path} is not locked: this system has no file locks. Let only one process write to its folder."
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        file.seek(0)
        yield file


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_dir() -> Path:
    """Return the folder of downloads and caches: `PATHNN_DATA`, or `pathnn` in the user's cache folder."""
    chosen = os.environ.get("PATHNN_DATA")
    return Path(chosen).expanduser() if chosen else _user_cache() / "pathnn"


def mirror_dir() -> Path | None:
    """Return the folder that is searched before the network (`PATHNN_MIRROR`), or None."""
    chosen = os.environ.get("PATHNN_MIRROR")
    return Path(chosen).expanduser() if chosen else None


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], *, kind: str, version: int, meta: Mapping[str, Any]
) -> None:
    """Write tensors and `meta` (plain values) as a whole file; `kind` names its format."""
    import safetensors.torch
    import torch

    own = {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    text = {"format": kind, "version": str(version), "meta": json.dumps(meta, sort_keys=True)}
    text["sha256"] = _checksum(own, text)
    replace_file(path, safetensors.torch.save(own, metadata=text))


def read_tensors(path: Path, *, kind: str, version: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and `meta` of a file that `write_tensors` wrote; raise `FileError` for any other file."""
    import safetensors.torch
    from safetensors import SafetensorError

    if path.is_dir():
        raise FileError(f"{path} is a folder: expected a file, such as the model.safetensors of a run folder.")
    try:
        # One read: `safe_open` opens the file twice, so that a file replaced in between would look damaged.
        content = path.read_bytes()
        text = _metadata(io.BytesIO(content))
        expected = text.get("format") == kind and text.get("version") == str(version)
        tensors = safetensors.torch.load(content) if expected else {}
    except FileNotFoundError:
        raise FileError(f"{path} does not exist: expected a {kind} file.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise FileError(f"{path} is damaged or not a {kind} file ({error}). Use a copy of it.") from error
    if text.get("format") != kind:
        raise FileError(f"{path} is not a {kind} file: its format is {text.get('format')!r}.")
    if text.get("version") != str(version):
        raise FileError(
            f"{path} has version {text.get('version')} of the format {kind}; this pathnn reads version {version}. "
            "Use the pathnn that wrote it."
        )
    if text.get("sha256") != _checksum(tensors, text):
        raise FileError(f"{path} is damaged: its checksum is wrong. Use a copy of it.")
    return tensors, dict(json.loads(text["meta"]))


def file_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a tensor file (format, version, meta, sha256); none for any other file."""
    try:
        with path.open("rb") as file:
            return _metadata(file)
    except (OSError, ValueError):
        return {}


def _metadata(file: BinaryIO) -> dict[str, str]:
    """Read the metadata at the start of a safetensors file: eight bytes with the length of a header in JSON."""
    length = int.from_bytes(file.read(8), "little")
    if length > _MAX_HEADER:
        raise ValueError("it has no header of a safetensors file")
    header = json.loads(file.read(length))
    found = header.get("__metadata__", {}) if isinstance(header, dict) else {}
    return dict(found) if isinstance(found, dict) else {}


def _checksum(tensors: Mapping[str, Tensor], text: Mapping[str, str]) -> str:
    """Return the SHA-256 of the tensors (name, type, shape, bytes) and the metadata."""
    import torch

    digest = hashlib.sha256()
    for key in ("format", "version", "meta"):
        digest.update(text.get(key, "").encode() + b"\0")
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return digest.hexdigest()


_MAX_HEADER = 100_000_000  # the longest header that safetensors itself reads, in bytes

_TENSOR, _DICT, _TUPLE = "$tensor", "$dict", "$tuple"


def flatten(tree: Any, prefix: str, tensors: dict[str, Tensor]) -> Any:
    """Return nested values as JSON can hold them, and add their tensors to `tensors`; names begin with `prefix`."""
    from torch import Tensor

    if isinstance(tree, Tensor):
        tensors[prefix] = tree
        return {_TENSOR: prefix}
    if isinstance(tree, dict):
        return {_DICT: [[key, flatten(value, f"{prefix}.{key}", tensors)] for key, value in tree.items()]}
    if isinstance(tree, list | tuple):
        entries = [flatten(value, f"{prefix}.{i}", tensors) for i, value in enumerate(tree)]
        return {_TUPLE: entries} if isinstance(tree, tuple) else entries
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise TypeError(f"{prefix}: a {type(tree).__name__} cannot be saved; expected tensors and plain values.")


def unflatten(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Return the nested values that `flatten` was given."""
    if isinstance(tree, list):
        return [unflatten(value, tensors) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if _TENSOR in tree:
        return tensors[tree[_TENSOR]]
    if _TUPLE in tree:
        return tuple(unflatten(value, tensors) for value in tree[_TUPLE])
    return {key: unflatten(value, tensors) for key, value in tree[_DICT]}
