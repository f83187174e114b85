"""Results files: one JSON line per finished run, and the frozen hash of its config."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from pathnn.device import device_name, resolve
from pathnn.files import atomic_write, locked_file
from pathnn.provenance import commit, versions

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
"""The defaults of `RunConfig` when the first 1,794 rows were written. Never edit this table."""

ADDED: Mapping[str, Any] = MappingProxyType({
    "optimizer": "adam", "schedule": "plateau", "warmup": 0, "ema": None, "loss": None, "class_weights": False,
    "clean": None, "splits": None, "folds": None, "descriptors": None, "calibration": None,
    "max_paths_per_source": None, "redraw": False, "logger": None, "kernel": None, "keep": "best",
})  # fmt: skip
"""Options added to `RunConfig` later, each with the value that changes nothing. Never change a value."""

RENAMED: Mapping[str, str] = MappingProxyType({})
"""Today's name of an option of `RunConfig` -> its name in `V1_DEFAULTS` or `ADDED`."""

PLACE = ("device", "devices", "num_nodes", "max_entries")
"""Options that say where a run is computed and in what pieces, not what is computed."""


def v1_options(config: RunConfig) -> dict[str, Any]:
    """Return the options of a config under the names that results files use.

    >>> from pathnn.training.config import RunConfig
    >>> v1_options(RunConfig(data="csl"))["lr"]
    0.001
    """
    return {RENAMED.get(name, name): value for name, value in config.to_dict().items()}


def config_hash(options: Mapping[str, Any]) -> str:
    """Hash the options that differ from `V1_DEFAULTS` and `ADDED`, without those of `PLACE`.

    `options` has the names that results files use (`v1_options`).

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


Row = dict[str, Any]
"""A line of a results file."""

TRAINED = (
    "model", "dataset", "collection", "k", "fold", "seed", "config", "config_hash", "commit", "device", "epochs",
    "best_epoch", "val", "test", "seconds",
)  # fmt: skip
"""The keys that every row of a training run has; `val` and `test` are in the paper's unit."""


class ResultsError(ValueError):
    """A results file that cannot be read or written."""


