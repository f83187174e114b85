"""Name, write and check the files of a run folder, and of a folder with runs of several seeds or folds."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pathnn.files import file_metadata, locked_file, plain_file, replace_file
from pathnn.training.config import RunConfig
from pathnn.training.errors import CheckpointError, RunError, RunFolderError

if TYPE_CHECKING:
    from lightning_fabric.loggers import Logger
    from matplotlib.figure import Figure

    from pathnn.training.loop import Epoch

LOCK = ".lock"

RESUMABLE = ("device", "devices", "num_nodes", "epochs", "logger")
"""Options that a resumed run may change: where it runs, how long, and what it logs."""

EVALUATION_FILES = (
    "test_predictions.csv", "out_of_fold.csv", "training_molecules.npz", "baselines.json", "baselines.csv",
    "report.html", "intervals.json",
)  # fmt: skip
"""The files that `pathnn.evaluation` and `pathnn.inference` write into the folder of one run or of several."""

FILES = (
    "config.yaml", "metrics.jsonl", "model.safetensors", "last.ckpt", "result.json", "curves.png", *EVALUATION_FILES
)  # fmt: skip

ENTRIES = (*FILES, LOCK, "logs")
"""The files of a run folder."""


class File:
    """A file of a folder, as an attribute of the folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: Any, owner: object = None) -> Path:
        """Return the path of the file."""
        return Path(folder.path / self.name)


@dataclass(frozen=True)
class Folder:
    """A folder that training writes, with a `result.json`."""

    path: Path

    result = File("result.json")

    def abandon(self) -> None:
        """Remove the folder if it is empty except for the lock."""
        with suppress(OSError):
            if [entry.name for entry in self.path.iterdir()] == [LOCK]:
                (self.path / LOCK).unlink()
            self.path.rmdir()

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write `result.json`."""
        write_file(self.result, json.dumps(finite(dict(result)), indent=1) + "\n")

    def read_result(self) -> dict[str, Any] | None:
        """Return `result.json`, or None while a run is unfinished."""
        if not self.result.exists():
            return None
        try:
            return dict(json.loads(self.result.read_text()))
        except ValueError as error:
            raise CheckpointError(f"{self.result} is damaged: {error}.") from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Create and lock the folder; after an error, remove a new and empty one. A killed process leaves no lock."""
        new = not self.path.exists()
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as lock:
            lock.push(lambda kind, *_: self.abandon() if new and kind is not None else None)
            try:
                lock.enter_context(locked_file(self.path / LOCK, wait=False))
            except BlockingIOError as error:
                raise RunFolderError(
                    f"{self.path} is being written by another process: wait for it, or give another folder."
                ) from error
            except OSError as error:
                raise RunFolderError(f"{self.path / LOCK} cannot be locked: {error.strerror}.") from error
            yield

    def check_free(self, known: Callable[[str], bool]) -> None:
        """Raise `RunFolderError` for a file, or a folder with a name not `known` (or the final one, if temporary)."""
        with writing(self.path):
            if self.path.is_file():
                raise RunFolderError(f"{self.path} is a file: expected the name of a folder to write to.")
            found = [entry.name for entry in self.path.iterdir()] if self.path.exists() else []
        strange = sorted(name for name in found if not known(final_name(name)))
        if strange:
            raise RunFolderError(
                f"{self.path} exists and holds other files ({', '.join(strange[:3])}): give a new or an empty folder."
            )


