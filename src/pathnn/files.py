"""Write files as a whole, add to them without following symbolic links, lock them, and compute their checksums."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` and rename it to `path` when all went well.

    It gets the mode that the umask gives to any new file. Two processes may write the same path at once: each has its
    own temporary file and the last rename wins. A process that is killed leaves a temporary file, whose name ends in
    `.tmp` and which nobody reads.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not mkstemp: its files are for their owner alone, and the umask cannot be read without setting it.
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


def plain_file(path: str, flags: int) -> int:
    """Open a plain file and nothing else, as `opener` of `open`: what a symbolic link names must not be written."""
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
    """Open a file to read and append to it, and keep other processes that ask for the same from it.

    The file is made if it does not exist, and never truncated. Raises `BlockingIOError` where another process has it
    and `wait` is False, and another `OSError` for a symbolic link. A process that is killed leaves no lock.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked_file(Path(folder) / ".lock") as file:
    ...     file.read()
    b''
    """
    with open(path, "a+b", opener=plain_file) as file:
        _lock(file.fileno(), wait=wait)
        file.seek(0)
        yield file


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other processes that ask for the same from a folder; nothing is left there afterwards."""
    if os.name == "nt":  # no folder can be opened there
        yield
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(handle, wait=True)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, *, wait: bool) -> None:
    """Lock an open file until it is closed; on Windows, which has no `flock`, nothing is locked."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_dir() -> Path:
    """Where data is kept: `PATHNN_DATA`, by default `pathnn` in the user's cache folder."""
    chosen = os.environ.get("PATHNN_DATA")
    return Path(chosen).expanduser() if chosen else _user_cache() / "pathnn"


def mirror_dir() -> Path | None:
    """A folder that is searched before the network is (`PATHNN_MIRROR`), or None."""
    chosen = os.environ.get("PATHNN_MIRROR")
    return Path(chosen).expanduser() if chosen else None


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
