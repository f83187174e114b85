"""Text files, packed or not."""

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
    """The text of a plain, `.gz` or `.xz` file."""
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        elif path.suffix.lower() == ".xz":
            content = lzma.decompress(content)
        return content.decode("utf-8-sig")  # some programs mark UTF-8 at its beginning
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged or is no UTF-8 text: {error}.") from error


def parse_numbers(text: str) -> NDArray[np.float64]:
    """Rows of numbers separated by commas, `[rows, columns]`; `ValueError` says which row is none.

    >>> parse_numbers("1, 2\\n3, 4\\n").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a table without rows is a table
        return np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.float64, ndmin=2)


LARGEST = torch.finfo(torch.float32).max
"""Of the targets."""


SMILES_NAMES = ("smiles", "canonical_smiles", "smi", "molecule", "mol", "structure")


@dataclass(frozen=True)
class CsvTable:
    """A CSV file: its header and its rows as text."""

    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str | None]:
        """The cells of a column, None where a row is too short."""
        if name not in self.columns:
            raise DataError(f"{self.source} has no column {name!r}; expected one of {list(self.columns)}.")
        if self.columns.count(name) > 1:
            raise DataError(
                f"{self.source} has {self.columns.count(name)} columns called {name!r}: rename all but one."
            )
        i = self.columns.index(name)
        return [row[i] if i < len(row) else None for row in self.rows]

    def smiles_column(self) -> str:
        """The name of the column that holds SMILES, found by its name."""
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
            f"{path} is no CSV file: {error}, in or before line {reader.line_num}. A cell that begins with a quote "
            '(") has to end with one.'
        ) from error
    if rows and [cell.strip().lower() for cell in rows[0]] == ["sep=", ""]:  # sep=, as Excel writes it
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
        if any(cell.strip() for cell in row[len(rows[0]) :]):
            raise DataError(
                f"{path}, row {number}: {len(row)} cells, but the header has {len(rows[0])}. Put cells that contain a "
                'comma into "quotes".'
            )
    return CsvTable(str(path), rows[0], tuple(rows[1:]))


def class_labels(table: CsvTable, column: str) -> tuple[str, ...]:
    """The names of the classes in a column."""
    cells = [cell for cell in table.column(column) if cell is not None and not is_missing(cell)]
    named = [cell for cell in cells if not is_missing_number(cell)]
    if named and all(as_number(cell) is not None for cell in named):
        cells = named  # among numbers NA, null and the like are no classes
    return class_names(cells)


def is_text(table: CsvTable, column: str) -> bool:
    """Whether a column has cells that are not empty, and none of them is a number."""
    cells = [cell for cell in table.column(column) if cell is not None and not is_missing(cell)]
    return bool(cells) and all(as_number(cell) is None for cell in cells)


def numeric_columns(table: CsvTable, *, leave_out: str) -> list[str]:
    """The columns, other than `leave_out`, whose cells are numbers or empty."""
    found = []
    for name in table.columns:
        if table.columns.count(name) > 1:
            continue
        cells = [cell for cell in table.column(name) if not is_missing_number(cell)]
        if name != leave_out and cells and all(isinstance(_number(name, cell), float) for cell in cells):
            found.append(name)
    return found


def _targets(cells: Sequence[tuple[str, str | None]], classes: Mapping[Hashable, int]) -> list[float | str]:
    """The targets of a row: NaN for those of several that are missing. Text says what is wrong."""
    if len(cells) < 2:
        return [_value(name, cell, classes) for name, cell in cells]
    missing = [is_missing_number(cell) for _, cell in cells]
    if all(missing):
        return ["all targets are missing"]
    return [math.nan if gone else _number(name, cell) for gone, (name, cell) in zip(missing, cells, strict=True)]


def _value(name: str, cell: str | None, classes: Mapping[Hashable, int]) -> float | str:
    """The number in a cell or the position of its class, or what is wrong with it."""
    if not classes:
        return _number(name, cell)
    number = None if cell is None or is_missing(cell) else classes.get(class_key(cell))
    return f"the target {name!r} is missing" if number is None else float(number)


def _number(name: str, cell: str | None) -> float | str:
    """The number in a cell, or what is wrong with it."""
    if cell is None or is_missing_number(cell):
        return f"the target {name!r} is missing"
    value = as_number(cell)
    if value is None:
        return f"the target {name!r} is {_short(cell)}, not a number (for classes: --kind class)"
    if abs(value) > LARGEST:
        return f"the target {name!r} is {cell.strip()}, not a finite number that float32 can hold"
    return value


def _short(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")


def one_column(y: Tensor) -> Tensor:
    """Classes 0, 1, ... from a float column `[G, 1]`, as int64 `[G]`."""
    codes: Tensor = torch.unique(y.view(-1), return_inverse=True)[1]
    return codes
