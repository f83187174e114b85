"""The epochs of runs that are done together: training and scores for all at once, then each run's own notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import isfinite
from time import perf_counter
from typing import Any

from pathnn.training.errors import NotFiniteError, RunError, RunStoppedError
from pathnn.training.loop import Best, Epoch, at_least_as_good
from pathnn.training.runs import CheckpointWriter, Run, finish_run, saved_result
from pathnn.training.stacked_train import StackedTrainer

Outcome = dict[str, Any] | RunError
"""What came of a run: its result, or the error that ended it."""


class Together:
    """Some runs that can be done together, epoch by epoch."""

    def __init__(
        self,
        runs: list[Run],
        report: Callable[[int, Epoch], None] | None,
        checkpoint_every: float,
        stop: Callable[[], bool] | None,
    ) -> None:
        self.runs, self.report, self.stop = [replace(run, together=len(runs)) for run in runs], report, stop
        self.checkpoints = [CheckpointWriter(run, checkpoint_every) for run in self.runs]
        self._trainer: StackedTrainer | None = None
        self.places: dict[int, int] = {}  # by run, which of the trainer's networks it is

    def go(self) -> Iterator[tuple[int, Outcome]]:
        """All epochs of all runs."""
        numbers = []
        for number, run in enumerate(self.runs):
            if self._over(number):
                yield number, saved_result(run) or self._finish(number)
            else:
                numbers.append(number)
        while numbers:  # again with fewer networks when half of them are done
            self._trainer = None  # the memory of the old one goes before that of the new comes
            self._trainer = StackedTrainer([self.runs[number] for number in numbers])
            self.places = {number: place for place, number in enumerate(numbers)}
            while len(numbers) > self.trainer.models // 2:
                for number, outcome in self._epoch(numbers).items():
                    numbers.remove(number)
                    yield number, outcome
                self._ask(numbers)
            for number in numbers:
                self._bring(number)

    @property
    def trainer(self) -> StackedTrainer:
        """Where the networks are trained now."""
        assert self._trainer is not None
        return self._trainer

    def _bring(self, number: int) -> None:
        """Bring a network from the trainer to its run."""
        self.trainer.store(self.places[number])

    def _epoch(self, numbers: list[int]) -> dict[int, Outcome]:
        """One epoch of the runs `numbers`; what came of those that are over."""
        started, going = perf_counter(), [False] * self.trainer.models
        for number in numbers:
            going[self.places[number]] = True
        losses = self.trainer.train_epoch(going)
        ended: dict[int, Outcome] = {}
        for number in numbers:
            if not isfinite(losses[self.places[number]]):
                ended[number] = NotFiniteError(
                    f"the loss is not a finite number in epoch {self.runs[number].state.epoch + 1}. Lower lr, or "
                    "look for very large features; what was saved before is kept."
                )
        left = [number for number in numbers if number not in ended]
        epochs = self._take_note(left, losses)
        seconds = (perf_counter() - started) / max(len(left), 1)
        for number in left:
            self.runs[number].state.seconds += seconds
            epoch = replace(epochs[number], seconds=seconds)
            self.checkpoints[number].add(epoch, partial(self._bring, number))
            if self.report is not None:
                self.report(number, epoch)
            if self._over(number):
                self.checkpoints[number].save(partial(self._bring, number))
                ended[number] = self._finish(number)
        return ended

    def _take_note(self, numbers: list[int], losses: list[float]) -> dict[int, Epoch]:
        """Scores of an epoch: the state of each run is that after it, but for the weights, which the trainer has."""
        trainer, places = self.trainer, self.places
        val = trainer.evaluate("val", [places[number] for number in numbers])
        better, found = [], {}
        for number in numbers:
            state, score = self.runs[number].state, val[places[number]].score
            state.epoch += 1
            if state.best is None or at_least_as_good(score, state.best.val_score, self._maximize(number)):
                better.append(number)
        tested = [places[number] for number in better if len(self.runs[number].loaders.test)]
        test = trainer.evaluate("test", tested) if tested else {}
        for number in numbers:
            place, run, lr = places[number], self.runs[number], self.runs[number].state.lr
            test_score = None
            if number in better:
                test_score = test[place].score if place in test else None
                run.state.best = Best(run.state.epoch, val[place].score, test_score, trainer.weights(place))
            if run.state.scheduler is not None:
                run.state.scheduler.step(val[place].score)
            scores = losses[place], val[place].loss, val[place].score, test_score
            found[number] = Epoch(run.state.epoch, *scores, number in better, lr, 0.0)
        return found

    def _ask(self, numbers: list[int]) -> None:
        """Save all and end, if that is wished."""
        if numbers and self.stop is not None and self.stop():
            for number in numbers:
                self.checkpoints[number].save(partial(self._bring, number))
            raise RunStoppedError(f"{len(numbers)} runs were stopped: they can go on, alone or together.")

    def _maximize(self, number: int) -> bool:
        return self.runs[number].loaders.task.maximize

    def _over(self, number: int) -> bool:
        run = self.runs[number]
        return run.state.stop_reason(run.config, maximize=self._maximize(number)) is not None

    def _finish(self, number: int) -> dict[str, Any]:
        return finish_run(self.runs[number])
