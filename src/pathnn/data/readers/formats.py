"""Read the rows of CSV, `.smi`, SDF and Parquet files, one after the other."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, takewhile
from typing import Any, BinaryIO, NamedTuple

from pathnn.data.errors import DataError
from pathnn.data.readers.text import read_lines

Row = tuple[str, ...]

Rows = Iterator[tuple[Row, str | None]]
"""Rows, and what is wrong with those that could not be read."""

Format = Callable[[BinaryIO, str], tuple[Row, Rows]]
"""Return the header and the rows of an open file; the text is its name in errors."""

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a |"}


def csv_rows(file: BinaryIO, source: str, separator: str | None = None) -> tuple[Row, Rows]:
    """Read a CSV; None: find out which of `SEPARATORS` separates its columns."""
    lines = read_lines(file, source)
    head = list(islice(lines, 5))
    named = re.fullmatch(r"sep=(.)\s*", head[0], re.I) if head else None  # as Excel writes it
    if named is not None:
        separator, head = named[1], head[1:]
    mark = separator or find_separator(head)
    parsed = _parsed(chain(head, lines), source, mark)
    header = next(parsed, ())
    return header, _checked(parsed, source, len(header), SEPARATORS.get(mark, repr(mark)))


def find_separator(head: Sequence[str]) -> str:
    """Find the separator of the columns from the first lines of a CSV.

    A column called smiles counts first, then as many columns in the first row as in the header, then their number.

    >>> find_separator(["smiles;log S, 25 C\\n", "CCO;-0,5\\n"]), find_separator(["smiles\\n", "C\\n"])
    (';', ',')
    """

    def rank(mark: str) -> tuple[bool, bool, int]:
        try:
            header, *rows = [row for row in csv.reader(head, delimiter=mark) if row][:2] or [[]]
        except csv.Error:
            return False, False, 0
        names = {name.strip().lower() for name in header}
        return "smiles" in names, bool(rows) and len(rows[0]) == len(header), len(header)

    return max(SEPARATORS, key=rank)


def _parsed(lines: Iterator[str], source: str, separator: str) -> Iterator[Row]:
    """Yield the lines of a CSV that are not empty."""
    # strict: else a quote that is not closed swallows the rows after it
    reader = csv.reader(lines, strict=True, delimiter=separator)
    try:
        yield from (tuple(row) for row in reader if row)
    except csv.Error as error:
        raise DataError(
            f"{source} is not a CSV file: {error}, in or before line {reader.line_num}. A value that begins with a "
            'quote (") has to end with one.'
        ) from error


def _checked(rows: Iterator[Row], source: str, width: int, separator: str) -> Rows:
    """Refuse a row that has more values than the header."""
    for number, row in enumerate(rows, start=1):
        if any(value.strip() for value in row[width:]):
            raise DataError(
                f"{source}, row {number}: {len(row)} values, but the header has {width}. Put values that contain "
                f'{separator} into "quotes".'
            )
        yield row, None


def smi_rows(file: BinaryIO, source: str) -> tuple[Row, Rows]:
    """Read lines of a SMILES and a name. A first word that is no molecule begins a line with the names of columns."""
    lines = (line.strip() for line in read_lines(file, source) if line.strip())
    first = next(lines, "")
    word = first.split(maxsplit=1)[0] if first else ""
    if not re.fullmatch("#?[A-Za-z_]+", word) or is_smiles(word):
        return ("smiles", "name"), (((*line.split(maxsplit=1), "")[:2], None) for line in chain([first], lines) if line)
    mark = "\t" if "\t" in first else None
    header = [name.strip() for name in first.lstrip("#").split(mark)]
    return tuple(header), ((tuple(line.split(mark, len(header) - 1)), None) for line in lines)


def is_smiles(text: str) -> bool:
    """Return whether rdkit reads a text as a molecule."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise DataError("SMILES need rdkit, which is not installed: pip install 'pathnn[mol]'.") from error

    quiet = rdBase.BlockLogs()
    try:
        return Chem.MolFromSmiles(text) is not None
    finally:
        del quiet


class Record(NamedTuple):
    """A record of an SDF file: its molecule as lines, and its properties."""

    block: list[str]
    properties: dict[str, str]


