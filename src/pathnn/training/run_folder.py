"""The folder of a run: what was asked, what happened, the best model, and where to go on."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pathnn.files import locked_file, plain_file
from pathnn.training.checkpoint import config_of_model, config_of_state
from pathnn.training.config import RunConfig
from pathnn.training.errors import CheckpointError, RunError, RunFolderError
from pathnn.training.loop import Epoch
from pathnn.training.tensor_file import format_of, write_file, writing

WHERE = ("device", "devices", "num_nodes", "epochs")
"""Options that a resumed run may change: where it runs, and how long."""


FILES = ("config.yaml", "metrics.jsonl", "model.safetensors", "last.ckpt", "result.json", "curves.png")


@dataclass(frozen=True)
class RunFolder:
    """The files of a run.

    `config.yaml` has every option; `metrics.jsonl` one line an epoch; `model.safetensors` the best model by
    validation; `last.ckpt` the state after the last epoch; `result.json` what came out; `curves.png` losses
    and scores. All but `metrics.jsonl` are replaced as a whole. A line is added to `metrics.jsonl` *before*
    the state is saved, so that it never has fewer epochs than the state; `truncate` cuts off those that it
    has too many after a kill.
    """

    path: Path

    @property
    def config(self) -> Path:
        """`config.yaml`."""
        return self.path / "config.yaml"

    @property
    def metrics(self) -> Path:
        """`metrics.jsonl`."""
        return self.path / "metrics.jsonl"

    @property
    def model(self) -> Path:
        """`model.safetensors`."""
        return self.path / "model.safetensors"

    @property
    def state(self) -> Path:
        """`last.ckpt`."""
        return self.path / "last.ckpt"

    @property
    def result(self) -> Path:
        """`result.json`."""
        return self.path / "result.json"

    @property
    def curves(self) -> Path:
        """`curves.png`."""
        return self.path / "curves.png"

    @property
    def begun(self) -> bool:
        """Whether a run has been written here; one whose `config.yaml` was removed is still there."""
        return self.config.exists() or self.state.exists() or self.model.exists()

    def create(self, *, resume: bool = False, overwrite: bool = False) -> None:
        """Make the folder, after `check`."""
        self.check(resume=resume, overwrite=overwrite)
        self.make()

    def make(self) -> None:
        """Make the folder itself, if it is not there."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def abandon(self) -> None:
        """Remove the folder if no run was begun in it and nothing else is there."""
        with suppress(OSError):
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def check(self, *, resume: bool = False, overwrite: bool = False) -> None:
        """Make sure that the folder may be written to.

        A folder with a run in it is refused unless `resume` or `overwrite`; a folder without a run and with anything
        else in it is always refused. Nothing is removed here: see `clear`.
        """
        check_wishes(resume=resume, overwrite=overwrite)
        check_free(self.path, lambda name: self.config.exists() or is_run_file(name))
        if self.begun and not resume:
            self._check_config()
        if self.begun and not (resume or overwrite):
            raise RunFolderError(
                f"{self.path} holds a run already. Go on with it (--resume), replace it (--overwrite), "
                "or give another folder."
            )

    def _check_config(self) -> None:
        """Raise `RunFolderError` where `config.yaml` is another program's: it is not ours to replace."""
        try:
            self.read_config()
        except RunFolderError as error:
            if any((format_of(file) or "").startswith("pathnn-") for file in (self.state, self.model)):
                return  # ours, damaged or of another version
            raise RunFolderError(
                f"{self.path} holds no run that can be read: {error} Give another folder, or remove this one."
            ) from None

    def clear(self) -> None:
        """Remove the files of a run, and nothing else."""
        with writing(self.path):
            for entry in list(self.path.iterdir()):
                if entry.name in FILES or is_leftover(entry.name):
                    entry.unlink(missing_ok=True)

    def write_config(self, config: RunConfig) -> None:
        """Write `config.yaml`."""
        self._write(self.config, config.to_yaml())

    def read_config(self) -> RunConfig:
        """Read `config.yaml`, which may have been edited: `checked_config` makes sure that it was not."""
        try:
            return RunConfig.from_yaml(self.config.read_text())
        except FileNotFoundError:
            raise RunFolderError(
                f"{self.path} has no config.yaml: expected a folder that pathnn train wrote. Restore the file, or "
                "start a new run in another folder."
            ) from None
        except (RunError, ValueError, OSError) as error:
            raise CheckpointError(f"{self.config} cannot be read: {error}") from error

    def checked_config(self) -> RunConfig:
        """Read `config.yaml`, and raise `RunFolderError` where the run was trained with another config.

        That is in `last.ckpt`, and in `model.safetensors` where there is no state. The options of `WHERE` may differ.
        """
        config, file = self.read_config(), self.state if self.state.exists() else self.model
        if not file.exists():
            return config  # nothing was trained yet
        trained = config_of_state(file) if file == self.state else config_of_model(file)
        different = [
            f"{name} is {now!r} there and {before!r} in {file.name}"
            for name, now, before in config_differences(config, trained)
            if name not in WHERE
        ]
        if different:
            raise RunFolderError(
                f"{self.config} was changed after the run began: {'; '.join(different)}. Restore these values in "
                "config.yaml, or start a new run in another folder."
            )
        return config

    def add_epoch(self, epoch: Epoch) -> None:
        """Add a line to `metrics.jsonl`; `sync_epochs` brings it to the disk."""
        with writing(self.metrics), open(self.metrics, "a", opener=plain_file) as file:
            file.write(json.dumps(finite(asdict(epoch))) + "\n")

    def sync_epochs(self) -> None:
        """Bring all lines of `metrics.jsonl` to the disk."""
        with writing(self.metrics), open(self.metrics, "a", opener=plain_file) as file:
            os.fsync(file.fileno())

    def read_epochs(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`; a last line that was cut off is left out."""
        if not self.metrics.exists():
            return []
        epochs: list[dict[str, Any]] = []
        for number, line in enumerate(self.metrics.read_text().splitlines(keepends=True), start=1):
            if not line.endswith("\n"):
                break
            try:
                epochs.append(json.loads(line))
            except ValueError as error:
                raise CheckpointError(f"{self.metrics} is damaged in line {number}: {error}.") from error
        return epochs

    def truncate(self, epochs: int) -> None:
        """Keep the first `epochs` lines of `metrics.jsonl`."""
        kept = self.read_epochs()[:epochs]
        if len(kept) < epochs:
            raise CheckpointError(
                f"{self.metrics} has {len(kept)} epochs, but {self.state.name} is of epoch {epochs}. "
                "Use a copy of it, or train again with --overwrite."
            )
        self._write(self.metrics, "".join(json.dumps(epoch) + "\n" for epoch in kept))

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write `result.json`."""
        self._write(self.result, json.dumps(finite(dict(result)), indent=1) + "\n")

    def read_result(self) -> dict[str, Any] | None:
        """What came out, or None while the run is not over."""
        if not self.result.exists():
            return None
        try:
            return dict(json.loads(self.result.read_text()))
        except ValueError as error:
            raise CheckpointError(f"{self.result} is damaged: {error}.") from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep another process from training into the same folder; a killed process leaves no lock."""
        with ExitStack() as lock:
            try:
                lock.enter_context(locked_file(self.path / LOCK, wait=False))
            except BlockingIOError as error:
                raise RunFolderError(
                    f"{self.path} is being written by another process: wait for it, or give another folder."
                ) from error
            except OSError as error:
                raise RunFolderError(f"{self.path / LOCK} cannot be locked: {error.strerror}.") from error
            yield

    def _write(self, path: Path, text: str) -> None:
        write_file(path, text.encode())


LOCK = ".lock"


def config_differences(one: RunConfig, other: RunConfig) -> list[tuple[str, Any, Any]]:
    """The options in which two configs differ, with both values; those of the model have names like `options.phi`.

    >>> config_differences(RunConfig(data="a"), RunConfig(data="a", k=2, options={"phi": "relu"}))
    [('k', 4, 2), ('options.phi', None, 'relu')]
    """
    mine, theirs = _flat(one), _flat(other)
    names = [*mine, *(name for name in theirs if name not in mine)]
    return [(name, mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)]


def _flat(config: RunConfig) -> dict[str, Any]:
    values = config.to_dict()
    options = values.pop("options")
    return {**values, **{f"options.{name}": value for name, value in options.items()}}


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """The same with None for NaN and infinity, which JSON does not have.

    >>> finite({"loss": float("nan"), "epoch": 1})
    {'loss': None, 'epoch': 1}
    """
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def check_wishes(*, resume: bool, overwrite: bool) -> None:
    """Raise `RunError` for wishes that contradict each other."""
    if resume and overwrite:
        raise RunError("resume and overwrite contradict each other: give one of --resume and --overwrite.")


def check_free(path: Path, known: Callable[[str], bool]) -> None:
    """Raise `RunFolderError` where a file is, or a folder with anything whose name is not `known`."""
    with writing(path):
        if path.is_file():
            raise RunFolderError(f"{path} is a file: expected the name of a folder to write to.")
        found = [entry.name for entry in path.iterdir()] if path.exists() else []
    strange = sorted(name for name in found if not known(name))
    if strange:
        raise RunFolderError(
            f"{path} exists and holds other files ({', '.join(strange[:3])}): give a new or an empty folder."
        )


def is_leftover(name: str, files: Sequence[str] = FILES) -> bool:
    """Whether it is a temporary file of one of `files` that a killed process has left."""
    return name.startswith(tuple(f".{file}." for file in files)) and name.endswith(".tmp")


def is_run_file(name: str) -> bool:
    """Whether it is the name of a file that runs write."""
    return name in FILES or name == LOCK or is_leftover(name)
