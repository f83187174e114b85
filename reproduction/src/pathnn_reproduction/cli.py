"""`pathnn reproduce TARGET`: run what is missing of a table or figure, and print it next to the paper's numbers."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, print_table, result_only, say
from pathnn.cli.options import Json
from pathnn_reproduction import experiments
from pathnn_reproduction.commands import (
    brec_command,
    counts_command,
    figures_command,
    runtime_command,
    sr_command,
    theory_command,
)
from pathnn_reproduction.experiments import TARGETS

if TYPE_CHECKING:
    from pathnn_reproduction.pool import Pool
    from pathnn_reproduction.results import Results
    from pathnn_reproduction.runner import Progress
    from pathnn_reproduction.settings import Settings
    from pathnn_reproduction.spec import Experiment, RunSpec
    from pathnn_reproduction.tables import Compared

Only = Annotated[
    str | None,
    typer.Option("--only", metavar="WORDS", show_default=False,
                 help="Some of the runs: models, datasets, collections, fields; such as ap,seed=3 or nci1,fold=0-4."),
]  # fmt: skip
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes that share the cores or the GPU.")]
Together = Annotated[
    int | None,
    typer.Option("--together", min=1, show_default="20 on a GPU, else 1",
                 help="On a GPU: runs that differ in fold, seed and dropout alone, trained at once by each job."),
]  # fmt: skip
ResultsFolder = Annotated[Path, typer.Option("--results", metavar="FOLDER", help="Where TARGET.jsonl is.")]
Work = Annotated[
    Path | None,
    typer.Option("--work", metavar="FOLDER", show_default=False,
                 help="Where run folders are kept, to resume from; default: .runs in the results folder."),
]  # fmt: skip
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda", help="Where to train.")]
Limit = Annotated[int | None, typer.Option("--limit", min=0, help="Begin at most so many runs.", show_default=False)]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="MINUTES", min=0.0, show_default=False,
                 help="Stop after so many minutes; runs under way are saved, and resumed the next time."),
]  # fmt: skip
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", show_default=False,
                 help="Run on a Ray cluster (auto, local, or ray://HOST:PORT; extra ray)."),
]  # fmt: skip
Pack = Annotated[
    Path | None,
    typer.Option("--pack", metavar="FILE", show_default=False,
                 help="At the end, pack what the next machine needs (runs under way, best models) into a tar file."),
]  # fmt: skip
PackPart = Annotated[
    float | None,
    typer.Option("--pack-part", metavar="MIB", min=0.001, show_default=False,
                 help="Cut the packed file into FILE.000, FILE.001, … of at most so many MiB."),
]  # fmt: skip
Unpack = Annotated[
    Path | None,
    typer.Option("--unpack", metavar="FILE", help="At the beginning, unpack what --pack wrote.", show_default=False),
]  # fmt: skip
Report = Annotated[
    bool,
    typer.Option("--report", help="Train nothing; write results/TARGET.tex, docs/results.md and the README's table."),
]  # fmt: skip
Export = Annotated[
    Path | None,
    typer.Option("--export", metavar="FOLDER", show_default=False,
                 help="Train nothing; write the best model by validation of every PathNN, with a card, to a folder."),
]  # fmt: skip


def tell_files(target: str, written: list[Path], *, as_json: bool) -> None:
    """Say which files were written."""
    if as_json:
        print_json({"target": target, "written": written})
        return
    for path in written:
        say(f"wrote {path}")


def tell_progress(
    experiment: Experiment, runs: list[RunSpec], results_file: Results, progress: Progress, *, as_json: bool
) -> None:
    """Print the tables of the datasets of `runs` (as JSON: all tables), what failed, and what is left."""
    from pathnn_reproduction.paper import TABLES
    from pathnn_reproduction.tables import compare, plain_cell

    cells = compare(experiment, results_file)
    for run, error in progress.failed:
        note(f"failed: {run.name}: {error}")
    if as_json:
        rows = [plain_cell(c, maximize=TABLES[data].maximize) for data, part in cells.items() for c in part]
        print_json({**summary(experiment, results_file, progress), "cells": rows})
        return
    chosen = {run.dataset for run in runs}
    for data, part in cells.items():
        if data in chosen:
            print_cells(data, part)
    why = f" ({progress.reason})" if progress.reason else ""
    under_way = f", {len(progress.stopped)} of them under way" if progress.stopped else ""
    say(
        f"{progress.done} of {progress.total} runs done, {len(progress.finished)} now, {len(progress.failed)} failed, "
        f"{progress.left} left{under_way}{why}; {results_file.path}"
    )


def summary(experiment: Experiment, results_file: Results, progress: Progress) -> dict[str, Any]:
    """Where things stand, as plain values."""
    return {
        "target": experiment.name,
        "total": progress.total,
        "done": progress.done,
        "ran": [run.name for run in progress.finished],
        "failed": [{"run": run.name, "error": error} for run, error in progress.failed],
        "under_way": [run.name for run in progress.stopped],
        "left": progress.left,
        "stopped": progress.reason or None,
        "seconds": time.monotonic() - progress.started,
        "results": results_file.path,
    }


def print_cells(data: str, cells: list[Compared]) -> None:
    """The table of one dataset."""
    from pathnn_reproduction.paper import TABLES
    from pathnn_reproduction.tables import row_label, row_texts

    table = TABLES[data]
    print_table(
        ("model", "paper", "ours", "n", "seconds", "difference"),
        [(row_label(cell), *row_texts(cell, table)) for cell in cells],
        title=f"{table.title}: {table.metric}",
    )


TOGETHER = 20
"""Runs that each process trains at once on a GPU: the ten folds of a cell with and without dropout."""


def table_command(target: str, title: str) -> Callable[..., None]:
    """The command of one target."""

    def command(
        only: Only = None,
        jobs: Jobs = 1,
        together: Together = None,
        results: ResultsFolder = Path("results"),
        work: Work = None,
        device: Device = "auto",
        limit: Limit = None,
        time_limit: TimeLimit = None,
        ray: Ray = None,
        pack: Pack = None,
        pack_part: PackPart = None,
        unpack: Unpack = None,
        report: Report = False,
        export: Export = None,
        json: Json = False,
    ) -> None:
        _check_folders({"--results": results, "--work": work})
        if device not in ("auto", "cpu", "cuda"):
            raise typer.BadParameter(f"--device {device}: expected auto, cpu or cuda.")
        begin, place = time.monotonic(), Place(results, work, device, jobs, together, ray)
        with result_only(json):
            experiment, runs, results_file = _plan(target, only, results)
            if unpack is not None:
                _unpack(unpack, place)
            written = _write(experiment, runs, results_file, place, report=report, export=export)
            if written is None:
                _check_device(place)
                if limit is None and not results_file.path.exists():
                    note(
                        f"{results_file.path} is not there yet: all runs start from the beginning (our results "
                        "come with a clone of the repository). --limit 0 prints the paper's tables alone."
                    )
                seconds = None if time_limit is None else 60 * time_limit - (time.monotonic() - begin)
                progress = _run(experiment, runs, results_file, place, limit=limit, seconds=seconds)
                if pack is not None:
                    _pack(experiment, results_file, place, pack, pack_part)
        if written is not None:
            tell_files(target, written, as_json=json)
            return
        tell_progress(experiment, runs, results_file, progress, as_json=json)
        if progress.failed:
            raise typer.Exit(1)
        if progress.reason == "interrupted":
            raise typer.Exit(130)

    command.__doc__ = f"""{title}: do the runs that are missing, print the paper's table with ours beside it.

    One line per finished run is added to results/{target}.jsonl. Stopping loses nothing but seconds: run it again,
    and it resumes. A run that fails does not stop the others; the exit code is then 1.
    """
    return command


@dataclass(frozen=True)
class Place:
    """Where runs are done and kept, as the options say."""

    results: Path
    work: Path | None
    device: str
    jobs: int
    together: int | None
    ray: str | None

    def settings(self) -> Settings:
        """The same for the workers."""
        from pathnn_reproduction.settings import Settings

        device: Any = self.device
        return Settings((self.work or self.results / ".runs").absolute(), device, self.jobs, self._together())

    def _together(self) -> int:
        """Without a GPU a group is done run by run: others of the --jobs had better take some of them."""
        import torch

        if self.device != "cpu" and torch.cuda.is_available():
            return TOGETHER if self.together is None else self.together
        elsewhere = self.device != "cpu" and self.ray is not None
        return self.together if elsewhere and self.together is not None else 1


def _check_folders(folders: dict[str, Path | None]) -> None:
    """Refuse a file where a folder is to be: every single run would fail there."""
    for option, folder in folders.items():
        if folder is not None and folder.exists() and not folder.is_dir():
            raise typer.BadParameter(f"{folder} is a file: expected a folder, or a new name.", param_hint=option)


def _check_device(place: Place) -> None:
    import torch

    if place.device == "cuda" and place.ray is None and not torch.cuda.is_available():
        raise ValueError("--device cuda needs a CUDA device, and torch finds none: use --device cpu or auto.")


def _plan(target: str, only: str | None, results: Path) -> tuple[Experiment, list[RunSpec], Results]:
    from pathnn_reproduction.results import Results
    from pathnn_reproduction.spec import SelectionError, select

    experiment = experiments.get_experiment(target)
    try:
        return experiment, select(experiment.runs, only), Results.open(results / f"{target}.jsonl")
    except SelectionError as error:
        raise typer.BadParameter(str(error)) from error


def _unpack(file: Path, place: Place) -> None:
    from pathnn_reproduction.carry import unpack_runs

    note(f"unpacked {unpack_runs(file, place.settings().work)} runs from {file}")


def _pack(experiment: Experiment, results_file: Results, place: Place, file: Path, part_mib: float | None) -> None:
    from pathnn_reproduction.carry import pack_runs

    note(
        f"packed {pack_runs(experiment, results_file, place.settings().work, file, part_mib=part_mib)} runs into {file}"
    )


def _write(
    experiment: Experiment,
    runs: list[RunSpec],
    results_file: Results,
    place: Place,
    *,
    report: bool,
    export: Path | None,
) -> list[Path] | None:
    """The files that were asked for instead of runs; None where runs were asked for."""
    if not report and export is None:
        return None
    from pathnn_reproduction.export import export_models
    from pathnn_reproduction.pages import write_report

    written = write_report(place.results, place.results.absolute().parent) if report else []
    return written + (
        [] if export is None else export_models(experiment, runs, results_file, place.settings().work, export)
    )


def _run(
    experiment: Experiment,
    runs: list[RunSpec],
    results_file: Results,
    place: Place,
    *,
    limit: int | None,
    seconds: float | None,
) -> Progress:
    from pathnn_reproduction.mps import shared_gpu
    from pathnn_reproduction.progress import run_progress
    from pathnn_reproduction.runner import run_missing

    jobs = place.jobs if place.ray is None else 1
    with (
        interruptible() as interrupted,  # first, so that no signal leaves a service behind
        shared_gpu(jobs, place.device) as shared,
        run_progress(experiment.name) as show,
    ):
        if shared:
            note(f"{jobs} processes share the GPU through NVIDIA's MPS (PATHNN_MPS=0 turns it off)")
        pool = _pool(place.settings(), place.ray)
        return run_missing(
            experiment, runs, results_file, pool, limit=limit, seconds=seconds, interrupted=interrupted, show=show
        )


def _pool(settings: Settings, ray: str | None) -> Pool:
    if ray is not None:
        from pathnn_reproduction.ray_pool import RayPool

        return RayPool(settings, ray)
    from pathnn_reproduction.pool import LocalPool

    return LocalPool(settings)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Take Ctrl-C, and SIGTERM, with which schedulers end a job, as a wish: what it gives tells whether one was made.

    The second one is an order, and interrupts at once.
    """
    asked = False

    def interrupt(*_: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        note("stopping after the epochs under way; once more to stop at once")

    try:
        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread
        before = {}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


reproduce = typer.Typer(
    no_args_is_help=True,
    help="Repeat a table of the paper, and print it with ours beside it.",
    epilog="Example: pathnn reproduce counts",
)


@reproduce.callback()
def root() -> None:
    """Repeat a table of the paper, and print it with ours beside it."""


reproduce.command("counts", epilog="Example: pathnn reproduce counts --json")(counts_command)
reproduce.command("runtime", epilog="Example: pathnn reproduce runtime --dataset zinc --epochs 3")(runtime_command)
reproduce.command("theory", epilog="Example: pathnn reproduce theory --max-vertices 5 --out theory")(theory_command)
reproduce.command("figures", epilog="Example: pathnn reproduce figures --out figures --format png")(figures_command)
for target, title in TARGETS.items():
    reproduce.command(target, epilog=f"Example: pathnn reproduce {target} --jobs 2")(table_command(target, title))
reproduce.command("sr", epilog="Example: pathnn reproduce sr --families sr16622,sr251256 --longest 5")(sr_command)
reproduce.command("brec", epilog="Example: pathnn reproduce brec --k 6")(brec_command)
