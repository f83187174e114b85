"""Read tables in chunks: CSV, `.smi`, SDF and Parquet files, compressed or not, and the targets in their columns."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import lzma
import math
import re
import sys
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, islice, repeat, starmap, takewhile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pathnn.data.errors import DataError, shorten
from pathnn.data.readers.molecules import quiet_rdkit

COMPRESSED: Mapping[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
"""How to open compressed files, by their suffix."""


def _open(path: Path) -> BinaryIO:
    """Open a plain or compressed file to read its content."""
    return COMPRESSED.get(path.suffix.lower(), Path.open)(path, "rb")


def read_text(path: Path) -> str:
    """Return the text of a plain or compressed file."""
    with _open(path) as file:
        return "".join(_lines(file, str(path)))


def _lines(file: BinaryIO, source: str) -> Iterator[str]:
    try:
        yield from codecs.iterdecode(file, "utf-8-sig")  # some programs mark UTF-8 at its beginning
    except (OSError, lzma.LZMAError, zlib.error, EOFError, UnicodeDecodeError) as error:
        problem = f"{source} is damaged or is not UTF-8 text: {error}. In Excel, save it as CSV UTF-8."
        raise DataError(problem) from error


Row = tuple[str, ...]

Rows = Iterator[tuple[Row, str | None]]
"""Rows, and what is wrong with those that could not be read."""

Format = Callable[[BinaryIO, str], tuple[Row, Rows]]
"""Return the header and the rows of an open file; the text is its name in errors."""

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a |"}


def csv_rows(file: BinaryIO, source: str, separator: str | None = None) -> tuple[Row, Rows]:
    """Read a CSV; None: find out which of `SEPARATORS` separates its columns."""
    lines = _lines(file, source)
    head = list(islice(lines, 5))
    named = re.fullmatch(r"sep=(.)\s*", head[0], re.I) if head else None  # as Excel writes it
    if named is not None:
        separator, head = named[1], head[1:]
    mark = separator or find_separator(head)
    # strict: else a quote that is not closed swallows the rows after it
    reader = csv.reader(chain(head, lines), strict=True, delimiter=mark)
    rows = _csv_rows(reader, source, SEPARATORS.get(mark, repr(mark)))
    return next(rows, ()), zip(rows, repeat(None))


def find_separator(head: Sequence[str]) -> str:
    """Find the separator of a CSV: one with a column smiles, then with equally long rows, then with most columns."""

    def rank(mark: str) -> tuple[bool, bool, int]:
        try:
            header, *rows = [row for row in csv.reader(head, delimiter=mark) if row][:2] or [[]]
        except csv.Error:
            return False, False, 0
        names = {name.strip().lower() for name in header}
        return "smiles" in names, bool(rows) and len(rows[0]) == len(header), len(header)

    return max(SEPARATORS, key=rank)


def _csv_rows(reader: Any, source: str, separator: str) -> Iterator[Row]:
    """Yield the header and the rows that are not empty; refuse a row that has more values than the header."""
    width = sys.maxsize
    try:
        for number, row in enumerate(filter(None, reader)):
            if any(value.strip() for value in row[width:]):
                raise DataError(
                    f"{source}, row {number}: {len(row)} values, but the header has {width}. Put values that contain "
                    f'{separator} into "quotes".'
                )
            width = width if number else len(row)
            yield tuple(row)
    except csv.Error as error:
        raise DataError(
            f"{source} is not a CSV file: {error}, in or before line {reader.line_num}. A value that begins with a "
            'quote (") has to end with one.'
        ) from error


def smi_rows(file: BinaryIO, source: str) -> tuple[Row, Rows]:
    """Read lines of a SMILES and a name. A first word that is no molecule begins a line with the names of columns."""
    lines = (line.strip() for line in _lines(file, source) if line.strip())
    first = next(lines, "")
    word = first.split(maxsplit=1)[0] if first else ""
    if not re.fullmatch("#?[A-Za-z_]+", word) or _is_smiles(word):
        return ("smiles", "name"), (((*line.split(maxsplit=1), "")[:2], None) for line in chain([first], lines) if line)
    mark = "\t" if "\t" in first else None
    header = [name.strip() for name in first.lstrip("#").split(mark)]
    return tuple(header), ((tuple(line.split(mark, len(header) - 1)), None) for line in lines)


def _is_smiles(text: str) -> bool:
    with quiet_rdkit():
        from rdkit import Chem

        return Chem.MolFromSmiles(text) is not None


def sdf_rows(file: BinaryIO, source: str) -> tuple[Row, Rows]:
    """Read an SDF file twice, for the names of its properties and for its records: smiles, name and properties."""
    names = dict.fromkeys(name for _, properties in _sdf_records(file, source) for name in properties)
    file.seek(0)
    columns = ("name", *(name for name in names if name not in ("smiles", "name")))

    def row(block: list[str], properties: dict[str, str]) -> tuple[Row, str | None]:
        title = block[0].strip() if block else ""
        smiles, reason = _block_smiles("\n".join(block))
        problem = reason and (f"{title!r} is no molecule: {reason}" if title else f"no molecule: {reason}")
        return (smiles, *({"name": title, **properties}.get(name, "") for name in columns)), problem

    return ("smiles", *columns), starmap(row, _sdf_records(file, source))


def _sdf_records(file: BinaryIO, source: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield the molecule, as lines, and the properties of each record of an SDF file."""
    lines = (line.rstrip("\r\n") for line in _lines(file, source))
    for is_end, group in groupby(lines, lambda line: line.rstrip() == "$$$$"):
        record = list(group)
        if is_end or not any(map(str.strip, record)):
            continue
        start = next((i for i, line in enumerate(record) if line.startswith(">")), len(record))
        end = next((i + 1 for i, line in enumerate(record) if line.startswith("M  END")), start)
        properties, rest = {}, iter(record[end:])
        for line in rest:
            if line.startswith(">") and "<" in line:
                name = line.split("<", 1)[1].rsplit(">", 1)[0].strip()
                properties[name] = "\n".join(takewhile(str.strip, rest)).strip()
        yield record[:end], properties


