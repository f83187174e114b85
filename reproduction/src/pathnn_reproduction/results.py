"""Results files: one JSON line per finished run, and the frozen hash of its config."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from pathnn.files import atomic_write, locked_file, locked_folder
from pathnn.provenance import provenance

if TYPE_CHECKING:
    from pathnn.training.config import RunConfig
    from pathnn_reproduction.spec import RunSpec

V1_DEFAULTS: Mapping[str, Any] = MappingProxyType({
    "data": "", "fold": 0, "split_seed": None, "split_by": None, "smiles": None, "target": None, "kind": None,
    "skip_invalid": False, "metric": None, "model": "pathnn", "options": {}, "preset": None, "variant": "paper",
    "collection": "ap", "k": 4, "batch_size": 32, "drop_single": None, "max_entries": "auto", "epochs": 200,
    "lr": 1e-3, "weight_decay": 0.0, "patience": None, "min_lr": None, "stop_at": None, "plateau_factor": None,
    "plateau_patience": 20, "plateau_direction": "metric", "clip": None, "standardize": False, "seed": 0,
    "device": "auto", "devices": 1, "num_nodes": 1, "precision": "32-true",
})  # fmt: skip
"""The defaults of `RunConfig` when the first 1,794 lines were written. Never edit this table."""

ADDED: Mapping[str, Any] = MappingProxyType({"clean": None, "splits": None})
"""Options added to `RunConfig` later, each with the value that changes nothing. Never change a value."""

RENAMED: Mapping[str, str] = MappingProxyType({})
"""Today's name of an option of `RunConfig` -> its name in `V1_DEFAULTS` or `ADDED`."""

PLACE = ("device", "devices", "num_nodes", "max_entries")
"""Options that say where and in what pieces a run is computed, and not what is computed."""


def v1_options(config: RunConfig) -> dict[str, Any]:
    """Return the options of a config under the names that results files use.

    >>> from pathnn.training.config import RunConfig
    >>> v1_options(RunConfig(data="csl"))["lr"]
    0.001
    """
    return {RENAMED.get(name, name): value for name, value in config.to_dict().items()}


def config_hash(options: Mapping[str, Any]) -> str:
    """Hash what a run computes: the options that differ from `V1_DEFAULTS` and `ADDED`, without those of `PLACE`.

    `options` has the names of a results file, as `v1_options` and the lines of results files have them.

    >>> config_hash({"data": "csl", "device": "cpu"}) == config_hash({"data": "csl", "max_entries": 1000, "k": 4})
    True
    >>> config_hash({"data": "csl"}) == config_hash({"data": "csl", "k": 3})
    False
    """
    defaults = {**V1_DEFAULTS, **ADDED}
    chosen = {
        name: value
        for name, value in options.items()
        if name not in PLACE and (name not in defaults or value != defaults[name])
    }
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]


Line = dict[str, Any]

Key = tuple[str, str, str | None, int | None, int, int, str]
"""Identifies a run of a target: model, dataset, collection, k, fold, seed, hash of the config."""

KEYS = (
    "model", "dataset", "collection", "k", "fold", "seed", "config", "config_hash", "commit", "device", "epochs",
    "best_epoch", "val", "test", "seconds",
)  # fmt: skip
"""What every line has; `val` and `test` are in the paper's unit."""


class ResultsError(ValueError):
    """A results file that cannot be read."""


@dataclass
class Results:
    """A file of results, in memory and on disk. Several processes may add to it.

    >>> results_file = Results(Path("results/zinc.jsonl"))
    >>> len(results_file)
    0
    """

    path: Path
    lines: list[Line] = field(default_factory=list)
    _by_key: dict[Key, Line] = field(default_factory=dict, repr=False)
    _read: bytes = field(default=b"", repr=False)  # what of the file is in `lines`

    @staticmethod
    def open(path: Path) -> Results:
        """Read a file; one that does not exist is empty. A last line that was cut off by a kill is left out."""
        results_file = Results(path)
        if path.exists():
            with path.open("rb") as file:
                results_file._catch_up(file)
        return results_file

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
                raise ResultsError(f"{self.path} cannot be added to: {error.strerror}.") from error
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
                raise ResultsError(
                    f"{self.path} is damaged in line {number}: {error} Fix or remove that line."
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
    """Raise `ResultsError` unless a line is whole: all keys, plain numbers, and a hash that fits its config."""
    missing = [key for key in KEYS if key not in line]
    if missing:
        raise ResultsError(f"a line of results lacks {', '.join(missing)}.")
    for key in ("val", "test", "seconds", "epochs", "best_epoch", "fold", "seed"):
        if isinstance(line[key], bool) or not isinstance(line[key], int | float) or not math.isfinite(line[key]):
            raise ResultsError(f"{key}={line[key]!r}: expected a finite number.")
    if not isinstance(line["config"], dict):
        raise ResultsError(f"config={line['config']!r}: expected the options of a run.")
    if config_hash(line["config"]) != line["config_hash"]:
        raise ResultsError(f"config_hash={line['config_hash']} does not belong to the config beside it.")


Row = dict[str, Any]
RowKey = TypeVar("RowKey", bound=Mapping[str, Any])


def read_rows(path: Path) -> list[Row]:
    """The rows of a result file, none where there is no file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: expected a file for results, such as {path / 'results.json'}.")
    if not path.exists():
        return []
    try:
        return list(json.loads(path.read_text())["rows"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} holds no results that can be read ({error}). Fix it, or give another file."
        ) from error


def add_row(path: Path, key: Mapping[str, Any], result: Mapping[str, Any], *, device: str = "cpu") -> Row:
    """Add `{**key, **result}` with commit, time, device and versions to a file; an old row with that key goes.

    Several processes may add to one file.
    """
    row = {**key, **result, **provenance(device)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked_folder(path.parent):
        rows = [old for old in read_rows(path) if not has_key(old, key)]
        with atomic_write(path) as file:
            file.write((json.dumps({"rows": [*rows, row]}, indent=1) + "\n").encode())
    return row


def missing(path: Path, keys: Sequence[RowKey]) -> list[RowKey]:
    """Those of `keys` that no row of the file has.

    >>> missing(Path("no such file"), [{"k": 1}])
    [{'k': 1}]
    """
    rows = read_rows(path)
    return [key for key in keys if not any(has_key(row, key) for row in rows)]


def has_key(row: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    """Whether a row has all that the key says.

    >>> has_key({"k": 1, "seconds": 3.0}, {"k": 1})
    True
    """
    return all(name in row and row[name] == value for name, value in key.items())


def write_result(path: Path, result: dict[str, Any], *, device: str = "cpu") -> None:
    """Write `result` with its provenance as JSON, atomically; `device` is where it was measured."""
    with atomic_write(path) as file:
        file.write((json.dumps({**provenance(device), **result}, indent=1) + "\n").encode())
