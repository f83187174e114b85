"""`pathnn reproduce zinc|molhiv|peptides|tu|synthetic`: the missing runs of a table, and ours beside the paper's."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pathnn.cli.console import note, result_only
from pathnn.cli.options import Json
from pathnn_reproduction.cli.table_options import (
    Device,
    Export,
    Jobs,
    Limit,
    Only,
    Pack,
    PackPart,
    Ray,
    Report,
    Results,
    TimeLimit,
    Together,
    Unpack,
    Work,
)
from pathnn_reproduction.cli.table_output import tell_files, tell_progress

if TYPE_CHECKING:
    from pathnn_reproduction.experiment import Experiment
    from pathnn_reproduction.ledger import Ledger
    from pathnn_reproduction.planned import RunSpec
    from pathnn_reproduction.pool import Pool
    from pathnn_reproduction.runner import Progress
    from pathnn_reproduction.settings import Settings

TOGETHER = 20
"""Runs that each process trains at once on a GPU: the ten folds of a cell with and without dropout."""

TARGETS = {
    "zinc": "ZINC12K (table 5)",
    "molhiv": "ogbg-molhiv (table 4)",
    "peptides": "Peptides (table 3)",
    "tu": "TUDatasets (table 2)",
    "synthetic": "CSL and EXP (table 1)",
}
"""The tables of accuracies, by the name of their experiment (`experiments.targets`, which imports torch)."""


def table_command(target: str, title: str) -> Callable[..., None]:
    """The command of one target."""

    def command(
        only: Only = None,
        jobs: Jobs = 1,
        together: Together = None,
        results: Results = Path("results"),
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
            experiment, runs, ledger = _plan(target, only, results)
            if unpack is not None:
                _unpack(unpack, place)
            written = _write(experiment, runs, ledger, place, report=report, export=export)
            if written is None:
                _check_device(place)
                if limit is None and not ledger.path.exists():
                    note(
                        f"{ledger.path} is not there yet: all runs begin anew (our results come with a clone of the "
                        "repository). --limit 0 prints the paper's tables alone."
                    )
                seconds = None if time_limit is None else 60 * time_limit - (time.monotonic() - begin)
                progress = _run(experiment, runs, ledger, place, limit=limit, seconds=seconds)
                if pack is not None:
                    _pack(experiment, ledger, place, pack, pack_part)
        if written is not None:
            tell_files(target, written, as_json=json)
            return
        tell_progress(experiment, runs, ledger, progress, as_json=json)
        if progress.failed:
            raise typer.Exit(1)
        if progress.reason == "interrupted":
            raise typer.Exit(130)

    command.__doc__ = f"""{title}: do the runs that are missing, print the paper's table with ours beside it.

    One line per finished run is added to results/{target}.jsonl. Stopping loses nothing but seconds: run it again,
    and it goes on. A run that fails does not stop the others; the exit code is then 1.
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


def _plan(target: str, only: str | None, results: Path) -> tuple[Experiment, list[RunSpec], Ledger]:
    from pathnn_reproduction.experiments import targets
    from pathnn_reproduction.ledger import Ledger
    from pathnn_reproduction.select import SelectionError, select

    experiment = targets.experiment(target)
    try:
        return experiment, select(experiment.runs, only), Ledger.open(results / f"{target}.jsonl")
    except SelectionError as error:
        raise typer.BadParameter(str(error)) from error


def _unpack(file: Path, place: Place) -> None:
    from pathnn_reproduction.carry import unpack_runs

    note(f"unpacked {unpack_runs(file, place.settings().work)} runs from {file}")


def _pack(experiment: Experiment, ledger: Ledger, place: Place, file: Path, part_mib: float | None) -> None:
    from pathnn_reproduction.carry import pack_runs

    note(f"packed {pack_runs(experiment, ledger, place.settings().work, file, part_mib=part_mib)} runs into {file}")


def _write(
    experiment: Experiment,
    runs: list[RunSpec],
    ledger: Ledger,
    place: Place,
    *,
    report: bool,
    export: Path | None,
) -> list[Path] | None:
    """The files that were asked for instead of runs; None where runs were asked for."""
    if not report and export is None:
        return None
    from pathnn_reproduction.export import export_models
    from pathnn_reproduction.report import write_report

    written = write_report(place.results, place.results.absolute().parent) if report else []
    return written + ([] if export is None else export_models(experiment, runs, ledger, place.settings().work, export))


def _run(
    experiment: Experiment,
    runs: list[RunSpec],
    ledger: Ledger,
    place: Place,
    *,
    limit: int | None,
    seconds: float | None,
) -> Progress:
    from pathnn_reproduction.cli.run_progress import run_progress
    from pathnn_reproduction.mps import shared_gpu
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
            experiment, runs, ledger, pool, limit=limit, seconds=seconds, interrupted=interrupted, show=show
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
