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

from pathnn.data.task import Task
from pathnn.engine.build import build_model
from pathnn.engine.config import RunConfig
from pathnn.engine.ensemble import Ensemble, score_ensemble
from pathnn.engine.ensemble_folder import EnsembleFolder
from pathnn.engine.errors import RunError
from pathnn.engine.loaders import choose_split, with_paths
from pathnn.engine.run import Run, load_task, run
from pathnn.engine.train import Epoch
from pathnn.provenance import commit


def run_ensemble(
    config: RunConfig,
    out: Path,
    seeds: int,
    *,
    task: Task | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Callable[[Epoch, Run], None] | None = None,
    begin: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Train `seeds` networks as `config` says, from its seed on, into folders in `out`; returns what `out/result.json`
    holds.

    `begin` is called with each seed, the rest is as in `pathnn.engine.run`. With `resume` runs that are over are kept,
    and more seeds may be asked for than before.
    """
    if seeds < 2:
        raise RunError(f"seeds={seeds}: expected at least 2. A single network is what run is for.")
    if config.devices * config.num_nodes > 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise RunError("several seeds are trained one after the other in one process: leave out devices and num_nodes.")
    folder, wanted = EnsembleFolder(out), range(config.seed, config.seed + seeds)
    folder.check(resume=resume, overwrite=overwrite)
    left_out = [seed for seed in folder.seeds if seed not in wanted]
    if resume and left_out:
        raise RunError(
            f"{out} holds the runs of seeds {', '.join(map(str, folder.seeds))}, of which {left_out[0]} is not among "
            f"{wanted[0]} to {wanted[-1]}. Ask for at least these seeds, or begin anew with --overwrite."
        )
    task = load_task(config) if task is None else task
    task, results = task.with_graphs(with_paths(task.graphs, build_model(config, task), "cpu")), []
    for seed in wanted:
        if begin is not None:
            begin(seed)
        own = replace(config, seed=seed)
        results.append(run(own, folder.member(seed).path, task=task, resume=resume, overwrite=overwrite, report=report))
        folder.result.unlink(missing_ok=True)  # only now, when nothing was refused
        while left_out:
            folder.remove(left_out.pop())
    result = summary(config, task, folder.load(), results)
    folder.write_result(result)
    return result


def summary(config: RunConfig, task: Task, ensemble: Ensemble, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What `result.json` of an ensemble holds."""
    test, cuda = choose_split(task, config).test, config.device != "cpu" and torch.cuda.is_available()
    together = score_ensemble(ensemble, task, test, device="cuda" if cuda else "cpu") if test.numel() else None
    first = results[0]
    return {
        **{name: first[name] for name in ("data", "model", "metric", "parameters", "fold", "device", "versions")},
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
    known = [score for score in scores if score is not None and math.isfinite(score)]
    whole = len(known) == len(scores)
    each = [score if score in known else None for score in scores]
    return {
        f"{part}_each": each,
        f"{part}_mean": mean(known) if whole else None,
        f"{part}_std": stdev(known) if whole and len(known) > 1 else None,
    }
