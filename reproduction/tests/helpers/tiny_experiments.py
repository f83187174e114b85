"""Small experiments on CSL, which needs no files, and pools that need no processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from pathnn.training import RunConfig
from pathnn_reproduction.execute import Executor
from pathnn_reproduction.pool import Event, attempt
from pathnn_reproduction.results import Line, config_hash, v1_options
from pathnn_reproduction.settings import Settings
from pathnn_reproduction.spec import Experiment, RunSpec


def tiny_run(seed: int = 0, *, epochs: int = 2, **options: Any) -> RunSpec:
    """A PathNN of width 4 on CSL."""
    config = RunConfig(
        data="csl", collection="sp", k=2, seed=seed, epochs=epochs, batch_size=64, options={"hidden_channels": 4},
        **options,
    )  # fmt: skip
    return RunSpec(
        target="tiny", model="pathnn", dataset="csl", collection="sp", k=2, seed=seed, config=config
    )  # fmt: skip


def tiny_experiment(count: int = 3, **options: Any) -> Experiment:
    """`count` seeds of it."""
    return Experiment("tiny", "a tiny experiment", tuple(tiny_run(seed, **options) for seed in range(count)))


def made_up_line(run: RunSpec, val: float, test: float = 50.0) -> Line:
    """The result of a run that was never done."""
    return {
        "target": run.target, "model": run.model, "dataset": run.dataset, "collection": run.collection, "k": run.k,
        "fold": run.fold, "seed": run.seed, "grid": run.grid, "config": (options := v1_options(run.config)),
        "config_hash": config_hash(options), "commit": None, "device": "cpu", "epochs": 1, "best_epoch": 1,
        "val": val, "test": test, "seconds": 1.0, "parameters": 10,
    }  # fmt: skip


class InlinePool:
    """Does runs in this process, with the real executor or a function in its place."""

    def __init__(self, do: Settings | Callable[[RunSpec], Line], size: int = 1, together: int = 1) -> None:
        self.size, self.together, self.stopped = size, together, False
        self.done: list[RunSpec] = []
        self.given: list[list[RunSpec]] = []
        self.rested: list[int] = []
        self._do = Executor(do) if isinstance(do, Settings) else do
        self._waiting: deque[tuple[int, int, RunSpec]] = deque()

    def start(self, worker: int, runs: Sequence[RunSpec]) -> None:
        self.given.append(list(runs))
        self._waiting += [(worker, place, run) for place, run in enumerate(runs)]

    def busy(self) -> int:
        return len(self._waiting)

    def events(self, timeout: float) -> list[Event]:
        worker, place, run = self._waiting.popleft()
        self.done.append(run)
        if self.stopped:
            return [Event(worker, "stopped", place)]
        kind, values = attempt(lambda: self._do(run))
        return [Event(worker, kind, place, **values)]

    def rest(self, keep: int) -> None:
        self.rested.append(keep)

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        pass
