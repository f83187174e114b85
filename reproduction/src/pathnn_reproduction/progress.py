"""Show the progress of runs: done, running, failed, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from pathnn.cli.console import note, time_text

if TYPE_CHECKING:
    from pathnn_reproduction.runner import Progress, Show
    from pathnn_reproduction.spec import RunSpec
    from pathnn_reproduction.worker import Outcome, Settings


def status(progress: Progress, settings: Settings) -> str:
    """Return one line about all runs."""
    left = progress.seconds_left
    running = ", ".join(f"{spec.name}{_epochs(spec, settings)}" for spec in progress.running[:4])
    more = f", and {len(progress.running) - 4} more" if len(progress.running) > 4 else ""
    return (
        f"{progress.done} of {progress.total} done, {len(progress.running)} running, {len(progress.failed)} failed, "
        f"{'time left unknown' if left is None else f'about {time_text(left)} left'}"
        f"{f' ({running}{more})' if running else ''}"
    )


def _epochs(spec: RunSpec, settings: Settings) -> str:
    """Count the epochs of a run in its folder: workers send nothing."""
    metrics = settings.folder(spec).metrics if spec.config is not None else None
    return f" epoch {metrics.read_bytes().count(10)}" if metrics is not None and metrics.exists() else ""


def ended(progress: Progress, spec: RunSpec, outcome: Outcome) -> str:
    """Return the line about a run that has ended; "" if it was stopped."""
    row = outcome.row
    if row is not None:
        seconds = time_text(row.get("seconds", 0.0))
        if spec.config is None:
            return f"done: {spec.name}  {seconds}"
        return f"done: {spec.name}  val {row['val']:.5g}  test {row['test']:.5g}  {row['epochs']} epochs, {seconds}"
    if spec in progress.waiting:
        return f"waits: {spec.name}: the memory was full; the run is repeated when no other is running"
    if outcome.unavailable:
        return f"{spec.dataset} is not available, its runs stay missing: {outcome.error}"
    return f"failed: {spec.name}: {outcome.error}" if outcome.error else ""


def announcement(progress: Progress) -> str:
    """Return the line before the first run: how many are missing, and about how long they take."""
    runs = "1 run is missing" if progress.left == 1 else f"{progress.left} runs are missing"
    if progress.seconds_left is None:
        return f"{runs}; the time is not known before the first one is done"
    about = time_text(progress.seconds_left)
    return f"{runs}, about {about} by the seconds of similar rows; corrected after the first run on this machine"


@contextmanager
def run_progress(target: str, settings: Settings) -> Iterator[Show]:
    """Yield the function that `run_missing` calls: a bar on a terminal, a line now and then elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn

    said: float | None = None
    bar = task = None
    if sys.stderr.isatty():
        columns = (TextColumn(target), BarColumn(), TextColumn("{task.description}"))
        bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        task = bar.add_task("")

    def show(progress: Progress, spec: RunSpec | None, outcome: Outcome | None) -> None:
        nonlocal said
        lines = [announcement(progress)] if said is None else []
        said = time.monotonic() if said is None else said
        lines += [ended(progress, spec, outcome)] if spec is not None and outcome is not None else []
        if bar is not None and task is not None:
            bar.update(task, total=progress.total, completed=progress.done, description=status(progress, settings))
        elif progress.running and time.monotonic() - said >= 30:  # seconds
            said = time.monotonic()
            lines.append(status(progress, settings))
        for line in filter(None, lines):
            note(line) if bar is None else bar.console.print(line, markup=False, highlight=False)

    with bar or nullcontext():
        yield show
