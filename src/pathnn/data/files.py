"""Writing files so that a reader sees the whole file or none, and reading their checksums."""

from __future__ import annotations

import hashlib
import os
import secrets
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


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