def _block_smiles(block: str) -> tuple[str, str | None]:
    """Return the SMILES of a molecule in an SDF file, or "" and what is wrong with it."""
    problems: Any = ()
    with quiet_rdkit(), suppress(RuntimeError, ValueError):  # rdkit cannot even parse it
        from rdkit import Chem

        molecule: Any = Chem.MolFromMolBlock(block)
        if molecule is not None:
            return str(Chem.MolToSmiles(molecule)), None
        molecule = Chem.MolFromMolBlock(block, sanitize=False)
        problems = () if molecule is None else Chem.DetectChemistryProblems(molecule)
    return "", problems[0].Message() if problems else "its atoms and bonds cannot be read"


def parquet_rows(file: BinaryIO, source: str) -> tuple[Row, Rows]:
    """Read a Parquet file."""
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowException
    except ImportError as error:
        raise DataError("Parquet files need pyarrow, which is not installed: pip install 'pathnn[chem]'.") from error

    def text(value: Any) -> str:
        return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)

    def rows() -> Iterator[Row]:
        try:
            table = parquet.ParquetFile(file)
            yield tuple(table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=1024):
                yield from zip(*(map(text, column.to_pylist()) for column in batch.columns), strict=True)
        except (ArrowException, OSError) as error:
            raise DataError(f"{source} is damaged or is not a Parquet file: {error}") from error

    found = rows()
    return next(found), zip(found, repeat(None))


def class_key(name: str) -> Hashable:
    """Return a key that is equal for two names of one class: the number, if they are numbers."""
    number = as_number(name)
    return name.strip() if number is None or not math.isfinite(number) else number


