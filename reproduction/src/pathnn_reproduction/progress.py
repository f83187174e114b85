"""Show the progress of runs: done, running, failed, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pathnn.cli.console import note, time_text

if TYPE_CHECKING:
    from pathnn_reproduction.pool import Event
    from pathnn_reproduction.runner import Progress

    Show = Callable[[Progress, Event | None], None]

EVERY = 30.0
"""Seconds between two lines where standard error is no terminal."""


def status(progress: Progress) -> str:
    """One line about all runs."""
    left = progress.time_left()
    running = ", ".join(f"{run.name} epoch {epoch}" for run, epoch in list(progress.running.values())[:4])
    more = f", and {len(progress.running) - 4} more" if len(progress.running) > 4 else ""
    return (
        f"{progress.done} of {progress.total} done, {len(progress.running)} running, {len(progress.failed)} failed, "
        f"{'time left unknown' if left is None else f'about {time_text(left)} left'}"
        f"{f' ({running}{more})' if running else ''}"
    )


def ended(progress: Progress, event: Event) -> str | None:
    """What to say of a run that has ended."""
    name = "" if event.run is None else event.run.name
    if event.kind == "done" and event.line is not None:
        line = event.line
        return (
            f"done: {name}  val {line['val']:.5g}  test {line['test']:.5g}  {line['epochs']} epochs, "
            f"{time_text(line['seconds'])}"
        )
    if event.run in progress.waiting:
        return f"waits: {name}: memory was short; it is tried again when it can have the GPU to itself"
    return f"failed: {name}: {event.error}" if event.kind == "failed" else None


@contextmanager
def run_progress(target: str) -> Iterator[Show]:
    """Gives what `run_missing` calls: a bar on a terminal, lines now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn(target), BarColumn(), TextColumn("{task.description}"))
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    task = bar.add_task("")

    def show(progress: object, event: Event | None) -> None:
        from pathnn_reproduction.runner import Progress as Runs

        assert isinstance(progress, Runs)
        bar.update(task, total=progress.total, completed=progress.done, description=status(progress))
        text = None if event is None else ended(progress, event)
        if text is not None:
            bar.console.print(text, markup=False, highlight=False)

    with bar:
        yield show


def _lines() -> Show:
    said = time.monotonic()

    def show(progress: Progress, event: Event | None) -> None:
        nonlocal said
        text = None if event is None else ended(progress, event)
        if text is not None:
            note(text)
        if progress.running and time.monotonic() - said >= EVERY:
            said = time.monotonic()
            note(status(progress))

    return show