@dataclass(frozen=True)
class RunFolder(Folder):
    """The files of a run.

    `config.yaml` has all options; `metrics.jsonl` one line per epoch; `model.safetensors` the best model by validation
    score; `last.ckpt` the state after the last epoch; `result.json` the scores; `curves.png` losses and scores. All but
    `metrics.jsonl` are written as a whole. A line is added to `metrics.jsonl` *before* the state is saved, so it never
    has fewer epochs than the state; after a kill, `truncate` removes the lines that the state does not have.
    """

    config = File("config.yaml")
    metrics = File("metrics.jsonl")
    model = File("model.safetensors")
    state = File("last.ckpt")
    curves = File("curves.png")
    logs = File("logs")

    @property
    def begun(self) -> bool:
        """Return whether the folder holds a run, even if its `config.yaml` was removed."""
        return self.config.exists() or self.state.exists() or self.model.exists()

    def check(self, *, resume: bool = False, overwrite: bool = False) -> None:
        """Raise `RunFolderError` if the folder must not be written.

        A folder with a run needs `resume` or `overwrite`; a folder with other files and no run is always refused.
        Nothing is removed: see `clear`.
        """
        check_modes(resume=resume, overwrite=overwrite)
        check_kind(self.path, None)
        self.check_free(lambda name: self.config.exists() or name in ENTRIES)
        if resume or not self.begun:
            return
        try:
            self.read_config()
        except RunFolderError as error:
            formats = [file_metadata(file).get("format", "") for file in (self.state, self.model)]
            if not any(name.startswith("pathnn-") for name in formats):  # else it is ours, and damaged
                raise RunFolderError(
                    f"{self.path} holds no run that can be read: {error} Give another folder, or remove this one."
                ) from None
        if not overwrite:
            raise RunFolderError(
                f"{self.path} holds a run already. Resume it (--resume), replace it (--overwrite), or give another "
                "folder."
            )

    def clear(self) -> None:
        """Remove the files of a run, and nothing else."""
        with writing(self.path):
            for entry in list(self.path.iterdir()):
                if final_name(entry.name) in FILES:
                    entry.unlink(missing_ok=True)
            self.clear_logs()

    def clear_logs(self) -> None:
        """Remove the files of loggers, and their folder if it has no others."""
        for pattern in ("metrics.csv", "events.out.tfevents.*"):
            for file in self.logs.glob(pattern):
                file.unlink()
        with suppress(OSError):
            self.logs.rmdir()

    def make_logger(self, name: str | None) -> Logger | None:
        """Return a logger of Lightning Fabric that writes to `logs`; None for no name."""
        if name is None:
            return None
        from lightning_fabric.loggers import CSVLogger, TensorBoardLogger

        make: Any = CSVLogger if name == "csv" else TensorBoardLogger
        try:
            return make(self.path, name="", version=self.logs.name)
        except ModuleNotFoundError as error:
            raise RunError(f"logger={name!r} needs TensorBoard: pip install tensorboard.") from error

    def log_epochs(self, logger: Logger | None, epochs: Iterable[Mapping[str, Any]]) -> None:
        """Log the numbers in lines of `metrics.jsonl`."""
        if logger is None:
            return
        with writing(self.logs):
            for epoch in epochs:
                known = {name: float(value) for name, value in epoch.items() if value is not None and name != "epoch"}
                logger.log_metrics(known, step=epoch["epoch"])
            logger.save()

    def write_config(self, config: RunConfig) -> None:
        """Write `config.yaml`."""
        write_file(self.config, config.to_yaml())

    def read_config(self) -> RunConfig:
        """Read `config.yaml`, which may have been edited; `checkpoint.checked_config` checks that it was not."""
        try:
            return RunConfig.from_yaml(self.config.read_text("utf-8"))
        except FileNotFoundError:
            raise RunFolderError(
                f"{self.path} has no config.yaml: expected a folder that pathnn train wrote. Restore the file, or "
                "start a new run in another folder."
            ) from None
        except (RunError, ValueError, OSError) as error:
            raise CheckpointError(f"{self.config} cannot be read: {error}") from error

    def add_epoch(self, epoch: Epoch, logger: Logger | None = None) -> None:
        """Add a line to `metrics.jsonl`, and log it; `sync_epochs` forces it to disk."""
        line = finite(asdict(epoch))
        with writing(self.metrics), open(self.metrics, "a", opener=plain_file) as file:
            file.write(json.dumps(line) + "\n")
        self.log_epochs(logger, [line])

    def sync_epochs(self) -> None:
        """Force all lines of `metrics.jsonl` to disk."""
        with writing(self.metrics), open(self.metrics, "a", opener=plain_file) as file:
            os.fsync(file.fileno())

    def read_epochs(self) -> list[dict[str, Any]]:
        """Return the lines of `metrics.jsonl`, without an incomplete last line."""
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

    def write_curves(self, metric_name: str) -> None:
        """Write the curves of the run, if matplotlib is installed."""
        write_figure(self.curves, lambda: draw_curves(self.read_epochs(), metric_name=metric_name))

    def truncate(self, epochs: int) -> None:
        """Keep the first `epochs` lines of `metrics.jsonl`."""
        kept = self.read_epochs()[:epochs]
        if len(kept) < epochs:
            raise CheckpointError(
                f"{self.metrics} has {len(kept)} epochs, but {self.state.name} has {epochs}. "
                "Use a copy of it, or train again with --overwrite."
            )
        write_file(self.metrics, "".join(json.dumps(epoch) + "\n" for epoch in kept))


