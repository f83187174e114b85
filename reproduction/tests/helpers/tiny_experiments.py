"""Small experiments on CSL, which needs no files, and a pool without processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pathnn.training import RunConfig
from pathnn_reproduction.results import Results, Row, config_hash, v1_options
from pathnn_reproduction.runner import Progress, run_missing
from pathnn_reproduction.spec import Experiment, RunSpec, training_spec
from pathnn_reproduction.tables import accuracy_tables
from pathnn_reproduction.worker import Outcome, Settings, execute


def tiny_spec(seed: int = 0, *, epochs: int = 2, **options: Any) -> RunSpec:
    """A PathNN of width 4 on CSL."""
    config = RunConfig(
        data="csl", collection="sp", k=2, seed=seed, epochs=epochs, batch_size=64, options={"hidden_channels": 4},
        **options,
    )  # fmt: skip
    return training_spec("tiny", config)


def tiny_experiment(count: int = 3, **options: Any) -> Experiment:
    """`count` seeds of it."""
    return of_specs(*(tiny_spec(seed, **options) for seed in range(count)))


def of_specs(*specs: RunSpec) -> Experiment:
    """An experiment of some specs."""
    return Experiment("tiny", "a tiny experiment", specs, accuracy_tables)


def made_up_row(spec: RunSpec, val: float, test: float = 50.0) -> Row:
    """The row of a run that was never done."""
    assert spec.config is not None
    options = v1_options(spec.config)
    return {
        "target": spec.target, **spec.key, "grid": spec.grid, "config": options, "config_hash": config_hash(options),
        "commit": None, "device": "cpu", "epochs": 1, "best_epoch": 1, "val": val, "test": test, "seconds": 1.0,
        "parameters": 10,
    }  # fmt: skip


class InlinePool:
    """Does runs in this process when they are submitted, with `execute` or a function in its place."""

    def __init__(self, do: Settings | Callable[[RunSpec], Outcome | Row], size: int = 1) -> None:
        self.size, self.done, self.released = size, list[RunSpec](), 0
        self._do = (lambda spec: execute(spec, do)) if isinstance(do, Settings) else do

    def submit(self, spec: RunSpec) -> Future[Outcome]:
        self.done.append(spec)
        outcome = self._do(spec)
        future: Future[Outcome] = Future()
        future.set_result(outcome if isinstance(outcome, Outcome) else Outcome(outcome))
        return future

    def release(self) -> None:
        self.released += 1

    def close(self) -> None:
        pass


def do_missing(
    experiment: Experiment, results: Path, settings: Settings | None = None, pool: Any = None, **options: Any
) -> Progress:
    """Do what is missing in a results file, in this process unless `pool` is given."""
    settings = Settings(results.parent / "work", results, "cpu") if settings is None else settings
    pool = InlinePool(settings) if pool is None else pool
    specs = options.pop("specs", experiment.specs)
    return run_missing(experiment, specs, Results.open(results), lambda: pool, settings, **options)
