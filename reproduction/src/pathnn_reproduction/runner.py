"""Do the missing runs of an experiment: submit them to a pool, and write their rows as they arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean

from pathnn_reproduction.pools import Pool
from pathnn_reproduction.results import Results, Row
from pathnn_reproduction.spec import Experiment, RunSpec, Value, slots
from pathnn_reproduction.worker import Outcome, Settings

PATIENCE = 600.0
"""Seconds that runs have to end their epoch when they must stop."""


@dataclass
class Progress:
    """The state of a call."""

    total: int  # runs that the protocol asks for, of those selected
    done: int
    seconds_left: float | None = None  # the estimate for the rest, from the rows of similar runs
    started: float = field(default_factory=time.monotonic)
    running: list[RunSpec] = field(default_factory=list)
    finished: list[RunSpec] = field(default_factory=list)  # by this call
    waiting: list[RunSpec] = field(default_factory=list)  # the memory was full next to others; they are repeated alone
    failed: list[tuple[RunSpec, str]] = field(default_factory=list)  # with their errors
    stopped: list[RunSpec] = field(default_factory=list)  # were started and can be resumed later
    unavailable: dict[str, str] = field(default_factory=dict)  # by dataset, why it is not available
    reason: str = ""  # why the call ended before everything was done

    @property
    def left(self) -> int:
        """Runs that are not done."""
        return self.total - self.done


Show = Callable[[Progress, RunSpec | None, Outcome | None], None]
"""Called before the first run, after each second, and for each run that has ended."""


def run_missing(
    experiment: Experiment,
    specs: Sequence[RunSpec],
    results: Results,
    make_pool: Callable[[], Pool],
    settings: Settings,
    *,
    limit: int | None = None,
    show: Show = lambda progress, spec, outcome: None,
    reference: Sequence[Row] = (),
) -> Progress:
    """Do the wanted runs that have no row, at most `limit` of them; no pool is made if there are none.

    A run that fails does not stop the others. A run for which the memory was full next to others is repeated alone.
    When `settings` say so, runs end their epoch and save; the next call resumes them. The time left is estimated from
    the rows that there are and, for runs like none of them, from those of `reference`.
    """
    done = slots([spec for spec, _ in experiment.done(specs, results)])
    known = [[row for row in rows if "seconds" in row] for rows in (results, reference)]
    loop = _Loop(experiment, specs, results, Progress(slots(specs), done), settings, limit, show, known)
    loop.estimate()
    if not loop.queue():
        return loop.progress
    show(loop.progress, None, None)
    pool = make_pool()
    try:
        loop.work(pool)
    except KeyboardInterrupt:
        loop.progress.reason = "interrupted"
    finally:
        loop.progress.stopped += [*loop.progress.running, *loop.progress.waiting]
        pool.close()
    return loop.progress


@dataclass
class _Loop:
    experiment: Experiment
    specs: Sequence[RunSpec]
    results: Results
    progress: Progress
    settings: Settings
    limit: int | None
    show: Show
    known: Sequence[Sequence[Row]]  # rows of other runs, which say how long runs take
    begun: int = 0
    futures: dict[Future[Outcome], RunSpec] = field(default_factory=dict)
    crowded: set[Future[Outcome]] = field(default_factory=set)  # runs that had others next to them
    speed: list[tuple[float, float]] = field(default_factory=list)  # seconds of finished runs, and their estimates

    def work(self, pool: Pool) -> None:
        """Submit and collect runs until nothing is left, or until the settings say stop."""
        until = None
        while True:
            if until is None and self.settings.stopping():
                interrupted = self.settings.stop_file is not None and self.settings.stop_file.exists()
                self.progress.reason = "interrupted" if interrupted else "the time is up"
                until = time.monotonic() + PATIENCE
            if until is None:
                self.fill(pool)
            # a run without a config cannot be resumed: there is no use in waiting for it
            elif time.monotonic() >= until or all(spec.config is None for spec in self.futures.values()):
                return
            if not self.futures:
                return
            ended, _ = wait(self.futures, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in ended:
                self.collect(future)
            self.show(self.progress, None, None)

    def queue(self) -> list[RunSpec]:
        """Return the runs to begin; a new row may have made others wanted."""
        if self.limit is not None and self.begun >= self.limit:
            return []
        progress = self.progress
        over = [*(spec for spec, _ in progress.failed), *progress.stopped, *progress.waiting, *progress.running]
        taken = {tuple(spec.key.items()) for spec in over}
        return [
            spec
            for spec in self.experiment.missing(self.specs, self.results)
            if tuple(spec.key.items()) not in taken and spec.dataset not in progress.unavailable
        ]

    def fill(self, pool: Pool) -> None:
        """Submit runs up to the size of the pool; runs for which the memory was full come last, one at a time."""
        size = 1 if self.experiment.alone else pool.size
        queue = self.queue() if len(self.futures) < size else []
        for spec in queue[: size - len(self.futures)]:
            if self.limit is not None and self.begun >= self.limit:
                break
            self._submit(pool, spec)
        if not self.futures and self.progress.waiting:
            pool.release()
            self._submit(pool, self.progress.waiting.pop(0))

    def _submit(self, pool: Pool, spec: RunSpec) -> None:
        self.futures[pool.submit(spec)] = spec
        self.progress.running.append(spec)
        self.begun += 1
        if len(self.futures) > 1:
            self.crowded |= set(self.futures)

    def collect(self, future: Future[Outcome]) -> None:
        """Take the outcome of a run."""
        spec, progress = self.futures.pop(future), self.progress
        progress.running.remove(spec)
        error = future.exception()
        lost = f"its process died ({' '.join(str(error).split())[:200]})."
        outcome = future.result() if error is None else Outcome(error=lost)
        guess = estimated_seconds(spec, *self.known)
        if outcome.row is not None:
            try:
                self.results.add(outcome.row, spec.key)
            except ValueError as problem:  # such as a score that is not a number
                outcome = Outcome(error=str(problem))
        if outcome.row is not None:
            progress.finished.append(spec)
            progress.done += 1
            if guess and "seconds" in outcome.row:
                self.speed.append((outcome.row["seconds"], guess))
            self.estimate()
        elif error is not None and self.settings.stopping():
            progress.stopped.append(spec)
        elif outcome.unavailable:
            progress.unavailable[spec.dataset] = outcome.error
        elif outcome.memory and future in self.crowded:
            progress.waiting.append(spec)
            self.begun -= 1
        elif outcome.error:
            progress.failed.append((spec, outcome.error))
        else:
            progress.stopped.append(spec)
        self.show(progress, spec, outcome)

    def estimate(self) -> None:
        """Estimate the time left; after the first run, corrected by the speed of this machine."""
        left = self.experiment.left(self.specs, self.results)[: None if self.limit is None else self.limit - self.begun]
        alike = {similar(spec): spec for spec in left}
        correction = sum(ours for ours, _ in self.speed) / sum(guess for _, guess in self.speed) if self.speed else 1.0
        known = self.known if any(self.known) else ([row for row in self.results if "seconds" in row],)
        guesses = {names: estimated_seconds(spec, *known) for names, spec in alike.items()}
        found = [guess for spec in left if (guess := guesses[similar(spec)]) is not None]
        jobs = 1 if self.experiment.alone else self.settings.jobs
        self.progress.seconds_left = correction * fmean(found) * len(left) / jobs if found else None


OWN = ("fold", "seed", "config_hash", "first")
"""Parts of a key that say little about the time of a run."""


def similar(spec: RunSpec) -> tuple[tuple[str, Value], ...]:
    """Return the parts of a key that runs of about the same time share."""
    return tuple((name, value) for name, value in spec.key.items() if name not in OWN)


def estimated_seconds(spec: RunSpec, *known: Sequence[Row]) -> float | None:
    """Return the mean seconds of similar rows: those that differ in fold or seed, else of the dataset, else of all.

    Of several lists, the first one with such rows counts.
    """
    for names, rows in product((similar(spec), similar(spec)[:2], similar(spec)[:1], ()), known):
        if found := matching(rows, names):
            return fmean(row["seconds"] for row in found)
    return None


def matching(rows: Sequence[Row], names: Sequence[tuple[str, Value]]) -> list[Row]:
    """Return the rows with these values.

    >>> matching([{"k": 1}, {"k": 2}], [("k", 2)])
    [{'k': 2}]
    """
    return [row for row in rows if all(row.get(name) == value for name, value in names)]
