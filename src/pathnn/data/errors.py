"""Errors of data."""

from __future__ import annotations

import lzma
import pickle
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class DataError(ValueError):
    """Data cannot be read: a damaged file, a wrong format, or wrong values."""


class DatasetNotFoundError(FileNotFoundError, DataError):
    """A file of a dataset was not found."""


class UnknownDatasetError(DataError):
    """No dataset has this name."""


@dataclass(frozen=True)
class BadRow:
    """A row of a user's file that cannot be read as a graph; rows are counted from 1, without the header.

    `text` is the SMILES of a molecule.
    """

    row: int
    reason: str
    text: str = ""

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"


class BadRowsError(DataError):
    """Some rows cannot be read as graphs: `rows`. `way_out` is an alternative to fixing them."""

    def __init__(
        self,
        source: str,
        rows: Sequence[BadRow],
        total: int,
        way_out: str = "leave them out with skip_invalid=True (--skip-invalid)",
    ) -> None:
        self.rows = tuple(rows)
        first = "; ".join(map(str, self.rows[:5]))
        more = f"; and {len(self.rows) - 5} more" if len(self.rows) > 5 else ""
        super().__init__(
            f"{source}: {len(self.rows)} of {total} rows cannot be read ({first}{more}). Fix them, or {way_out}."
        )


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Raise `DataError` in place of what a damaged archive or a wrong content may raise; `what` was expected."""
    damaged = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, pickle.UnpicklingError)
    try:
        yield
    except DataError:
        raise
    except (*damaged, OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise DataError(f"{path}: expected {what}: {error!r}. Put a whole copy in its place.") from error


def shorten(text: str) -> str:
    """Quote a text for a message, cut to 40 characters."""
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")
