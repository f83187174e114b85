"""`pathnn reproduce zinc|molhiv|peptides|tu|synthetic`: the missing runs of a table, and ours beside the paper's."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathnn.cli.console import note, print_json, print_table, result_only, say
from pathnn.cli.options import Json

if TYPE_CHECKING:
    from pathnn.experiments.cells import Compared
    from pathnn.experiments.execute import Settings
    from pathnn.experiments.experiment import Experiment
    from pathnn.experiments.ledger import Ledger
    from pathnn.experiments.planned import PlannedRun
    from pathnn.experiments.pool import Pool
    from pathnn.experiments.runner import Progress

TARGETS = {
    "zinc": "ZINC12K (table 5)",
    "molhiv": "ogbg-molhiv (table 4)",
    "peptides": "Peptides (table 3)",
    "tu": "TUDatasets (table 2)",
    "synthetic": "CSL and EXP (table 1)",
}
"""The tables of accuracies, by the name of their experiment (`pathnn.experiments.targets`, which imports torch)."""

Only = Annotated[
    str | None,
    typer.Option("--only", metavar="WORDS", show_default=False,
                 help="Some of the runs: models, datasets, collections, fields; such as ap,seed=3 or nci1,fold=0-4."),
]  # fmt: skip
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at a time, on the cores or the GPU they share.")]
Results = Annotated[Path, typer.Option("--results", metavar="FOLDER", help="Where TARGET.jsonl is.")]
Work = Annotated[
    Path | None,
    typer.Option("--work", metavar="FOLDER", show_default=False,
                 help="Where run folders are kept, to go on from; default: .runs in the results folder."),
]  # fmt: skip
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda", help="Where to train.")]
Limit = Annotated[int | None, typer.Option("--limit", min=0, help="Begin at most so many runs.", show_default=False)]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="MINUTES", min=0.0, show_default=False,
                 help="Stop after so many minutes; runs under way are saved, and go on the next time."),
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


def table_command(target: str, title: str) -> Callable[..., None]:
    """The command of one target."""

    def command(
        only: Only = None,
        jobs: Jobs = 1,
        results: Results = Path("results"),
        work: Work = None,
        device: Device = "auto",
        limit: Limit = None,
        time_limit: TimeLimit = None,
        ray: Ray = None,
        pack: Pack = None,
        pack_part: PackPart = None,
        unpack: Unpack = None,
        json: Json = False,
    ) -> None:
        if device not in ("auto", "cpu", "cuda"):
            raise typer.BadParameter(f"--device {device}: expected auto, cpu or cuda.")
        begin = time.monotonic()
        with result_only(json):
            from pathnn.experiments.carry import pack_runs, unpack_runs
            from pathnn.experiments.execute import Settings
            from pathnn.experiments.ledger import Ledger
            from pathnn.experiments.select import SelectionError, select
            from pathnn.experiments.targets import experiment as find

            experiment, ledger = find(target), Ledger.open(results / f"{target}.jsonl")
            try:
                runs = select(experiment.runs, only)
            except SelectionError as error:
                raise typer.BadParameter(str(error)) from error
            settings = Settings((work or results / ".runs").absolute(), device, jobs)
            if unpack is not None:
                note(f"unpacked {unpack_runs(unpack, settings.work)} runs from {unpack}")
            seconds = None if time_limit is None else 60 * time_limit - (time.monotonic() - begin)
            progress = _run(experiment, runs, ledger, settings, ray=ray, limit=limit, seconds=seconds)
            if pack is not None:
                packed = pack_runs(experiment, ledger, settings.work, pack, part_mib=pack_part)
                note(f"packed {packed} runs into {pack}")
        _tell(experiment, ledger, progress, as_json=json)
        if progress.failed:
            raise typer.Exit(1)
        if progress.reason == "interrupted":
            raise typer.Exit(130)

    command.__doc__ = f"""{title}: do the runs that are missing, print the paper's table with ours beside it.

    One line per finished run is added to results/{target}.jsonl. Stopping loses nothing but seconds: run it again,
    and it goes on. A run that fails does not stop the others; the exit code is then 1.
    """
    return command


def _run(
    experiment: Experiment,
    runs: list[PlannedRun],
    ledger: Ledger,
    settings: Settings,
    *,
    ray: str | None,
    limit: int | None,
    seconds: float | None,
) -> Progress:
    from pathnn.cli.reproduce.run_progress import run_progress
    from pathnn.experiments.runner import run_missing

    with terminable(), run_progress(experiment.name) as show:
        pool = _pool(settings, ray)
        return run_missing(experiment, runs, ledger, pool, limit=limit, seconds=seconds, show=show)


def _pool(settings: Settings, ray: str | None) -> Pool:
    if ray is not None:
        from pathnn.experiments.ray_pool import RayPool

        return RayPool(settings, ray)
    from pathnn.experiments.pool import LocalPool

    return LocalPool(settings)


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM, with which schedulers end a job, stop the runs as Ctrl-C does."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(experiment: Experiment, ledger: Ledger, progress: Progress, *, as_json: bool) -> None:
    from pathnn.experiments.cells import compare, plain_cell
    from pathnn.experiments.published import TABLES

    cells = compare(experiment, ledger)
    for run, error in progress.failed:
        note(f"failed: {run.name}: {error}")
    if as_json:
        rows = [plain_cell(c, maximize=TABLES[data].maximize) for data, part in cells.items() for c in part]
        print_json({**summary(experiment, ledger, progress), "cells": rows})
        return
    for data, part in cells.items():
        print_cells(data, part)
    why = f" ({progress.reason})" if progress.reason else ""
    under_way = f", {len(progress.stopped)} of them under way" if progress.stopped else ""
    say(
        f"{progress.done} of {progress.total} runs done, {len(progress.finished)} now, {len(progress.failed)} failed, "
        f"{progress.left} left{under_way}{why}; {ledger.path}"
    )


def summary(experiment: Experiment, ledger: Ledger, progress: Progress) -> dict[str, Any]:
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
        "results": ledger.path,
    }


def print_cells(data: str, cells: list[Compared]) -> None:
    """The table of one dataset."""
    from pathnn.experiments.published import TABLES
    from pathnn.experiments.table_text import row_label, row_texts

    table = TABLES[data]
    print_table(
        ("model", "paper", "ours", "n", "seconds", "difference"),
        [(row_label(cell), *row_texts(cell, table)) for cell in cells],
        title=f"{table.title}: {table.metric}",
    )