def config_differences(one: RunConfig, other: RunConfig) -> list[tuple[str, Any, Any]]:
    """Return the options that differ, with both values; options of the model have names such as `options.phi`."""
    mine, theirs = _flat(one), _flat(other)
    names = [*mine, *(name for name in theirs if name not in mine)]
    return [(name, mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)]


def _flat(config: RunConfig) -> dict[str, Any]:
    values = config.to_dict()
    options = values.pop("options")
    return {**values, **{f"options.{name}": value for name, value in options.items()}}


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with None for NaN and infinity, which JSON does not have."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def check_modes(*, resume: bool, overwrite: bool) -> None:
    """Raise `RunError` if both are asked for."""
    if resume and overwrite:
        raise RunError("resume and overwrite contradict each other: give one of --resume and --overwrite.")


def check_kind(path: Path, kind: Member | None) -> None:
    """Raise `RunFolderError` if a folder holds several runs that do not differ in `kind` (None: a single run)."""
    there = EnsembleFolder.open(path)
    if there.begun and there.kind != kind:
        raise RunFolderError(
            f"{path} holds runs of several {there.kind}s. Resume them with --{there.kind}s {len(there.numbers)} "
            "--resume, or give another folder."
        )


def final_name(name: str) -> str:
    """Return the name of the file that a temporary file would have become; other names are unchanged."""
    return re.sub(r"^\.(.+)\.[0-9a-f]+\.tmp$", r"\1", name)


def write_file(path: Path, content: bytes | str) -> None:
    """Replace a file as a whole."""
    with writing(path):
        replace_file(path, content)


