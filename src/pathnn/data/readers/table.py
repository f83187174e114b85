"""Read tables in chunks, compressed or not, and the targets in their columns."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import math
import sys
import warnings
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathnn.data.errors import DataError, shorten
from pathnn.data.targets import as_number, class_key, class_names, is_missing, is_missing_number

STANDARD_INPUT = "-"
"""The name of a table that is read from standard input."""

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


LARGEST = torch.finfo(torch.float32).max
"""The largest absolute value of a target."""


SMILES_NAMES = ("smiles", "canonical_smiles", "smi", "molecule", "mol", "structure")


Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of a table as text, with its header.

    `problems` says what is wrong with rows that could not be read, by their position in `rows`, from 0.
    """

    source: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    problems: Mapping[int, str] = field(default_factory=dict)

    def column(self, name: str) -> list[str | None]:
        """Return the values of a column; None where a row is too short."""
        if name not in self.columns:
            raise DataError(f"{self.source} has no column {name!r}; expected one of {list(self.columns)}.")
        if self.columns.count(name) > 1:
            raise DataError(
                f"{self.source} has {self.columns.count(name)} columns called {name!r}: rename all but one."
            )
        i = self.columns.index(name)
        return [row[i] if i < len(row) else None for row in self.rows]

    def smiles_column(self) -> str:
        """Find the column that holds SMILES by its name."""
        for known in SMILES_NAMES:
            for column in self.columns:
                if column.strip().lower() == known:
                    return column
        raise DataError(
            f"{self.source} has no SMILES column: expected one called smiles, got {list(self.columns)}. Name the "
            "column that holds them (--smiles COLUMN)."
        )


class TableReader:
    """A table that is read once, from its first row to the last, in chunks; close it after use.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "my.csv"
    ...     _ = path.write_text("smiles,logS\\nC,1\\nCC,2\\nCCC,3\\n")
    ...     with open_table(path) as table:
    ...         print(table.columns, [len(chunk.rows) for chunk in table.chunks(2)])
    ('smiles', 'logS') [2, 1]
    """

    def __init__(self, source: str, columns: Row, rows: Iterator[Row], file: BinaryIO) -> None:
        self.source, self.columns, self._rows, self._file = source, columns, rows, file

    def chunks(self, rows: int) -> Iterator[Table]:
        """Yield the next rows as tables of at most `rows` rows; raise `DataError` if there are none at all."""
        empty = True
        while chunk := tuple(islice(self._rows, rows)):
            empty = False
            yield Table(self.source, self.columns, chunk)
        if empty:
            raise _no_rows(self.source)

    def __enter__(self) -> TableReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not sys.stdin.buffer:
            self._file.close()


def open_table(source: str | Path) -> TableReader:
    """Open a `.csv` file, compressed or not, or standard input ("-"), to read it in chunks."""
    if source == STANDARD_INPUT:
        name, file = "standard input", cast(BinaryIO, sys.stdin.buffer)
    else:
        path = Path(source).expanduser()
        name, file = str(path), open_bytes(path)
    try:
        return TableReader(name, *_csv_rows(file, name), file)
    except BaseException:
        file.close()
        raise


def read_table(source: str | Path) -> Table:
    """Read a whole table; see `open_table`."""
    with open_table(source) as reader:
        (table,) = reader.chunks(sys.maxsize)
        return table


def _csv_rows(file: BinaryIO, source: str) -> tuple[Row, Iterator[Row]]:
    """Return the header and the rows of a CSV."""
    rows = _parsed(codecs.iterdecode(file, "utf-8-sig"), source)
    header = next(rows, ())
    if [value.strip().lower() for value in header] == ["sep=", ""]:  # sep=, as Excel writes it
        header = next(rows, ())
    first = next(rows, None)
    if first is None:
        raise _no_rows(source)
    only = header[0] if len(header) == 1 else ""
    other = next((mark for mark in (";", "\t") if mark in only.strip(f"{mark} ")), None)
    if other is not None or header[0].lower().startswith("sep="):
        raise DataError(
            f"the columns of {source} seem to be separated by {other or header[0][4:]!r}: expected commas, and points "
            "in numbers. Save it in that form."
        )
    return header, _checked(chain([first], rows), source, len(header))


