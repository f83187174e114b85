"""Print results on standard output, and notes, progress and epochs on standard error."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from pathnn.data.task import Task
    from pathnn.training import Epoch, Run


def print_json(document: Any) -> None:
    """Write the JSON document of a command to standard output; `plain` says which values it may hold."""
    print(json.dumps(plain(document), indent=1, allow_nan=False), flush=True)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers are not rounded, and NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):  # tensors, arrays and their scalars
        return plain(value.tolist())
    raise TypeError(f"JSON has no {type(value).__name__}: expected numbers, text, lists or mappings.")


def scores_text(scores: Mapping[str, float | None]) -> str:
    """Return scores by name as text; None and NaN are not defined."""
    return ", ".join(f"{name} {score_text(score)}" for name, score in scores.items())


def score_text(score: float | None, digits: int = 4) -> str:
    """Return a score as text; None stands for NaN, as in JSON."""
    return "not defined" if score is None or math.isnan(score) else f"{score:.{digits}g}"


def result_only(as_json: bool) -> AbstractContextManager[Any]:
    """With `--json`, redirect what libraries print to standard error; write the document after the block."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None, left: int = 1
) -> None:
    """Print a table; the first `left` columns hold words, the others numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < left else "right")
    for row in rows:
        table.add_row(*row)
    # A pipe or a file has no width: do not cut lines there.
    Console(width=None if sys.stdout.isatty() else 240, markup=False, highlight=False).print(table)
    sys.stdout.flush()


def say(message: str) -> None:
    """Print a line of the result on standard output."""
    print(message, flush=True)


def note(message: str) -> None:
    """Print a line that is not part of the result on standard error."""
    print(message, file=sys.stderr, flush=True)


def number_text(number: int, thing: str) -> str:
    """Return a number of things as text."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


DELAY = 1.0
"""Seconds until a bar appears."""


@contextmanager
def progress(what: str, total: int | None = None, *, unit: str | None = None) -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal after `DELAY` seconds; yield a function to call after some of `total` steps."""
    if not sys.stderr.isatty():
        yield lambda steps=1: None
        return
    from rich import progress as rich
    from rich.console import Console
    from rich.text import Text

    class Rate(rich.ProgressColumn):
        def render(self, task: rich.Task) -> Text:
            return Text(f"{task.speed:,.0f} {unit}/s, left:" if task.speed else "")

    columns = [rich.TextColumn("{task.description}", markup=False), rich.BarColumn(), rich.TimeElapsedColumn()]
    columns += [Rate(), rich.TimeRemainingColumn()] if unit is not None else []
    # The result may be on standard output: rich must not redirect it.
    bar = rich.Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    task = bar.add_task(what, total=total)
    timer = threading.Timer(DELAY, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda steps=1: bar.advance(task, steps)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


EVERY = 30.0
"""Seconds between two lines if standard error is not a terminal."""


def epoch_text(epoch: Epoch, run: Run, rate: float) -> str:
    """Return the line that describes an epoch; `rate` is in epochs per second."""
    best, epochs = run.state.best, run.config.epochs
    best_text = "" if best is None else f" (best {best.val_score:.4g} in epoch {best.epoch})"
    return (
        f"epoch {epoch.epoch}/{epochs}  loss {epoch.train_loss:.4g}, validation {epoch.val_loss:.4g}  "
        f"{run.loaders.task.metric_name} {epoch.val_score:.4g}{best_text}  lr {epoch.lr:.2g}  "
        f"{rate:.2g} epochs/s, at most {time_text((epochs - epoch.epoch) / rate)} left"
    )


def time_text(seconds: float) -> str:
    """Return a time in seconds, minutes or hours."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def epoch_line(*, several: bool = False) -> Iterator[Callable[[Epoch, Run], None]]:
    """Yield a function that shows each epoch, on one line of a terminal; `several`: name the seed or fold."""
    started, said, done = time.monotonic(), time.monotonic(), 0
    terminal, member = sys.stderr.isatty(), ""

    def report(epoch: Epoch, run: Run) -> None:
        nonlocal started, said, done, member
        now, config = time.monotonic(), run.config
        name = f"seed {config.seed}  " if config.folds is None else f"fold {config.fold} of {config.folds}  "
        if member not in ("", name):  # the next seed or fold begins
            started, done = now - epoch.seconds, 0
        member, done = name, done + 1
        text = name * several + epoch_text(epoch, run, done / max(now - started, 1e-9))
        if terminal:
            print(f"\r\033[2K{text}", end="", file=sys.stderr, flush=True)
        elif now - said > EVERY:
            said = now
            print(text, file=sys.stderr, flush=True)

    try:
        yield report
    finally:
        if terminal and done:
            print(file=sys.stderr)


def note_not_read(task: Task, index: Tensor | None = None) -> None:
    """Say how many rows were skipped, and how many targets (of the graphs `index`) are unknown."""
    from pathnn.data.task import known_fraction

    if task.skipped:
        rows = number_text(len(task.skipped), "row")
        note(f"skipped {rows} that cannot be read, the first is {task.skipped[0]}")
        if len(task.skipped) > len(task.graphs):
            note(f"warning: only {len(task.graphs):,} rows are left: check that the options name the right columns")
    y = task.graphs.y
    if task.has_missing_targets and y is not None:
        unknown = 100 * (1 - known_fraction(y if index is None else y[index]))
        note(f"{unknown:.3g} % of the targets are unknown: loss and {task.metric_name} are over the others")


def watch_compiler() -> None:
    """Say on standard error that functions are compiled, when that has taken a second; return at once."""

    def compiling(events: Sequence[tuple[float, Any]]) -> bool:
        begun = sum(event.is_start for _, event in events)
        return 2 * begun > len(events) and time.time() - events[0][0] > DELAY

    def watch() -> None:
        while not hasattr(sys.modules.get("numba"), "njit"):  # not imported here: most commands do without it
            time.sleep(DELAY / 4)
        from numba.core.event import install_recorder

        with install_recorder("numba:compile") as recorder:
            while not compiling(recorder.buffer):
                time.sleep(DELAY / 4)
        note("compiling the loops over paths, once on this machine (some seconds)")

    threading.Thread(target=watch, daemon=True).start()
