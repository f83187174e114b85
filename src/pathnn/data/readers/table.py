"""Read text files, compressed or not: CSV tables and tables of numbers."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import math
import warnings
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.targets import as_number, class_key, class_names, is_missing, is_missing_number


def read_text(path: Path) -> str:
    """Return the text of a plain, `.gz` or `.xz` file."""
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        elif path.suffix.lower() == ".xz":
            content = lzma.decompress(content)
        return content.decode("utf-8-sig")  # some programs mark UTF-8 at its beginning
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged or is not UTF-8 text: {error}.") from error


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


@dataclass(frozen=True)
class CsvTable:
    """A CSV file: its header and its rows as text."""

    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

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


def read_csv(path: Path) -> CsvTable:
    """Read a `.csv`, `.csv.gz` or `.csv.xz` file with a header line."""
    text = read_text(path)
    reader = csv.reader(io.StringIO(text), strict=True)  # else a quote that is not closed swallows the rows after it
    try:
        rows = [tuple(row) for row in reader if row]
    except csv.Error as error:
        raise DataError(
            f"{path} is not a CSV file: {error}, in or before line {reader.line_num}. A value that begins with a quote "
            '(") has to end with one.'
        ) from error
    if rows and [value.strip().lower() for value in rows[0]] == ["sep=", ""]:  # sep=, as Excel writes it
        del rows[0]
    if len(rows) < 2:
        raise DataError(f"{path} has no rows: expected a header line and one line per molecule.")
    header = rows[0][0] if len(rows[0]) == 1 else ""
    other = next((mark for mark in (";", "\t") if mark in header.strip(f"{mark} ")), None)
    if other is not None or rows[0][0].lower().startswith("sep="):
        raise DataError(
            f"the columns of {path} seem to be separated by {other or rows[0][0][4:]!r}: expected commas, and points "
            "in numbers. Save it in that form."
        )
    for number, row in enumerate(rows[1:], start=1):
        if any(value.strip() for value in row[len(rows[0]) :]):
            raise DataError(
                f"{path}, row {number}: {len(row)} values, but the header has {len(rows[0])}. Put values that contain "
                'a comma into "quotes".'
            )
    return CsvTable(str(path), rows[0], tuple(rows[1:]))


def class_labels(table: CsvTable, column: str) -> tuple[str, ...]:
    """Return the names of the classes in a column."""
    values = [value for value in table.column(column) if value is not None and not is_missing(value)]
    named = [value for value in values if not is_missing_number(value)]
    if named and all(as_number(value) is not None for value in named):
        values = named  # among numbers NA, null and the like are no classes
    return class_names(values)


def is_text(table: CsvTable, column: str) -> bool:
    """Return whether a column has values that are not empty, and none of them is a number."""
    values = [value for value in table.column(column) if value is not None and not is_missing(value)]
    return bool(values) and all(as_number(value) is None for value in values)


def numeric_columns(table: CsvTable, *, leave_out: str) -> list[str]:
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


def shorten(text: str) -> str:
    """Quote a text for a message, cut to 40 characters."""
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")


def one_column(y: Tensor) -> Tensor:
    """Number the distinct values of a column `[G, 1]` from 0, as int64 `[G]`."""
    codes: Tensor = torch.unique(y.view(-1), return_inverse=True)[1]
    return codes