def _no_rows(source: str) -> DataError:
    return DataError(f"{source} has no rows: expected a header line and one line per molecule.")


def _parsed(lines: Iterator[str], source: str) -> Iterator[Row]:
    """Yield the lines of a CSV that are not empty."""
    reader = csv.reader(lines, strict=True)  # else a quote that is not closed swallows the rows after it
    try:
        yield from (tuple(row) for row in reader if row)
    except csv.Error as error:
        raise DataError(
            f"{source} is not a CSV file: {error}, in or before line {reader.line_num}. A value that begins with a "
            'quote (") has to end with one.'
        ) from error
    except DAMAGED as error:
        raise _damaged(source, error) from error


def _checked(rows: Iterator[Row], source: str, width: int) -> Iterator[Row]:
    """Refuse a row that has more values than the header."""
    for number, row in enumerate(rows, start=1):
        if any(value.strip() for value in row[width:]):
            raise DataError(
                f"{source}, row {number}: {len(row)} values, but the header has {width}. Put values that contain a "
                'comma into "quotes".'
            )
        yield row


def class_labels(table: Table, column: str) -> tuple[str, ...]:
    """Return the names of the classes in a column."""
    values = [value for value in table.column(column) if value is not None and not is_missing(value)]
    named = [value for value in values if not is_missing_number(value)]
    if named and all(as_number(value) is not None for value in named):
        values = named  # among numbers NA, null and the like are no classes
    return class_names(values)


def is_text(table: Table, column: str) -> bool:
    """Return whether a column has values that are not empty, and none of them is a number."""
    values = [value for value in table.column(column) if value is not None and not is_missing(value)]
    return bool(values) and all(as_number(value) is None for value in values)


def numeric_columns(table: Table, *, leave_out: str) -> list[str]:
    """Return the columns, other than `leave_out`, whose values are numbers or empty."""
    found = []
    for name in table.columns:
        if table.columns.count(name) > 1:
            continue
        values = [value for value in table.column(name) if not is_missing_number(value)]
        if name != leave_out and values and all(isinstance(_number(name, value), float) for value in values):
            found.append(name)
    return found


def row_targets(values: Sequence[tuple[str, str | None]], classes: Mapping[Hashable, int]) -> list[float | str]:
    """Return the targets of a row: NaN for one of several that is missing, a text for a bad value."""
    if len(values) < 2:
        return [_target(name, value, classes) for name, value in values]
    missing = [is_missing_number(value) for _, value in values]
    if all(missing):
        return ["all targets are missing"]
    return [
        math.nan if unknown else _number(name, value) for unknown, (name, value) in zip(missing, values, strict=True)
    ]


def _target(name: str, value: str | None, classes: Mapping[Hashable, int]) -> float | str:
    """Return the number or the position of the class, or a text that says what is wrong."""
    if not classes:
        return _number(name, value)
    number = None if value is None or is_missing(value) else classes.get(class_key(value))
    return f"the target {name!r} is missing" if number is None else float(number)


def _number(name: str, value: str | None) -> float | str:
    """Return the number, or a text that says what is wrong."""
    if value is None or is_missing_number(value):
        return f"the target {name!r} is missing"
    number = as_number(value)
    if number is None:
        return f"the target {name!r} is {shorten(value)}, not a number (for classes: --kind class)"
    if abs(number) > LARGEST:
        return f"the target {name!r} is {value.strip()}, not a finite number that float32 can hold"
    return number


def one_column(y: Tensor) -> Tensor:
    """Number the distinct values of a column `[G, 1]` from 0, as int64 `[G]`."""
    codes: Tensor = torch.unique(y.view(-1), return_inverse=True)[1]
    return codes
