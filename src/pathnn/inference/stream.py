"""Predict for files: tables in chunks, so that memory does not grow with a file, and other data as a whole."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pathnn.data.errors import BadRow, BadRowsError
from pathnn.data.load import find_data, load_data
from pathnn.data.readers.pool import MoleculePool, MoleculesRead, reader_processes
from pathnn.data.readers.table import SAMPLE, STANDARD_INPUT, Rows, Table, TableReader, open_table
from pathnn.data.task import Task
from pathnn.files import atomic_write, check_ending, csv_text, locked_file
from pathnn.inference.intervals import checksum
from pathnn.inference.predictor import ERROR, Columns, Predictor, free_name
from pathnn.training.ensemble import Ensemble

CHUNK_ROWS = 2_048  # rows that are read, predicted and written at once
AHEAD = 4  # chunks whose molecules are read while the network computes
EVERY_ROW = range(sys.maxsize)

Reading = Callable[[], MoleculesRead]


class PredictionTable(NamedTuple):
    """Rows with the columns `predicted`; `digest`, of a chunk, is a checksum of the header and all rows to its end."""

    header: list[str]
    rows: list[list[Any]]
    predicted: tuple[str, ...]
    bad: tuple[BadRow, ...]
    digest: str = ""


def is_table(data: str) -> bool:
    """Return whether data is a table, which can be read in chunks; "-" is standard input."""
    return data == STANDARD_INPUT or find_data(data).kind == "table"


def predict_table(
    trained: Ensemble | Predictor, data: str, *, smiles: str | None = None, strict: bool = False, device: str = "cpu"
) -> PredictionTable:
    """Predict for data, and return its columns with the predictions and a column of errors.

    A row that cannot be read has an empty prediction; with `strict`, it raises `BadRowsError`. Graphs that are not in a
    table have a row with their number and their name, if they have names.

    ```python
    table = predict_table(load_runs(Path("run")), "new.csv")
    print(table.header, table.rows[0])
    ```
    """
    predictor = trained if isinstance(trained, Predictor) else Predictor(trained, device)
    if is_table(data):
        chunks = list(predict_rows(predictor, data, smiles=smiles, strict=strict))
        rows, bad = [row for chunk in chunks for row in chunk.rows], [one for chunk in chunks for one in chunk.bad]
        return chunks[0]._replace(rows=rows, bad=tuple(bad))
    task: Task | None
    try:
        task = load_data(data, targets=[], skip_invalid=True, vocabulary=predictor.trained.signature.vocabulary)
        skipped = task.skipped
    except BadRowsError as error:
        task, skipped = None, error.rows
    total = len(skipped) + (0 if task is None else len(task.graphs))
    if strict and skipped:
        raise BadRowsError(data, skipped, total, "leave out --strict")
    predicted = predictor.predict_task(task)
    names = None if task is None else task.graphs.names
    columns: Columns = predicted if names is None else {"name": [*names], **predicted}
    reasons = {one.row - 1: one.reason for one in skipped}
    values, empty = iter(zip(*columns.values(), strict=True)), [""] * len(columns)
    rows = [[i, *(empty if i in reasons else next(values)), reasons.get(i, "")] for i in range(total)]
    return PredictionTable(["graph", *columns, ERROR], rows, tuple(predicted), skipped)


def predict_rows(
    predictor: Predictor, data: str, *, smiles: str | None = None, strict: bool = False, part: tuple[int, int] = (1, 1)
) -> Iterator[PredictionTable]:
    """Yield the rows of a table with predictions, in chunks; the first has the header, and no rows."""
    with open_table(data) as reader:
        stream = PredictionStream(predictor, reader, smiles=smiles, strict=strict)
        yield PredictionTable(stream.header, [], stream.predicted, ())
        yield from stream.chunks(part_rows(data, part))


class PredictionStream:
    """Predictions for a table, chunk by chunk, while other processes read the molecules of the next chunks."""

    def __init__(
        self, predictor: Predictor, reader: TableReader, *, smiles: str | None = None, strict: bool = False
    ) -> None:
        self.predictor, self.strict = predictor, strict
        first = list(islice(reader.rows, SAMPLE))  # the values of a column say whether it holds SMILES
        some = next(replace(reader, rows=iter(first)).chunks(SAMPLE))
        self.reader = replace(reader, rows=chain(first, reader.rows))
        self.smiles = smiles or predictor.trained.config.smiles or some.smiles_column()
        some.column(self.smiles)
        if (described := predictor.reader.descriptors) is not None:
            described.checked(some)  # before anything is written
        *predicted, _ = predictor.predict_molecules([], MoleculesRead([], {}))
        self.predicted = tuple(predicted)
        self.header = [*reader.columns, *(free_name(name, reader.columns) for name in (*predicted, ERROR))]

    def chunks(self, rows: range = EVERY_ROW, *, known: str | None = None) -> Iterator[PredictionTable]:
        """Yield some rows; `known` is the digest that the chunk before them had, to refuse a file that changed."""
        tables = self._tables(rows, known)
        first = list(islice(tables, 1))
        processes = reader_processes(len(first[0][1].rows) if first else 0)
        waiting: deque[tuple[int, Table, str, Reading]] = deque()
        described = self.predictor.reader.descriptors
        with MoleculePool(self.predictor.reader, processes) as pool:
            for before, read, digest in chain(first, tables):
                table = read if described is None else described.checked(read)
                waiting.append((before, table, digest, pool.read(self._texts(table))))
                if len(waiting) > AHEAD:
                    yield self._predict(*waiting.popleft())
            while waiting:
                yield self._predict(*waiting.popleft())

    def _tables(self, rows: range, known: str | None) -> Iterator[tuple[int, Table, str]]:
        """Yield how many rows are before a chunk, the chunk, and the digest to its end."""
        digest = hashlib.sha256(repr(self.reader.columns).encode())

        def digested() -> Rows:
            for row, problem in self.reader.rows:
                digest.update(repr(row).encode())
                yield row, problem

        read = digested()
        before = sum(1 for _ in islice(read, rows.start))
        if known not in (None, digest.hexdigest()):
            raise ValueError(
                f"{self.reader.source} has changed since its prediction was stopped: give the data as it was, or start "
                "again without --resume."
            )
        reader = replace(self.reader, rows=islice(read, len(rows)))
        while (table := reader.take(CHUNK_ROWS)).rows:
            yield before, table, digest.hexdigest()
            before += len(table.rows)

    def _texts(self, table: Table) -> list[str | None]:
        return [None if i in table.problems else text for i, text in enumerate(table.column(self.smiles))]

    def _predict(self, before: int, table: Table, digest: str, wait: Reading) -> PredictionTable:
        read = wait()
        problems = read.problems | dict(table.problems)
        texts = self._texts(table)
        bad = tuple(BadRow(before + i + 1, problems[i], texts[i] or "") for i in sorted(problems))
        if self.strict and bad:
            raise BadRowsError(self.reader.source, bad, before + len(table.rows), "leave out --strict")
        columns = self.predictor.predict_molecules(texts, read._replace(problems=problems), table)
        width = len(table.columns)
        rows = [
            [*row[:width], *[""] * (width - len(row)), *("" if value is None else value for value in values)]
            for row, values in zip(table.rows, zip(*columns.values(), strict=True), strict=True)
        ]
        return PredictionTable(self.header, rows, self.predicted, bad, digest)


@dataclass(frozen=True)
class Written:
    """What was written of a file of predictions: chunks, rows, bad rows, the first of them, bytes, and the digest."""

    chunks: int = 0
    rows: int = 0
    bad: int = 0
    first_bad: str | None = None
    size: int = 0
    digest: str | None = None

    def add(self, chunk: PredictionTable, size: int = 0) -> Written:
        """Return the sums after one more chunk, with which the file has `size` bytes."""
        first = self.first_bad or (str(chunk.bad[0]) if chunk.bad else None)
        counts = (self.chunks + 1, self.rows + len(chunk.rows), self.bad + len(chunk.bad))
        return Written(*counts, first, size, chunk.digest)


def predict_file(
    predictor: Predictor,
    data: str,
    out: Path,
    *,
    smiles: str | None = None,
    strict: bool = False,
    resume: bool = False,
    part: tuple[int, int] = (1, 1),
    report: Callable[[PredictionTable], None] | None = None,
) -> Written:
    """Predict for a table (a file, or "-" for standard input), and write a CSV, compressed if it ends in `.gz`.

    Until it is complete, the file is called `OUT.part`, and `OUT.part.json` says how much of it is valid: with
    `resume`, a stopped call continues there. It is refused if the model, the data or an option has changed.
    `part=(3, 100)` is the third of a hundred parts of the rows; the parts in order, without the headers of all but the
    first, are the whole, up to the rounding of other batches. `report` is called with each chunk.

    ```python
    predict_file(Predictor("run"), "new.csv", Path("predictions.csv.gz"))
    ```
    """
    check_ending(out, ".csv", ".csv.gz")
    out.parent.mkdir(parents=True, exist_ok=True)
    partial, state = (out.with_name(f"{out.name}.{suffix}") for suffix in ("part", "part.json"))
    with open_table(data) as reader:
        stream = PredictionStream(predictor, reader, smiles=smiles, strict=strict)
        rows, job = part_rows(data, part), _describe(stream, data, part)
        done = _read_state(state, job) if resume and state.exists() else Written()
        try:
            with locked_file(partial, wait=False) as file:
                if file.seek(0, os.SEEK_END) < done.size:  # the file was lost
                    done = Written()
                _write(file, [] if done.size else [stream.header], out, done.size)
                for chunk in stream.chunks(range(rows.start + done.rows, rows.stop), known=done.digest):
                    done = done.add(chunk, _write(file, chunk.rows, out))
                    with atomic_write(state) as text:
                        text.write(json.dumps({"job": job, "written": asdict(done)}).encode())
                    if report is not None:
                        report(chunk)
        except BlockingIOError:
            raise ValueError(f"another process writes {partial}: wait for it, or give another name.") from None
        except BaseException as error:
            if not done.chunks or isinstance(error, BadRowsError):
                partial.unlink(missing_ok=True)
                state.unlink(missing_ok=True)
            raise
    partial.replace(out)
    state.unlink(missing_ok=True)
    return done


def _describe(stream: PredictionStream, data: str, part: tuple[int, int]) -> dict[str, Any]:
    """Return what must not change until a file is complete."""
    return {
        "the model": checksum(stream.predictor.trained),
        "--interval": stream.predictor.interval,
        "the size of the data": None if data == STANDARD_INPUT else Path(data).expanduser().stat().st_size,
        "the SMILES column": stream.smiles,
        "the columns": stream.header,
        "--part": list(part),
    }


def _read_state(state: Path, job: dict[str, Any]) -> Written:
    try:
        known = json.loads(state.read_bytes())
        changed = [name for name, value in job.items() if known["job"].get(name) != value]
        done = Written(**known["written"])
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{state} is damaged ({error}): start again without --resume.") from error
    if changed:
        raise ValueError(
            f"the prediction that was stopped cannot be resumed, since this has changed: {', '.join(changed)}. Restore "
            "it, or start again without --resume."
        )
    return done


def _write(file: BinaryIO, rows: list[list[Any]], out: Path, size: int | None = None) -> int:
    """Append rows, after cutting the file to `size`, and return its size. Compressed chunks can be concatenated."""
    if size is not None:
        file.truncate(size)
    file.write(csv_bytes(rows, out))
    file.flush()
    os.fsync(file.fileno())
    return file.seek(0, os.SEEK_END)


def csv_bytes(rows: Iterable[Sequence[Any]], out: Path) -> bytes:
    """Return rows as they are in the file `out`."""
    text = csv_text(rows).encode()
    return gzip.compress(text, mtime=0) if text and out.suffix.lower() == ".gz" else text


def count_rows(data: str) -> int:
    """Return how many rows a table has."""
    with open_table(data) as reader:
        return sum(len(chunk.rows) for chunk in reader.chunks(CHUNK_ROWS))


def part_rows(data: str, part: tuple[int, int]) -> range:
    """Return the rows of a part of a table, counted from 0; part (3, 100) is the third of a hundred."""
    number, parts = part
    if not 1 <= number <= parts:
        raise ValueError(f"part={number}/{parts} does not exist: expected a part from 1 to {parts}.")
    if parts == 1:
        return EVERY_ROW
    if data == STANDARD_INPUT:
        raise ValueError("a part of standard input cannot be found before all of it is read: give a file.")
    rows = count_rows(data)
    return range(rows * (number - 1) // parts, rows * number // parts)
