"""What can be wrong with data, as errors that say what came, what was expected and the way out."""

from __future__ import annotations

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    OSError,
    EOFError,
    UnicodeDecodeError,
    NotImplementedError,  # a compression method that Python does not have
    RuntimeError,  # an encrypted member
    KeyError,  # a member that is not there
)
"""What reading a damaged archive may raise."""


class DataError(ValueError):
    """Data that cannot be read: a damaged file, a wrong format, facts that do not hold."""


class DatasetNotFoundError(FileNotFoundError, DataError):
    """A dataset's file is in no place where it was looked for."""


class UnknownDatasetError(DataError):
    """A name that no dataset has."""


@dataclass(frozen=True)
class BadRow:
    """A row of the user's data that cannot become a graph. Rows are counted from 1, without the header."""

    row: int
    reason: str

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"


class BadRowsError(DataError):
    """Rows that cannot become graphs, in `rows`, with a way out other than to fix them."""

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
