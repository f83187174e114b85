"""The line that a training run keeps up to date: epoch, losses, score, rate and time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pathnn.training import Epoch, Run

EVERY = 30.0
"""Seconds between two lines where standard error is no terminal."""


def epoch_text(epoch: Epoch, run: Run, rate: float) -> str:
    """What to say after an epoch; `rate` is epochs per second."""
    task, best = run.loaders.task, run.state.best
    left = (run.config.epochs - epoch.epoch) / rate if rate else 0.0
    best_text = "" if best is None else f" (best {best.val_score:.4g} in epoch {best.epoch})"
    return (
        f"epoch {epoch.epoch}/{run.config.epochs}  loss {epoch.train_loss:.4g}, validation {epoch.val_loss:.4g}  "
        f"{task.metric_name} {epoch.val_score:.4g}{best_text}  lr {epoch.lr:.2g}  "
        f"{rate:.2g} epochs/s, at most {time_text(left)} left"
    )


def time_text(seconds: float) -> str:
    """A time as a person reads it.

    >>> time_text(42.0), time_text(100.0), time_text(7500.0)
    ('42 s', '1 min 40 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def epoch_line(*, several: bool = False) -> Iterator[Callable[[Epoch, Run], None]]:
    """Gives a function to call after each epoch. On a terminal one line is rewritten, elsewhere one is added
    now and then. Of runs of several seeds, one after the other, it says which one it is.
    """
    started, said, done = time.monotonic(), time.monotonic(), 0
    terminal = sys.stderr.isatty()
    seed: int | None = None

    def report(epoch: Epoch, run: Run) -> None:
        nonlocal started, said, done, seed
        now = time.monotonic()
        if seed not in (None, run.config.seed):  # the next of several begins
            started, done = now - epoch.seconds, 0
        seed, done = run.config.seed, done + 1
        which = f"seed {run.config.seed}  " if several else ""
        text = which + epoch_text(epoch, run, done / max(now - started, 1e-9))
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
