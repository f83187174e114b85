"""Read text files, plain or compressed."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from pathnn.data.errors import DataError

COMPRESSED: Mapping[str, Callable[[Path], BinaryIO]] = {
    ".gz": cast(Callable[[Path], BinaryIO], gzip.open),
    ".xz": cast(Callable[[Path], BinaryIO], lzma.open),
    ".bz2": cast(Callable[[Path], BinaryIO], bz2.open),
}
"""How to open compressed files, by their suffix."""

DAMAGED = (OSError, lzma.LZMAError, zlib.error, EOFError, UnicodeDecodeError)
"""The errors of reading an open file that is damaged or is not text."""


def open_bytes(path: Path) -> BinaryIO:
    """Open a plain or compressed file to read what it holds, not compressed."""
    opened = COMPRESSED.get(path.suffix.lower())
    return path.open("rb") if opened is None else opened(path)


def read_text(path: Path) -> str:
    """Return the text of a plain or compressed file."""
    with open_bytes(path) as file:
        try:
            return file.read().decode("utf-8-sig")  # some programs mark UTF-8 at its beginning
        except DAMAGED as error:
            raise _damaged(path, error) from error


def read_lines(file: BinaryIO, source: str) -> Iterator[str]:
    """Yield the lines of an open file; `source` is its name in errors."""
    try:
        yield from codecs.iterdecode(file, "utf-8-sig")
    except DAMAGED as error:
        raise _damaged(source, error) from error


def _damaged(source: str | Path, error: Exception) -> DataError:
    return DataError(f"{source} is damaged or is not UTF-8 text: {error}.")


def parse_numbers(text: str) -> NDArray[np.float64]:
    """Parse rows of numbers separated by commas, `[rows, columns]`; `ValueError` names the first bad row.

    >>> parse_numbers("1, 2\\n3, 4\\n").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a table without rows is a table
        return np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.float64, ndmin=2)