@dataclass
class Results:
    """A results file, in memory and on disk. Several processes may add rows to it.

    >>> len(Results(Path("results/zinc.jsonl")))
    0
    """

    path: Path
    rows: list[Row] = field(default_factory=list)
    _indexes: dict[tuple[str, ...], dict[tuple[Any, ...], Row]] = field(default_factory=dict, repr=False)
    _read: bytes = field(default=b"", repr=False)  # the part of the file that is in `rows`

    @staticmethod
    def open(path: Path) -> Results:
        """Read a file. A file that does not exist is empty; a last line that a kill cut off is left out."""
        results = Results(path)
        if path.exists():
            with path.open("rb") as file:
                results._catch_up(file)
        return results

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def find(self, key: Mapping[str, Any]) -> Row | None:
        """Return the row with these values, or None."""
        names = tuple(key)
        if names not in self._indexes:
            self._indexes[names] = {_values(row, names): row for row in self.rows}
        return self._indexes[names].get(tuple(key.values()))

    def add(self, row: Row, key: Mapping[str, Any]) -> None:
        """Write a row to disk, unless another process has added one with the same key."""
        check_row(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with locked_file(self.path) as file:
                self._catch_up(file)
                if self.find(key) is not None:
                    return
                file.truncate(len(self._read))  # what a kill left of a line
                new = json.dumps(row, allow_nan=False).encode() + b"\n"
                new = b"\n" + new if self._read and not self._read.endswith(b"\n") else new
                file.write(new)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ResultsError(f"{self.path} cannot be written: {error.strerror}.") from error
        self._read += new
        self._take(row)

    def _catch_up(self, file: BinaryIO) -> None:
        """Read the rows that the file has more than we do; read all again if the rest was changed."""
        file.seek(0)
        content = file.read()
        if not content.startswith(self._read):
            self.rows.clear()
            self._indexes.clear()
            self._read = b""
        taken = len(self._read)
        try:
            for text in content[taken:].splitlines(keepends=True):
                if text.strip():
                    row = json.loads(text)
                    check_row(row)
                    self._take(row)
                taken += len(text)
        except (ValueError, TypeError) as error:
            if content[taken:].count(b"\n"):  # else it is the last line, which a kill cut off
                number = content[:taken].count(b"\n") + 1
                raise ResultsError(
                    f"{self.path} is damaged in line {number}: {error} Fix or remove that line."
                ) from error
        finally:
            self._read = content[:taken]

    def _take(self, row: Row) -> None:
        self.rows.append(row)
        for names, index in self._indexes.items():
            index[_values(row, names)] = row


def _values(row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names)


def check_row(row: Row) -> None:
    """Raise `ResultsError` unless a row is complete: all keys, finite numbers, and a hash that fits its config."""
    if not isinstance(row, dict):
        raise ResultsError(f"{str(row)[:40]!r} is not a row: expected a JSON object.")
    trained = "target" in row or "config" in row
    missing = [key for key in (TRAINED if trained else ("commit", "device", "time")) if key not in row]
    if missing:
        raise ResultsError(f"the row lacks {', '.join(missing)}.")
    if not trained:
        return
    for key in ("val", "test", "seconds", "epochs", "best_epoch", "fold", "seed"):
        if isinstance(row[key], bool) or not isinstance(row[key], int | float) or not math.isfinite(row[key]):
            raise ResultsError(f"{key}={row[key]!r}: expected a finite number.")
    if not isinstance(row["config"], dict):
        raise ResultsError(f"config={row['config']!r}: expected the options of a run.")
    if config_hash(row["config"]) != row["config_hash"]:
        raise ResultsError(f"config_hash={row['config_hash']} does not belong to the config next to it.")


def trained_row(spec: RunSpec, config: RunConfig, result: Mapping[str, Any]) -> Row:
    """Return the row of a training run; rows up to commit d1f84e5 may also have `together` and `legs`."""
    options = v1_options(config)
    copied = ("metric", "epochs", "best_epoch", "stopped", "seconds", "parameters")
    return {
        "target": spec.target,
        **{name: value for name, value in spec.key.items() if name != "config_hash"},
        "grid": spec.grid,
        "val": result["val_score"],
        "test": result["test_score"],
        **{name: result[name] for name in (*copied, "device", "commit", "time", "versions")},
        "config": options,
        "config_hash": config_hash(options),
    }


@cache
def loaded_commit() -> str | None:
    """Return the commit of the code that this process has loaded; the first call must be before the tree changes."""
    return commit()


def provenance(device: str = "cpu") -> dict[str, Any]:
    """Return commit, time, device and versions of a computation on a device (see `pathnn.device.resolve`)."""
    chosen = resolve(device)
    return {
        "commit": loaded_commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device_name(chosen) if chosen.type == "cuda" else f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": versions(),
    }


def measured_row(spec: RunSpec, result: Mapping[str, Any], *, device: str = "cpu") -> Row:
    """Return the row of a run that trains nothing: its key, its result, and where and when it was computed."""
    return {**spec.key, **result, **provenance(device)}


def with_other_workloads(path: Path, result: dict[str, Any]) -> dict[str, Any]:
    """Return a result with the rows that a file has for other workloads; they keep the commit and time of that file."""
    if not path.exists():
        return result
    earlier = json.loads(path.read_text())
    origin = {key: earlier[key] for key in ("commit", "time")}
    for name in {"workloads", "exactness", "user_loop"} & {*earlier}:
        rows = result.get(name, [])
        measured = {row["workload"] for row in rows}
        kept = [{**origin, **row} for row in earlier[name] if row["workload"] not in measured]
        result = {**result, name: [*rows, *kept]}
    return result


def write_result(path: Path, result: dict[str, Any], *, device: str = "cpu") -> None:
    """Write `result` with its provenance as JSON, atomically; `device` is where it was measured."""
    with atomic_write(path) as file:
        file.write((json.dumps({**provenance(device), **result}, indent=1) + "\n").encode())
