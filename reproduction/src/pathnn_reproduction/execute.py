"""A planned run, done in this process: from its folder if it was begun, with data that the last run has left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from pathnn.data.task import Task
from pathnn.device import default_max_entries
from pathnn.provenance import commit
from pathnn.training import RunFolder, build_model, load_model, load_task
from pathnn.training.checkpoint import checked_config
from pathnn.training.config import RunConfig
from pathnn.training.errors import RunError
from pathnn.training.loop import Epoch
from pathnn.training.runs import Run, finish_run, open_run, saved_result, train_run
from pathnn.training.setup import with_paths
from pathnn.training.together import run_together
from pathnn.training.together_epochs import Outcome
from pathnn_reproduction.experiments.synthetic import isomorphism_result
from pathnn_reproduction.groups import in_groups, release_memory
from pathnn_reproduction.results import Line, result_line
from pathnn_reproduction.settings import Settings, device_of
from pathnn_reproduction.spec import RunSpec

CHECKPOINT_EVERY = 30.0
"""Seconds between two checkpoints: what a kill can lose."""


@dataclass
class Executor:
    """Does runs, one after the other, and keeps the packed data for the next run on the same data and paths."""

    settings: Settings
    commit: str | None = field(default_factory=commit)  # of the code that this process has loaded
    _key: tuple[Any, ...] | None = None
    _task: Task | None = None

    def __call__(
        self,
        planned: RunSpec,
        *,
        report: Callable[[Epoch, Run], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Line:
        """The result of a run. `stop` is asked after every epoch; `RunStoppedError` says that it has said yes."""
        if planned.kind == "isomorphism":
            config = replace(planned.config, device=self.settings.device)
            result = isomorphism_result(config, self.task(config), device_of(config))
            return result_line(planned, config, {**result, "commit": self.commit})
        noted = self._noted(planned)
        if noted is not None:
            return noted
        result = self._train(planned.config, self._folder(planned), report, stop)
        return self._line(planned, {**result, "commit": self.commit})

    def together(
        self,
        planned: Sequence[RunSpec],
        *,
        report: Callable[[int, Epoch], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Iterator[tuple[int, Line | Exception]]:
        """Results of runs with the same `together_key`, as they come: (which one, its line, or what ended it), in
        smaller groups where memory is short. Where they cannot be trained together, one of them is trained and the
        others end with `TogetherError`.
        """
        left = []
        for place, one in enumerate(planned):
            try:
                line = self._noted(one)
            except RunError as error:
                yield place, error
                continue
            if line is None:
                left.append(place)
            else:
                yield place, line

        def alone(place: int) -> Line:
            tell = None if report is None else (lambda epoch, _: report(place, epoch))
            return self(planned[place], report=tell, stop=stop)

        def group(places: list[int]) -> Iterator[tuple[int, Line | Exception]]:
            tell = None if report is None else (lambda number, epoch: report(places[number], epoch))
            for number, outcome in self._train_together([planned[place] for place in places], tell, stop):
                yield places[number], self._ended(planned[places[number]], outcome)

        yield from in_groups(left, group, alone)

    def _ended(self, planned: RunSpec, outcome: Outcome) -> Line | Exception:
        return self._line(planned, {**outcome, "commit": self.commit}) if isinstance(outcome, dict) else outcome

    def _train_together(
        self,
        planned: list[RunSpec],
        report: Callable[[int, Epoch], None] | None,
        stop: Callable[[], bool] | None,
    ) -> Iterator[tuple[int, Outcome]]:
        folders = [self._folder(run) for run in planned]
        configs = [
            replace(run.config, **self._where(run.config, folder)) for run, folder in zip(planned, folders, strict=True)
        ]
        try:
            yield from run_together(
                configs, [folder.path for folder in folders], task=self.task(configs[0]), report=report, stop=stop,
                checkpoint_every=CHECKPOINT_EVERY,
            )  # fmt: skip
        finally:
            release_memory()

    def _folder(self, planned: RunSpec) -> RunFolder:
        return RunFolder(self.settings.work / planned.target / planned.folder)

    def _noted(self, planned: RunSpec) -> Line | None:
        """The line of a run that was over before its result was noted down."""
        folder = self._folder(planned)
        done = folder.read_result()
        if done is None:
            return None
        best = load_model(folder.model)  # the scores of `result.json` may have been edited
        scores = {"val_score": best.val_score, "test_score": best.test_score, "best_epoch": best.epoch}
        return None if best.test_score is None else self._line(planned, {**done, **scores})

    def _line(self, planned: RunSpec, done: dict[str, Any]) -> Line:
        folder = self._folder(planned)
        line = result_line(planned, checked_config(folder), done)
        tidy(folder)
        return line

    def _train(
        self,
        config: RunConfig,
        folder: RunFolder,
        report: Callable[[Epoch, Run], None] | None,
        stop: Callable[[], bool] | None,
    ) -> dict[str, Any]:
        config = replace(config, **self._where(config, folder))
        task = self.task(config)
        try:
            with open_run(config, folder.path, task=task, resume=True) as ready:
                done = saved_result(ready)
                if done is None:
                    train_run(ready, report=report, stop=stop, checkpoint_every=CHECKPOINT_EVERY)
                    done = finish_run(ready)
                return done
        finally:
            release_memory()

    def task(self, config: RunConfig) -> Task:
        """The data of a run, with its paths, where the run wants them; kept until a run needs other data."""
        key = (config.data, config.model == "pathnn" and (config.collection, config.k), config.device)
        if self._task is None or self._key != key:
            self._task = None  # the old data goes before the new comes
            task = load_task(config)
            graphs = with_paths(task.graphs, build_model(config, task), device_of(config))
            self._key, self._task = key, task.with_graphs(graphs)
        return self._task

    def _where(self, config: RunConfig, folder: RunFolder) -> dict[str, Any]:
        """Device, and this process' share of the memory; a run that was begun keeps its pieces."""
        where: dict[str, Any] = {"device": self.settings.device}
        cuda = self.settings.device != "cpu" and torch.cuda.is_available()
        if not folder.begun and config.max_entries == "auto":
            width = int(config.options.get("hidden_channels", 128))
            most = default_max_entries("cuda" if cuda else "cpu", hidden_channels=width) // self.settings.jobs
            where["max_entries"] = 1 << (max(most, 1).bit_length() - 1)
        return where


def tidy(folder: RunFolder) -> None:
    """Of a run that is over keep the model, the metrics and the result: no checkpoint to resume from."""
    folder.state.unlink(missing_ok=True)
