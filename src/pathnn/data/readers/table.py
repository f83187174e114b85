"""Read tables in chunks, compressed or not, and the targets in their columns."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

import torch
from torch import Tensor

from pathnn.data.errors import DataError, shorten
from pathnn.data.readers.formats import Format, Row, Rows, csv_rows, is_smiles, parquet_rows, sdf_rows, smi_rows
from pathnn.data.readers.text import COMPRESSED, open_bytes
from pathnn.data.targets import as_number, class_key, class_names, is_missing, is_missing_number

STANDARD_INPUT = "-"
"""The name of a table that is read from standard input."""

FORMATS: Mapping[str, Format] = {
    ".csv": csv_rows,
    ".tsv": partial(csv_rows, separator="\t"),
    ".smi": smi_rows,
    ".sdf": sdf_rows,
    ".parquet": parquet_rows,
}
"""How to read tables, by the suffix of their files."""

LARGEST = torch.finfo(torch.float32).max
"""The largest absolute value of a target."""


SAMPLE = 100
"""How many rows are looked at to find the column of SMILES."""

SMILES_NAMES = ("smiles", "canonical_smiles", "smi", "molecule", "mol", "structure")


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
        """Find the column that holds SMILES: by its name, else the only one whose first values are molecules."""
        for known in SMILES_NAMES:
            for column in self.columns:
                if column.strip().lower() == known:
                    return column
        found = [name for i, name in enumerate(self.columns) if name and self._holds_smiles(i)]
        if len(found) == 1 and self.columns.count(found[0]) == 1:
            return found[0]
        problem = f"several columns that may hold SMILES, {found}" if found else "no SMILES column"
        raise DataError(
            f"{self.source} has {problem}: expected one called smiles, got {list(self.columns)}. Name the column that "
            "holds them (--smiles COLUMN)."
        )

    def _holds_smiles(self, column: int) -> bool:
        """Return whether most of the first values of a column are molecules."""
        texts = [row[column] for row in self.rows[:SAMPLE] if column < len(row) and row[column].strip()]
        good = sum(as_number(text) is None and is_smiles(text) for text in texts)
        return good > 0 and good >= 0.9 * len(texts)


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

    def __init__(self, source: str, columns: Row, rows: Rows, file: BinaryIO) -> None:
        self.source, self.columns, self._rows, self._file = source, columns, rows, file

    def chunks(self, rows: int) -> Iterator[Table]:
        """Yield the next rows as tables of at most `rows` rows; raise `DataError` if there are none at all."""
        empty = True
        while chunk := tuple(islice(self._rows, rows)):
            empty = False
            problems = {i: problem for i, (_, problem) in enumerate(chunk) if problem is not None}
            yield Table(self.source, self.columns, tuple(row for row, _ in chunk), problems)
        if empty:
            raise DataError(f"{self.source} has no rows: expected at least one molecule, in a CSV after a header line.")

    def __enter__(self) -> TableReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not sys.stdin.buffer:
            self._file.close()


def table_format(path: Path) -> Format | None:
    """Return how to read a file as a table, by its name; None if it is not one."""
    name = path.name.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return FORMATS.get(Path(name).suffix)


def open_table(source: str | Path) -> TableReader:
    """Open a table to read it in chunks: a file of `FORMATS`, compressed or not, or a CSV from standard input ("-").

    A file with another suffix is read as CSV.
    """
    path = Path(source).expanduser()
    if str(source) == STANDARD_INPUT:
        name, file = "standard input", cast(BinaryIO, sys.stdin.buffer)
    else:
        name, file = str(path), open_bytes(path)
    try:
        return TableReader(name, *(table_format(path) or csv_rows)(file, name), file)
    except BaseException:
        file.close()
        raise


def read_table(source: str | Path) -> Table:
    """Read a whole table; see `open_table`."""
    with open_table(source) as reader:
        (table,) = reader.chunks(sys.maxsize)
        return table


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


def check_decimal_commas(table: Table, columns: Sequence[str]) -> None:
    """Raise `DataError` if the values of a column would be numbers if their commas were points."""
    for name in columns:
        values = [value for value in table.column(name) if value is not None and not is_missing_number(value)]
        first = next((value for value in values if "," in value), None)
        if first is not None and all(as_number(value.replace(",", ".")) is not None for value in values):
            raise DataError(
                f"{table.source}: the column {name!r} has decimal commas ({first.strip()}): expected points "
                f"({first.strip().replace(',', '.')}). Save the file with decimal points."
            )


def numbers_of(table: Table, column: str) -> tuple[list[float], dict[int, str]]:
    """Return the numbers of a column, NaN where there is none, and what is wrong with some rows, counted from 0."""
    check_decimal_commas(table, [column])
    found, problems = [], {}
    for row, text in enumerate(table.column(column)):
        number = math.nan if text is None or is_missing_number(text) else as_number(text)
        if number is None or abs(number) > torch.finfo(torch.float32).max:
            problems[row], number = f"the descriptor {column!r} is {shorten(text or '')}, not a finite number", math.nan
        found.append(number)
    return found, problems


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
