"""Train, load and score networks that differ only in their seeds."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from pathnn.data.targets import with_metric
from pathnn.data.task import Task
from pathnn.device import resolve
from pathnn.provenance import commit
from pathnn.training.checkpoint import TaskSignature, TrainedModel, checked_config, load_model
from pathnn.training.config import RunConfig
from pathnn.training.errors import MismatchError, RunError, RunFolderError
from pathnn.training.loop import Epoch, fabric_for
from pathnn.training.run_folder import RESUMABLE, EnsembleFolder, RunFolder
from pathnn.training.runs import Run, load_task, run
from pathnn.training.scoring import Evaluation, comparable, graphs_to_read, measure, predict, target_scores, targets
from pathnn.training.setup import build_model, check_finite, choose_split, make_loaders, with_paths


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trained networks of one task that differ in their seeds; a single network is an ensemble of one."""

    members: tuple[TrainedModel, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("an ensemble needs at least one network.")
        first = self.members[0]
        for other in self.members[1:]:
            if replace(other.signature, name=first.signature.name) != first.signature:
                raise MismatchError(
                    f"the networks of seeds {first.config.seed} and {other.config.seed} were trained on different "
                    "data, or on different splits: expected the same. Train them again with --overwrite."
                )
            different = _different(first.config, other.config)
            if different:
                raise MismatchError(
                    f"the networks of seeds {first.config.seed} and {other.config.seed} were trained with different "
                    f"options ({', '.join(different)}): expected all but the seed to be the same. Train them again "
                    "with --overwrite."
                )

    @property
    def config(self) -> RunConfig:
        """Return the config of the first network; the others differ in the seed."""
        return self.members[0].config

    @property
    def signature(self) -> TaskSignature:
        """Return the signature of the task."""
        return self.members[0].signature


MAY_DIFFER = {"seed", "data", "max_entries", *RESUMABLE}
"""Options that may differ between the networks: the name of the data may, since its fingerprint is compared."""


def _different(first: RunConfig, other: RunConfig) -> list[str]:
    mine, theirs = first.to_dict(), other.to_dict()
    return [name for name in mine if name not in MAY_DIFFER and mine[name] != theirs[name]]


@dataclass(frozen=True)
class EnsembleScore:
    """Scores of the mean of all predictions (`together`) and of each network.

    For several targets, `targets` has the score of the mean prediction for each. `metric` is the name of the metric.
    """

    metric: str
    together: Evaluation
    each: tuple[Evaluation, ...]
    targets: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Return the mean of the networks' scores."""
        return mean(one.score for one in self.each)

    @property
    def std(self) -> float:
        """Return the sample standard deviation of the networks' scores; NaN for one network, or if one is NaN."""
        scores = [one.score for one in self.each]
        return stdev(scores) if len(scores) > 1 and all(map(math.isfinite, scores)) else math.nan


def predict_each(
    ensemble: Ensemble, task: Task, index: Tensor | None = None, *, device: torch.device | str = "cpu"
) -> Tensor:
    """Return the outputs of every network for the graphs `index` (None: all): `[networks, graphs, channels]`.

    ```python
    ensemble = load_ensemble(Path("three"))
    outputs = predict_each(ensemble, load_data("new.csv", targets=[]))
    print(outputs.std(dim=0))                                    # how much the networks differ
    ```
    """
    ensemble.signature.check_inputs(task)
    check_finite(task)
    model = ensemble.members[0].model
    graphs, index = graphs_to_read(task.graphs, index, model)
    task = task.with_graphs(with_paths(graphs, model, device) if len(graphs) else graphs)  # once for all
    return torch.stack([predict(trained, task, index, device=device) for trained in ensemble.members])


def combine(outputs: Tensor, target: str) -> Tensor:
    """Return one output for each graph from those of several networks, `[networks, graphs, channels]`.

    It is their mean, or the logit of the mean probability for classes and labels.

    >>> combine(torch.tensor([[[1.0]], [[2.0]]]), "regression")
    tensor([[1.5000]])
    >>> combine(torch.tensor([[[20.0]], [[-20.0]]]), "binary")
    tensor([[0.]])
    """
    if outputs.size(0) == 1:
        return outputs[0]
    if target == "class":
        return outputs.log_softmax(dim=2).logsumexp(dim=0) - math.log(outputs.size(0))
    if target in ("binary", "multilabel"):
        return logsigmoid(outputs).logsumexp(dim=0) - logsigmoid(-outputs).logsumexp(dim=0)
    return outputs.mean(dim=0)


def score_ensemble(
    ensemble: Ensemble,
    task: Task,
    index: Tensor | None = None,
    *,
    metric: str | None = None,
    device: torch.device | str = "cpu",
) -> EnsembleScore:
    """Return loss and score on the graphs `index` of a task (None: all); see `pathnn.inference.score`.

    ```python
    ensemble = load_ensemble(Path("three"))
    found = score_ensemble(ensemble, load_data("molecules.csv", targets="logS"))
    print(found.together.score, [one.score for one in found.each])
    ```
    """
    task = with_metric(comparable(ensemble.signature, task), metric or ensemble.signature.metric)
    index = torch.arange(len(task.graphs)) if index is None else index
    outputs, y = predict_each(ensemble, task, index, device=device), targets(task, index)
    scale = ensemble.signature.target_scale
    mean = combine(outputs, ensemble.signature.target)
    each = tuple(measure(out, y, task, scale) for out in outputs)
    together = measure(mean, y, task, scale)
    return EnsembleScore(task.metric_name, together, each, target_scores(scale.decode(mean), y, task))


def load_ensemble(path: Path) -> Ensemble:
    """Return the best model of every run of a folder that `run_ensemble` wrote; all runs must be finished.

    ```python
    ensemble = load_ensemble(Path("three"))
    print([trained.val_score for trained in ensemble.members])
    ```
    """
    folder = EnsembleFolder(path)
    if not folder.begun:
        raise RunFolderError(f"{path} has no runs: expected a folder that pathnn train --seeds wrote.")
    if not folder.result.exists():
        raise RunFolderError(
            f"the runs of the {len(folder.seeds)} seeds in {path} are not all finished. Resume them with pathnn train "
            f"DATA --seeds {len(folder.seeds)} --out {path} --resume, or give one of the runs in it."
        )
    return _load_members(folder)


def _load_members(folder: EnsembleFolder) -> Ensemble:
    return Ensemble(tuple(load_model(folder.member(seed).model) for seed in folder.seeds))


MOST_SEEDS = 1000
"""A larger number is a typing error."""


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
    """Train `seeds` networks, starting with the seed of `config`, into folders in `out`; return the result.

    `out/result.json` holds the result. The other arguments are those of `run`. With `resume`, finished runs are kept,
    and `seeds` may be larger than before.

    ```python
    config = RunConfig(data="molecules.csv", target="logS", collection="sp", k=2, epochs=2)
    result = run_ensemble(config, Path("three"), seeds=3)
    print(result["test_score"], result["test_std"])
    ```
    """
    if not 2 <= seeds <= MOST_SEEDS:
        raise RunError(f"seeds={seeds}: expected 2 to {MOST_SEEDS}. For a single network, use run.")
    if config.devices * config.num_nodes > 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise RunError("several seeds are trained one after another in one process: leave out devices and num_nodes.")
    folder, wanted = EnsembleFolder(out), range(config.seed, config.seed + seeds)
    folder.check(wanted, resume=resume, overwrite=overwrite)
    if resume and not set(folder.seeds) <= set(wanted):
        raise RunError(
            f"{out} holds runs of the seeds {', '.join(map(str, folder.seeds))}, and some are not in {wanted[0]} to "
            f"{wanted[-1]}. Ask for at least these, or start again with --overwrite."
        )
    if resume:
        for member in map(folder.member, wanted):
            if member.begun:
                checked_config(member)  # check all before one of them is trained
    task = _checked(config, load_task(config) if task is None else with_metric(task, config.metric))
    new = not out.exists()
    RunFolder(out).make()
    try:
        with RunFolder(out).lock():
            if overwrite:
                folder.clear({*folder.seeds, *wanted})
            results = _train(config, folder, wanted, task, resume=resume, report=report)
            result = summary(config, task, _load_members(folder), results)
            folder.write_result(result)
            return result
    finally:
        if new and not folder.begun:
            RunFolder(out).abandon()


def _checked(config: RunConfig, task: Task) -> Task:
    """Return the task with its paths; raise the errors of a run now, before any file is removed or network trained."""
    fabric_for(config)
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
    """Train all networks. A resumed ensemble becomes unfinished when its first epoch is added."""
    if not folder.begun:
        folder.write_seeds(wanted)

    def tell(epoch: Epoch, ready: Run) -> None:
        if folder.result.exists() or folder.seeds != list(wanted):
            folder.write_seeds(wanted)
        if report is not None:
            report(epoch, ready)

    results = []
    for seed in wanted:
        own = replace(config, seed=seed)
        results.append(run(own, folder.member(seed).path, task=task, resume=resume, report=tell))
    return results


def summary(config: RunConfig, task: Task, ensemble: Ensemble, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the content of `result.json`: `test_score` is that of the mean of all predictions."""
    test = choose_split(task, config).test
    together = score_ensemble(ensemble, task, test, device=resolve(config.device)) if test.numel() else None
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
    """Return mean and sample standard deviation of scores; None if one is missing or not finite.

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