def write_figure(path: Path, draw: Callable[[], Figure]) -> None:
    """Write a figure as a PNG, if matplotlib (extra `plot`) is installed."""
    with suppress(ImportError):
        content = io.BytesIO()
        draw().savefig(content, format="png", dpi=120, metadata={"Software": None})
        write_file(path, content.getvalue())


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` while `path` is written, such as a full disk, into a `RunFolderError`."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"{path} could not be written: {error.strerror or error}. What was there before is kept: "
            "make room or fix the folder, then resume with --resume."
        ) from error


Member = Literal["seed", "fold"]
"""What the runs of an ensemble differ in."""

MEMBER = re.compile(r"(seed|fold)-(0|[1-9][0-9]*)")


@dataclass(frozen=True)
class EnsembleFolder(Folder):
    """The files of runs that differ in the seed, or in the fold that is held out (`kind`).

    `ensemble.json` has the seeds or folds, `seed-0`, `seed-1`, ... or `fold-0`, `fold-1`, ... are run folders, and
    `result.json` has the scores. It exists only while all runs are finished.
    """

    kind: Member = "seed"

    members_file = File("ensemble.json")

    @classmethod
    def open(cls, path: Path) -> EnsembleFolder:
        """Return a folder that exists, with the kind of its runs."""
        folder = cls(path)
        return cls(path, "fold") if folder.begun and "folds" in folder.read_members() else folder

    def member(self, number: int) -> RunFolder:
        """Return the run folder of a seed or fold."""
        return RunFolder(self.path / f"{self.kind}-{number}")

    @property
    def begun(self) -> bool:
        """Return whether the folder holds several runs. A run folder does not, whatever else is in it."""
        return self.members_file.is_file() and not RunFolder(self.path).begun

    @property
    def numbers(self) -> list[int]:
        """Return the seeds or folds of the runs; none if no run has begun."""
        return self.read_members().get(f"{self.kind}s", []) if self.begun else []

    def read_members(self) -> dict[str, Any]:
        """Return the content of `ensemble.json`: `seeds` or `folds`, and what the runs share."""
        try:
            content = dict(json.loads(self.members_file.read_text()))
            (kind,) = {"seeds", "folds"} & {*content}
            return {**content, kind: [int(number) for number in content[kind]]}
        except (ValueError, TypeError) as error:
            raise CheckpointError(
                f"{self.members_file} is damaged: {error!r}. Remove it, and resume with pathnn train DATA "
                f"--{self.kind}s N --out {self.path} --resume, which keeps the runs."
            ) from error

    def check(self, wanted: Iterable[int] = (), *, resume: bool = False, overwrite: bool = False) -> None:
        """Raise `RunFolderError` if the runs of the seeds or folds `wanted` must not be written."""
        check_modes(resume=resume, overwrite=overwrite)
        check_kind(self.path, self.kind)
        if RunFolder(self.path).begun:
            raise RunFolderError(f"{self.path} holds a single run: give another folder for several {self.kind}s.")
        known = ("ensemble.json", "result.json", *EVALUATION_FILES, LOCK)
        self.check_free(lambda name: name in known or MEMBER.fullmatch(name) is not None)
        if self.begun and not (resume or overwrite):
            raise RunFolderError(
                f"{self.path} holds runs of {len(self.numbers)} {self.kind}s already. Resume them (--resume), replace "
                "them (--overwrite), or give another folder."
            )
        for member in map(self.member, wanted):
            member.check(resume=resume, overwrite=overwrite)
            if overwrite:
                member.check_free(lambda name: name in ENTRIES)

    def write_members(self, numbers: Iterable[int], more: Mapping[str, Any]) -> None:
        """Write the seeds or folds of the runs and what they share, and remove what was computed from other runs."""
        self._clear_results()
        write_file(self.members_file, json.dumps({f"{self.kind}s": list(numbers), **more}) + "\n")

    def _clear_results(self) -> None:
        for name in ("result.json", *EVALUATION_FILES):
            (self.path / name).unlink(missing_ok=True)

    def clear(self, numbers: Iterable[int]) -> None:
        """Remove the runs of some seeds or folds, and nothing else; none if another process trains one of them."""
        members = [self.member(number) for number in numbers if self.member(number).path.is_dir()]
        with ExitStack() as locks:
            for member in members:
                locks.enter_context(member.lock())
            self.members_file.unlink(missing_ok=True)
            self._clear_results()
            for member in members:
                member.clear()
                member.abandon()


INK, BLUE, ORANGE = "#333333", "#0072B2", "#D55E00"


def plot_epochs(axes: Any, epochs: Sequence[Mapping[str, Any]], name: str, **style: Any) -> None:
    """Plot a number of `metrics.jsonl` over the epochs."""
    values = [math.nan if epoch[name] is None else epoch[name] for epoch in epochs]
    axes.plot([epoch["epoch"] for epoch in epochs], values, marker="o" if len(epochs) < 3 else None, **style)


def draw_curves(epochs: Sequence[Mapping[str, Any]], *, metric_name: str) -> Figure:
    """Draw the lines of `metrics.jsonl`: losses, and the validation score with its best epoch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    losses, scores = figure.subplots(1, 2)
    for name, color, label in (("train_loss", BLUE, "training"), ("val_loss", ORANGE, "validation")):
        plot_epochs(losses, epochs, name, color=color, label=label)
    losses.set(xlabel="epoch", ylabel="loss")
    losses.legend(frameon=False)
    plot_epochs(scores, epochs, "val_score", color=ORANGE)
    best = [epoch for epoch in epochs if epoch["best"] and epoch["val_score"] is not None]
    if best:
        scores.plot(best[-1]["epoch"], best[-1]["val_score"], "o", color=INK, label="best")
        scores.legend(frameon=False)
    scores.set(xlabel="epoch", ylabel=f"validation {metric_name}")
    for axes in (losses, scores):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