def class_names(values: Iterable[str]) -> tuple[str, ...]:
    """Return one name per class, the shortest; sorted as numbers if all are numbers, else as text."""
    names: dict[Hashable, str] = {}
    for value in sorted({value.strip() for value in values}, key=lambda value: (len(value), value)):
        names.setdefault(class_key(value), value)
    numbers = all(isinstance(key, float) for key in names)
    return tuple(sorted(names.values(), key=float if numbers else None))


def is_missing(value: str | None) -> bool:
    """Return whether a value names no class: it is empty or NaN."""
    return value is None or value.strip().lower() in ("", "nan")


def is_missing_number(value: str | None) -> bool:
    """Return whether a value of a column of numbers is empty, or a word for a missing number."""
    return value is None or value.strip().lower().strip("<>#") in ("", "nan", "na", "n/a", "null", "none")


def as_number(text: str) -> float | None:
    """Parse a number, maybe infinite or NaN; None for other text. 1_2 is a name, although Python reads 12."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


STANDARD_INPUT = "-"  # the name of a table that is read from standard input

FORMATS: Mapping[str, Format] = {
    ".csv": csv_rows,
    ".tsv": partial(csv_rows, separator="\t"),
    ".smi": smi_rows,
    ".sdf": sdf_rows,
    ".parquet": parquet_rows,
}
"""How to read tables, by the suffix of their files."""

LARGEST = float(np.finfo(np.float32).max)  # the largest absolute value of a target
SAMPLE = 100  # how many rows are looked at to find the column of SMILES
SMILES_NAMES = ("smiles", "canonical_smiles", "smi", "molecule", "mol", "structure")


@dataclass(frozen=True)
class Table:
    """Rows of a table as text; `problems` says, by position in `rows`, why some could not be read."""

    source: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    problems: Mapping[int, str] = field(default_factory=dict)

    def described(self, columns: Iterable[str]) -> str:
        """Return names of columns for a message; of an SDF file without properties it says that they are missing."""
        bare = file_type(Path(self.source)) == ".sdf" and len(self.columns) == 2
        return f"{list(columns)}{' (the file has no properties)' * bare}"

    def column(self, name: str) -> list[str | None]:
        """Return the values of a column; None where a row is too short."""
        if name not in self.columns:
            raise DataError(f"{self.source} has no column {name!r}; expected one of {self.described(self.columns)}.")
        if self.columns.count(name) > 1:
            raise DataError(
                f"{self.source} has {self.columns.count(name)} columns called {name!r}: rename all but one."
            )
        i = self.columns.index(name)
        return [row[i] if i < len(row) else None for row in self.rows]

    def smiles_column(self) -> str:
        """Find the column that holds SMILES: by its name, else the only one whose first values are molecules."""
        named = [column for known in SMILES_NAMES for column in self.columns if column.strip().lower() == known]
        if named:
            return named[0]
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
        good = sum(as_number(text) is None and _is_smiles(text) for text in texts)
        return good > 0 and good >= 0.9 * len(texts)

    def _known(self, column: str, missing: Callable[[str], bool] = is_missing_number) -> list[str]:
        """Return the values of a column that are not missing."""
        return [value for value in self.column(column) if value is not None and not missing(value)]

    def class_labels(self, column: str) -> tuple[str, ...]:
        """Return the names of the classes in a column; among numbers, NA, null and the like are no classes."""
        named = self._known(column)
        numbers = named and all(as_number(value) is not None for value in named)
        return class_names(named if numbers else self._known(column, is_missing))

    def is_text(self, column: str) -> bool:
        """Return whether a column has values that are not empty, and none of them is a number."""
        values = self._known(column, is_missing)
        return bool(values) and all(as_number(value) is None for value in values)

    def numeric_columns(self, *, leave_out: str) -> list[str]:
        """Return the columns, other than `leave_out`, whose values are numbers or empty."""
        names = [name for name in self.columns if self.columns.count(name) == 1 and name != leave_out]
        values = {name: self._known(name) for name in names}
        return [name for name in names if values[name] and not any(map(_number_problem, values[name]))]

    def check_decimal_commas(self, columns: Sequence[str]) -> None:
        """Raise `DataError` if the values of a column would be numbers if their commas were points."""
        for name in columns:
            values = self._known(name)
            first = next((value.strip() for value in values if "," in value), None)
            if first is not None and all(as_number(value.replace(",", ".")) is not None for value in values):
                raise DataError(
                    f"{self.source}: the column {name!r} has decimal commas ({first}): expected points "
                    f"({first.replace(',', '.')}). Save the file with decimal points."
                )

    def numbers(self, column: str) -> list[float | str]:
        """Return the numbers of a column: NaN where there is none, a text for a bad value."""
        self.check_decimal_commas([column])
        return [
            f"the descriptor {column!r} is {shorten(text)}, not a finite number"
            if text is not None and _number_problem(text)
            else as_float(text)
            for text in self.column(column)
        ]


@dataclass(frozen=True, eq=False)
class TableReader:
    """A table that is read once, from its first row to the last, in chunks."""

    source: str
    columns: Row
    rows: Rows

    def take(self, rows: int) -> Table:
        """Return the next rows, at most `rows`, as a table."""
        chunk = tuple(islice(self.rows, rows))
        problems = {i: problem for i, (_, problem) in enumerate(chunk) if problem is not None}
        return Table(self.source, self.columns, tuple(row for row, _ in chunk), problems)

    def chunks(self, rows: int) -> Iterator[Table]:
        """Yield the next rows as tables of at most `rows` rows; raise `DataError` if there are none at all."""
        table = self.take(rows)
        if not table.rows:
            raise DataError(f"{self.source} has no rows: expected at least one molecule, in a CSV after a header line.")
        while table.rows:
            yield table
            table = self.take(rows)


def file_type(path: Path) -> str:
    """Return the last suffix of a file that does not stand for a compression, in lower case."""
    return next((suffix for suffix in map(str.lower, reversed(path.suffixes)) if suffix not in COMPRESSED), "")


@contextmanager
def open_table(source: str | Path) -> Iterator[TableReader]:
    """Open a table in chunks: a file of `FORMATS`, compressed or not, else a CSV; "-" is a CSV from standard input."""
    path = Path(source).expanduser()
    if str(source) == STANDARD_INPUT:
        yield TableReader("standard input", *csv_rows(sys.stdin.buffer, "standard input"))
        return
    with _open(path) as file:
        yield TableReader(str(path), *FORMATS.get(file_type(path), csv_rows)(file, str(path)))


def read_table(source: str | Path) -> Table:
    """Read a whole table; see `open_table`."""
    with open_table(source) as reader:
        (table,) = reader.chunks(sys.maxsize)
        return table


def row_targets(values: Sequence[tuple[str, str | None]], classes: Mapping[Hashable, int]) -> list[float | str]:
    """Return the targets of a row, or positions in `classes`: NaN for a missing one, a text for a bad value."""
    if classes:
        codes = {name: None if value is None else classes.get(class_key(value)) for name, value in values}
        return [f"the target {name!r} is missing" if code is None else float(code) for name, code in codes.items()]
    if values and all(is_missing_number(value) for _, value in values):
        return [f"the target {values[0][0]!r} is missing" if len(values) == 1 else "all targets are missing"]
    problems = [_number_problem(value) for _, value in values]
    return [
        f"the target {name!r} is {problem}" if problem else as_float(value)
        for (name, value), problem in zip(values, problems, strict=True)
    ]


def as_float(value: str | None) -> float:
    """Return the number of a value; NaN if it is missing."""
    return math.nan if value is None or is_missing_number(value) else float(value)


def _number_problem(value: str | None) -> str | None:
    """Say what is wrong with a value that should be missing or a number of float32."""
    if value is None or is_missing_number(value):
        return None
    number = as_number(value)
    if number is None:
        return f"{shorten(value)}, not a number (for classes: --kind class)"
    return None if abs(number) <= LARGEST else f"{value.strip()}, not a finite number that float32 can hold"
