"""Several runs that differ in the seed alone, one after the other, and what came out of them together."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

from pathnn.data.targets import with_metric
from pathnn.data.task import Task
from pathnn.provenance import commit
from pathnn.training.config import RunConfig
from pathnn.training.devices import make_fabric
from pathnn.training.ensemble import Ensemble, score_ensemble
from pathnn.training.ensemble_folder import EnsembleFolder
from pathnn.training.errors import RunError
from pathnn.training.loop import Epoch
from pathnn.training.run_folder import RunFolder
from pathnn.training.runs import Run, load_task, run
from pathnn.training.setup import build_model, choose_split, make_loaders

MOST_SEEDS = 1000
"""More are a slip of the finger."""


def run_ensemble(
    config: RunConfig,
    out: Path,
    seeds: int,
    *,
    task: Task | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Callable[[Epoch, Run], None] | None = None,
) -> dict[str, Any]:
    """Train `seeds` networks as `config` says, from its seed on, into folders in `out`; returns what `out/result.json`
    holds.

    The other arguments are those of `run`. With `resume` runs that are over are kept, and more seeds may
    be asked for than before.

    ```python
    config = RunConfig(data="molecules.csv", target="logS", collection="sp", k=2, epochs=2)
    result = run_ensemble(config, Path("three"), seeds=3)
    print(result["test_score"], result["test_std"])
    ```
    """
    if not 2 <= seeds <= MOST_SEEDS:
        raise RunError(f"seeds={seeds}: expected 2 to {MOST_SEEDS}. A single network is what run is for.")
    if config.devices * config.num_nodes > 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise RunError("several seeds are trained one after the other in one process: leave out devices and num_nodes.")
    folder, wanted = EnsembleFolder(out), range(config.seed, config.seed + seeds)
    folder.check(wanted, resume=resume, overwrite=overwrite)
    if resume and not set(folder.seeds) <= set(wanted):
        raise RunError(
            f"{out} holds runs of the seeds {', '.join(map(str, folder.seeds))}, not all of which are among "
            f"{wanted[0]} to {wanted[-1]}. Ask for at least these, or begin anew with --overwrite."
        )
    if resume:
        for member in map(folder.member, wanted):
            if member.begun:
                member.checked_config()  # of all, before one of them is trained
    task, new = (
        _checked(config, load_task(config) if task is None else with_metric(task, config.metric)),
        not out.exists(),
    )
    RunFolder(out).make()
    try:
        with RunFolder(out).lock():
            if overwrite:
                folder.clear({*folder.seeds, *wanted})
            results = _train(config, folder, wanted, task, resume=resume, report=report)
            result = summary(config, task, folder.load_members(), results)
            folder.write_result(result)
            return result
    finally:
        if new and not folder.begun:
            RunFolder(out).abandon()


def _checked(config: RunConfig, task: Task) -> Task:
    """The task with its paths, if nothing is in the way of training on it: what is refused is to be refused before
    anything is removed, and not after the first network has been trained."""
    make_fabric(config)
    return make_loaders(task, config, build_model(config, task), device="cpu").task


def _train(
    config: RunConfig,
    folder: EnsembleFolder,
    wanted: range,
    task: Task,
    *,
    resume: bool,
    report: Callable[[Epoch, Run], None] | None,
) -> list[dict[str, Any]]:
    """Do all runs. An ensemble that goes on becomes an unfinished one with the first epoch that is added."""
    if not folder.begun:
        folder.write_plan(wanted)

    def tell(epoch: Epoch, ready: Run) -> None:
        if folder.result.exists() or folder.seeds != list(wanted):
            folder.write_plan(wanted)
        if report is not None:
            report(epoch, ready)

    results = []
    for seed in wanted:
        own = replace(config, seed=seed)
        results.append(run(own, folder.member(seed).path, task=task, resume=resume, report=tell))
    return results


def summary(config: RunConfig, task: Task, ensemble: Ensemble, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What `result.json` of an ensemble holds: `test_score` is that of the mean of all predictions."""
    test, cuda = choose_split(task, config).test, config.device != "cpu" and torch.cuda.is_available()
    together = score_ensemble(ensemble, task, test, device="cuda" if cuda else "cpu") if test.numel() else None
    first = results[0]
    return {
        **{name: first[name] for name in ("data", "model", "metric", "parameters", "fold", "device", "versions")},
        "split_seed": config.split_seed,
        "split_by": config.split_by,
        "seeds": [result["seed"] for result in results],
        "test_score": None if together is None else together.together.score,
        **_statistics("test", [result["test_score"] for result in results]),
        **_statistics("val", [result["val_score"] for result in results]),
        "seconds": sum(result["seconds"] for result in results),
        "commit": commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _statistics(part: str, scores: Sequence[float | None]) -> dict[str, Any]:
    """Mean and sample standard deviation of scores; None where one is missing or not a number.

    >>> _statistics("test", [1.0, 3.0])
    {'test_each': [1.0, 3.0], 'test_mean': 2.0, 'test_std': 1.4142...}
    >>> _statistics("test", [1.0, None])
    {'test_each': [1.0, None], 'test_mean': None, 'test_std': None}
    """
    each = [None if score is None or not math.isfinite(score) else score for score in scores]
    known = [score for score in each if score is not None]
    whole = len(known) == len(each)
    return {
        f"{part}_each": each,
        f"{part}_mean": mean(known) if whole else None,
        f"{part}_std": stdev(known) if whole else None,
    }
