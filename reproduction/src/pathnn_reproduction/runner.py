"""Doing what is missing of an experiment: runs are handed to workers, results are noted down as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean

from pathnn_reproduction.pool import Event, Pool
from pathnn_reproduction.results import Key, Results
from pathnn_reproduction.spec import Experiment, RunSpec, slots, together_key

PATIENCE = 600.0
"""Seconds that workers are given to end their epoch when they are asked to stop."""


@dataclass
class Progress:
    """Where a call stands.

    Attributes:
        total: trainings that the protocol asks for, of the runs that were selected.
        before: how many of them were done when the call began.
        finished: done by this call.
        running: by worker and place (which of the runs it was given), the run and its last epoch.
        first: by worker and place, the epoch that was heard of first: a run that goes on does not begin with 1.
        epochs: of the runs done by this call.
        waiting: runs for which memory was short beside others: they are tried again when these are over.
        failed: runs and what went wrong.
        stopped: runs that were begun and can be resumed later.
        reason: why the call ended before everything was done, or "".
    """

    total: int
    before: int
    started: float = field(default_factory=time.monotonic)
    finished: list[RunSpec] = field(default_factory=list)
    running: dict[tuple[int, int], tuple[RunSpec, int]] = field(default_factory=dict)
    first: dict[tuple[int, int], int] = field(default_factory=dict)
    epochs: list[int] = field(default_factory=list)
    waiting: list[RunSpec] = field(default_factory=list)
    failed: list[tuple[RunSpec, str]] = field(default_factory=list)
    stopped: list[RunSpec] = field(default_factory=list)
    reason: str = ""

    @property
    def done(self) -> int:
        """Trainings that are done, now or before."""
        return self.before + len(self.finished)

    @property
    def left(self) -> int:
        """Trainings that are still to be done."""
        return self.total - self.done

    def time_left(self) -> float | None:
        """Seconds until all is done at the pace of this call; None before anything is known.

        A run under way counts by its epochs, of which it is taken to need as many as those that are done, or as it may.
        """
        done, left = float(len(self.finished)), float(self.left - len(self.failed))
        for at, (run, epoch) in self.running.items():
            most = max(mean(self.epochs) if self.epochs else run.config.epochs, epoch, 1)
            done += (epoch - self.first.get(at, epoch)) / most
            left -= epoch / most
        return None if done <= 0 else (time.monotonic() - self.started) / done * max(left, 0.0)


def run_missing(
    experiment: Experiment,
    runs: Sequence[RunSpec],
    results_file: Results,
    pool: Pool,
    *,
    limit: int | None = None,
    seconds: float | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    show: Callable[[Progress, Event | None], None] | None = None,
) -> Progress:
    """Do the wanted `runs` that the `results_file` lacks, at most `limit` of them, for at most `seconds`.

    This process, not its workers, writes to the results file. A run that fails does not stop the others; one that lacks
    GPU memory is tried again when it can have the GPU to itself. When the time is up, when `interrupted`
    (asked every second) says so, or on Ctrl-C, workers end their epoch and save where they are; the next call resumes
    from there.
    """
    progress = Progress(slots(runs), slots([run for run, _ in experiment.done(runs, results_file)]))
    loop = _Loop(experiment, runs, results_file, pool, progress, limit, show or (lambda progress, event: None))
    deadline = None if seconds is None else progress.started + seconds
    patience = PATIENCE
    try:
        while loop.work_left():
            if interrupted():
                progress.reason = "interrupted"
            elif deadline is not None and time.monotonic() >= deadline:
                progress.reason = "the time is up"
            if progress.reason:
                break
            loop.hand_out()
            loop.listen(1.0 if deadline is None else min(1.0, max(deadline - time.monotonic(), 0.0)))
    except KeyboardInterrupt:
        progress.reason = "interrupted"
        patience = 0.0 if interrupted() else PATIENCE  # it was asked for before: this is the second Ctrl-C
    finally:
        loop.wind_down(patience)
    return progress


@dataclass
class _Loop:
    experiment: Experiment
    runs: Sequence[RunSpec]
    results_file: Results
    pool: Pool
    progress: Progress
    limit: int | None
    show: Callable[[Progress, Event | None], None]
    begun: int = 0
    queue: list[RunSpec] | None = None
    alone: set[Key] = field(default_factory=set)  # the runs that have had the GPU to themselves
    apart: set[str | None] = field(default_factory=set)  # `together_key` of runs that have to be done one by one
    crowded: set[int] = field(default_factory=set)  # the workers that others were busy beside, since they began
    last: dict[int, RunSpec] = field(default_factory=dict)

    def work_left(self) -> bool:
        """Whether a run is under way or can be begun."""
        return bool(self.progress.running or self._queue())

    def hand_out(self) -> None:
        """Give every idle worker a run, or some that can be trained together."""
        running = self.progress.running
        busy = {worker for worker, _ in running}
        for worker in (number for number in range(self.pool.size) if number not in busy):
            runs = self._next(worker)
            if not runs:
                break
            if runs[0] in self.progress.waiting:
                self.progress.waiting.remove(runs[0])
                self.alone.add(runs[0].key)
                self.pool.rest(worker)
            running.update({(worker, place): (run, 0) for place, run in enumerate(runs)})
            self.pool.start(worker, runs)
            at_work = {number for number, _ in running}
            self.crowded = (self.crowded - {worker}) | (at_work if len(at_work) > 1 else set())
            self.last[worker] = runs[0]
            self.begun += len(runs)
        self.show(self.progress, None)

    def _queue(self) -> list[RunSpec]:
        """The runs to begin, at most as many as the limit allows."""
        if self.limit is not None and self.begun >= self.limit:
            return []
        if self.queue is None:  # a result may have made other runs wanted
            progress = self.progress
            taken = {run.key for run, _ in [*progress.running.values(), *progress.failed]}
            taken |= {run.key for run in [*progress.stopped, *progress.waiting]}
            missing = self.experiment.missing(self.runs, self.results_file)
            self.queue = self._ready([run for run in missing if run.key not in taken])
            if progress.waiting and not self.queue and not progress.running:
                self.queue = progress.waiting[:1]
        return self.queue

    def _ready(self, queue: list[RunSpec]) -> list[RunSpec]:
        """Those to begin now. Where runs are trained together, the winners of a cell wait until the last of its folds
        has been decided: they are then trained at once, and not some by some. Nobody waits for a run that has failed,
        or that nobody does.
        """
        if self.pool.together == 1:
            return queue
        running = [run for run, _ in self.progress.running.values()]
        undecided = {run.cell for run in [*queue, *running, *self.progress.waiting] if not run.assess}
        return [run for run in queue if not (run.assess and run.cell in undecided and self._key(run) is not None)]

    def _key(self, run: RunSpec) -> str | None:
        """Runs with the same key may be done together."""
        key = together_key(run)
        return None if key in self.apart else key

    def _next(self, worker: int) -> list[RunSpec]:
        """The next run, if possible one on the data that the worker has at hand, and others for the same time."""
        queue, last = self._queue(), self.last.get(worker)
        if not queue:
            return []
        same = (i for i, run in enumerate(queue) if last is not None and run.cell == last.cell)
        first = queue.pop(next(same, 0))
        if first in self.progress.waiting:
            return [first]
        most = self.pool.together if self.limit is None else min(self.pool.together, self.limit - self.begun)
        key = self._key(first) if most > 1 else None
        others = [run for run in queue if key is not None and self._key(run) == key][: most - 1]
        for run in others:
            queue.remove(run)
        return [first, *others]

    def listen(self, timeout: float) -> None:
        """Take in what workers say."""
        running = self.progress.running
        events = [replace(event, run=running[event.worker, event.place][0]) for event in self.pool.events(timeout)]
        for event in events:  # all of them before anything else can go wrong
            self._take(event)
        for event in events:
            self.show(self.progress, event)

    def _take(self, event: Event) -> None:
        progress, at = self.progress, (event.worker, event.place)
        run, _ = progress.running[at]
        if event.kind == "epoch":
            progress.running[at] = (run, event.epoch)
            progress.first.setdefault(at, event.epoch)
            return
        del progress.running[at]
        progress.first.pop(at, None)
        self.queue = None
        if event.kind == "done" and event.line is not None:
            try:
                self.results_file.add(event.line)
            except ValueError as error:  # such as a score that is not a number
                progress.failed.append((run, str(error)))
            else:
                progress.finished.append(run)
                progress.epochs.append(event.line["epochs"])
        elif event.kind == "apart":
            self.apart.add(together_key(run))
            self.begun -= 1
        elif event.memory and run.key not in self.alone and event.worker in self.crowded:
            progress.waiting.append(run)
            self.begun -= 1
        elif event.kind == "failed":
            progress.failed.append((run, event.error))
        else:
            progress.stopped.append(run)

    def wind_down(self, patience: float) -> None:
        """Let workers end their epoch, take in what they say last, and end them. A second Ctrl-C does not wait."""
        try:
            if self.progress.running:
                self.pool.stop()
            until = time.monotonic() + patience
            while self.pool.busy() and time.monotonic() < until:
                self.listen(1.0)
        except KeyboardInterrupt:
            self.progress.reason = "interrupted"
        finally:
            self.progress.stopped += [*(run for run, _ in self.progress.running.values()), *self.progress.waiting]
            self.pool.close()
