"""The results of a target: one JSON line per finished run, only ever added to."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pathnn.files import locked_file
from pathnn.training.config import RunConfig
from pathnn_reproduction.frozen_hash import config_hash, v1_options
from pathnn_reproduction.planned import Key, RunSpec

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
    """A file of results, in memory and on disk. Several processes may add to it.

    >>> ledger = Ledger(Path("results/zinc.jsonl"))
    >>> len(ledger)
    0
    """

    path: Path
    lines: list[Line] = field(default_factory=list)
    _by_key: dict[Key, Line] = field(default_factory=dict, repr=False)
    _read: bytes = field(default=b"", repr=False)  # what of the file is in `lines`

    @staticmethod
    def open(path: Path) -> Ledger:
        """Read a file; one that does not exist is empty. A last line that was cut off by a kill is left out."""
        ledger = Ledger(path)
        if path.exists():
            with path.open("rb") as file:
                ledger._catch_up(file)
        return ledger

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def find(self, run: RunSpec) -> Line | None:
        """The line of a run, or None if it has not been done."""
        return self._by_key.get(run.key)

    def add(self, line: Line) -> None:
        """Add a line, on disk when this returns; a run that another process has added meanwhile is left out."""
        check_line(line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked() as file:
            self._catch_up(file)
            if line_key(line) in self._by_key:
                return
            file.truncate(len(self._read))  # what a kill has left of a line
            new = json.dumps(line, allow_nan=False).encode() + b"\n"
            new = b"\n" + new if self._read and not self._read.endswith(b"\n") else new
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
            self._read += new
        self._take(line)

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """The file, while no other process adds to it."""
        with ExitStack() as lock:
            try:
                file = lock.enter_context(locked_file(self.path))
            except OSError as error:
                raise LedgerError(f"{self.path} cannot be added to: {error.strerror}.") from error
            yield file

    def _catch_up(self, file: BinaryIO) -> None:
        """Take in the whole lines that the file has more than we do; all anew if someone has changed what we read."""
        file.seek(0)
        content = file.read()
        if not content.startswith(self._read):
            self.lines.clear()
            self._by_key.clear()
            self._read = b""
        taken = len(self._read)
        try:
            for text in content[taken:].splitlines(keepends=True):
                if text.strip():
                    self._take(_checked(text))
                taken += len(text)
        except (ValueError, TypeError) as error:
            if content[taken:].count(b"\n"):  # else the last line, which a kill has cut off
                number = content[:taken].count(b"\n") + 1
                raise LedgerError(
                    f"{self.path} is damaged in line {number}: {error} Mend or remove that line."
                ) from error
        finally:
            self._read = content[:taken]

    def _take(self, line: Line) -> None:
        self.lines.append(line)
        self._by_key[line_key(line)] = line


def _checked(text: bytes) -> Line:
    line: Line = json.loads(text)
    check_line(line)
    return line


def result_line(planned: RunSpec, config: RunConfig, result: dict[str, Any]) -> Line:
    """The line of a finished run."""
    options = v1_options(config)
    return {
        "target": planned.target,
        "model": planned.model,
        "dataset": planned.dataset,
        "collection": planned.collection,
        "k": planned.k,
        "fold": planned.fold,
        "seed": planned.seed,
        "grid": planned.grid,
        "val": result["val_score"],
        "test": result["test_score"],
        **{name: result[name] for name in ("metric", "epochs", "best_epoch", "stopped", "seconds", "parameters")},
        **{name: result[name] for name in ("device", "commit", "time", "versions")},
        "together": result.get("together", 1),
        **({"legs": result["history"]} if "history" in result else {}),
        "config": options,
        "config_hash": config_hash(options),
    }


def line_key(line: Line) -> Key:
    """What tells a run apart from the others of its target; see `RunSpec.key`."""
    return (
        line["model"], line["dataset"], line["collection"], line["k"], line["fold"], line["seed"],
        line["config_hash"],
    )  # fmt: skip


def check_line(line: Line) -> None:
    """Raise `LedgerError` unless a line is whole: all keys, plain numbers, and a hash that fits its config."""
    missing = [key for key in KEYS if key not in line]
    if missing:
        raise LedgerError(f"a line of results lacks {', '.join(missing)}.")
    for key in ("val", "test", "seconds", "epochs", "best_epoch", "fold", "seed"):
        if isinstance(line[key], bool) or not isinstance(line[key], int | float) or not math.isfinite(line[key]):
            raise LedgerError(f"{key}={line[key]!r}: expected a finite number.")
    if not isinstance(line["config"], dict):
        raise LedgerError(f"config={line['config']!r}: expected the options of a run.")
    if config_hash(line["config"]) != line["config_hash"]:
        raise LedgerError(f"config_hash={line['config_hash']} does not belong to the config beside it.")