def sdf_rows(file: BinaryIO, source: str) -> tuple[Row, Rows]:
    """Read an SDF file twice, for the names of its properties and for its records.

    The columns are smiles, written from the molecule, name, the first line of a record, and the properties.
    """
    names = dict.fromkeys(name for record in sdf_records(read_lines(file, source)) for name in record.properties)
    file.seek(0)
    rest = [name for name in names if name not in ("smiles", "name")]

    def row(record: Record) -> tuple[Row, str | None]:
        smiles, problem = _record_smiles(record)
        given = {"name": record.block[0].strip(), **record.properties} if record.block else record.properties
        return (smiles, *(given.get(name, "") for name in ("name", *rest))), problem

    return ("smiles", "name", *rest), map(row, sdf_records(read_lines(file, source)))


def sdf_records(lines: Iterator[str]) -> Iterator[Record]:
    """Yield the records of an SDF file.

    >>> text = "ethanol\\n\\n\\nM  END\\n> <logS>\\n1.5\\n\\n$$$$\\n"
    >>> next(sdf_records(iter(text.splitlines(keepends=True))))
    Record(block=['ethanol', '', '', 'M  END'], properties={'logS': '1.5'})
    """
    record: list[str] = []
    for line in chain(lines, ["$$$$"]):
        if line.rstrip() != "$$$$":
            record.append(line.rstrip("\r\n"))
            continue
        if any(text.strip() for text in record):
            yield _record(record)
        record = []


def _record(lines: list[str]) -> Record:
    start = next((i for i, line in enumerate(lines) if line.startswith(">")), len(lines))
    end = next((i + 1 for i, line in enumerate(lines) if line.startswith("M  END")), start)
    properties, rest = {}, iter(lines[end:])
    for line in rest:
        if line.startswith(">") and "<" in line:
            name = line.split("<", 1)[1].rsplit(">", 1)[0].strip()
            properties[name] = "\n".join(takewhile(str.strip, rest)).strip()
    return Record(lines[:end], properties)


def _record_smiles(record: Record) -> tuple[str, str | None]:
    """Return the SMILES of a record, or "" and what is wrong with it."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise DataError("SDF files need rdkit, which is not installed: pip install 'pathnn[mol]'.") from error

    quiet = rdBase.BlockLogs()
    problems: Any = ()
    try:
        block = "\n".join(record.block)
        molecule: Any = Chem.MolFromMolBlock(block)
        if molecule is not None:
            return str(Chem.MolToSmiles(molecule)), None
        molecule = Chem.MolFromMolBlock(block, sanitize=False)
        problems = () if molecule is None else Chem.DetectChemistryProblems(molecule)
    except (RuntimeError, ValueError):
        pass  # rdkit cannot even parse it
    finally:
        del quiet
    name = record.block[0].strip() if record.block else ""
    reason = problems[0].Message() if problems else "its atoms and bonds cannot be read"
    return "", f"{name!r} is no molecule: {reason}" if name else f"no molecule: {reason}"


def parquet_rows(file: BinaryIO, source: str) -> tuple[Row, Rows]:
    """Read a Parquet file."""
    try:
        import pyarrow.parquet as parquet
        from pyarrow import ArrowException
    except ImportError as error:
        raise DataError("Parquet files need pyarrow, which is not installed: pip install 'pathnn[chem]'.") from error
    try:
        table = parquet.ParquetFile(file)
    except (ArrowException, OSError) as error:
        raise DataError(f"{source} is damaged or is not a Parquet file: {error}") from error

    def rows() -> Rows:
        try:
            for batch in table.iter_batches(batch_size=1024):
                columns = [[_text(value) for value in column.to_pylist()] for column in batch.columns]
                yield from ((row, None) for row in zip(*columns, strict=True))
        except (ArrowException, OSError) as error:
            raise DataError(f"{source} is damaged: {error}") from error

    return tuple(table.schema_arrow.names), rows()


def _text(value: Any) -> str:
    """Return a value of a Parquet file as text.

    >>> _text(None), _text(True), _text(0.5), _text("C")
    ('', '1', '0.5', 'C')
    """
    return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)
