"""The results of a target: one JSON line per finished run, only ever added to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathnn.experiments.planned import Key, PlannedRun, config_hash

Line = dict[str, Any]

KEYS = (
    "model", "dataset", "collection", "k", "fold", "seed", "config", "config_hash", "commit", "device", "epochs",
    "best_epoch", "val", "test", "seconds",
)  # fmt: skip
"""What every line has; `val` and `test` are in the paper's unit."""


class LedgerError(ValueError):
    """A results file that cannot be read."""


@dataclass
class Ledger:
    """A file of results, in memory and on disk. What other processes add is seen when it is opened again.

    >>> ledger = Ledger(Path("results/zinc.jsonl"))
    >>> len(ledger)
    0
    """

    path: Path
    lines: list[Line] = field(default_factory=list)
    _by_key: dict[Key, Line] = field(default_factory=dict, repr=False)

    @staticmethod
    def open(path: Path) -> Ledger:
        """Read a file; one that does not exist is empty. A last line that was cut off by a kill is left out."""
        ledger = Ledger(path)
        for line in _read(path):
            ledger._take(line)
        return ledger

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def find(self, run: PlannedRun) -> Line | None:
        """The line of a run, or None if it has not been done."""
        return self._by_key.get(run.key)

    def add(self, line: Line) -> None:
        """Add a line, on disk when this returns."""
        missing = [key for key in KEYS if key not in line]
        if missing:
            raise LedgerError(f"a result without {', '.join(missing)} cannot be added to {self.path}.")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _lock(file)
            _cut_torn_line(file)
            file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(line)

    def _take(self, line: Line) -> None:
        self.lines.append(line)
        key = (line["model"], line["dataset"], line["collection"], line["k"], line["fold"], line["seed"])
        self._by_key[(*key, line["config_hash"])] = line


def check_line(line: Line) -> None:
    """Raise `LedgerError` unless a line is whole: all keys, plain numbers, and a hash that fits its config."""
    missing = [key for key in KEYS if key not in line]
    if missing:
        raise LedgerError(f"a line of results lacks {', '.join(missing)}.")
    for key in ("val", "test", "seconds", "epochs", "best_epoch", "fold", "seed"):
        if isinstance(line[key], bool) or not isinstance(line[key], int | float):
            raise LedgerError(f"{key}={line[key]!r}: expected a number.")
    if config_hash(line["config"]) != line["config_hash"]:
        raise LedgerError(f"config_hash={line['config_hash']} does not belong to the config beside it.")


def _read(path: Path) -> Iterator[Line]:
    if not path.exists():
        return
    for number, text in enumerate(path.read_text().splitlines(keepends=True), start=1):
        if not text.endswith("\n"):
            return
        try:
            line = json.loads(text)
            check_line(line)
        except (ValueError, TypeError) as error:
            raise LedgerError(f"{path} is damaged in line {number}: {error} Mend or remove that line.") from error
        yield line


def _lock(file: Any) -> None:
    """Keep another process from adding at the same moment; the lock goes with the file's closing."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    fcntl.flock(file, fcntl.LOCK_EX)


def _cut_torn_line(file: Any) -> None:
    """Remove what follows the last line end: the beginning of a line that a kill cut off."""
    file.seek(0, os.SEEK_END)
    size = file.tell()
    if size == 0:
        return
    file.seek(max(size - 65536, 0))
    tail = file.read()
    if not tail.endswith(b"\n"):
        file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)
