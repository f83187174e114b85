"""Train, load and score networks that differ only in their seeds, or in the fold that is held out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from pathnn.data.fingerprints import DataFingerprint
from pathnn.data.loader import PackedLoader
from pathnn.data.task import TargetScale, Task, with_metric
from pathnn.device import resolve
from pathnn.provenance import commit
from pathnn.training.checkpoint import TaskSignature, TrainedModel, checked_config, join_fingerprints, load_model
from pathnn.training.config import RunConfig
from pathnn.training.errors import MismatchError, RunError, RunFolderError
from pathnn.training.loop import Epoch, fabric_for
from pathnn.training.run_folder import RESUMABLE, EnsembleFolder, config_differences
from pathnn.training.runs import Run, load_task, run
from pathnn.training.scoring import Evaluation, comparable, measure, model_outputs, result_scores, targets
from pathnn.training.setup import (
    build_model,
    check_finite,
    choose_split,
    has_paths,
    make_loaders,
    resolve_max_entries,
    with_paths,
)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trained networks of one task that differ in their seeds or folds; a single network is an ensemble of one."""

    members: tuple[TrainedModel, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("an ensemble needs at least one network.")
        first = self.members[0]
        may = MAY_DIFFER | ({"fold"} if first.config.folds is not None else set())
        for other in self.members[1:]:
            options = [name for name, *_ in config_differences(first.config, other.config) if name not in may]
            if replace(other.signature, name=first.signature.name) != first.signature:
                different = "on different data, or on different splits"
            elif options:
                different = f"with different options ({', '.join(options)})"
            else:
                continue
            raise MismatchError(
                f"the networks of {_member(first)} and {_member(other)} were trained {different}: expected all but "
                "the seed or fold to be the same. Train them again with --overwrite."
            )

    @property
    def config(self) -> RunConfig:
        """Return the config of the first network; if the others differ in the fold, its `fold` stands for all folds."""
        config = self.members[0].config
        if config.folds is not None and len({member.config.fold for member in self.members}) > 1:
            return replace(config, fold=config.folds)
        return config

    @property
    def signature(self) -> TaskSignature:
        """Return the signature of the task."""
        return self.members[0].signature


MAY_DIFFER = {"seed", "data", "max_entries", *RESUMABLE}
"""Options that may differ between the networks: the name of the data may, since its fingerprint is compared."""


def _member(trained: TrainedModel) -> str:
    config = trained.config
    return f"seed {config.seed}" if config.folds is None else f"fold {config.fold}"


@dataclass(frozen=True)
class EnsembleScore:
    """Scores of the mean of all predictions (`together`) and of each network; `metric` is its name."""

    metric: str
    together: Evaluation
    each: tuple[Evaluation, ...]

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
    graphs, first = task.graphs, ensemble.members[0].model
    if (len(graphs) if index is None else index.numel()) == 0:
        raise RunError(f"{task.name}: there are no graphs to predict for.")
    if index is not None and not has_paths(graphs, first):  # a subset has no paths
        graphs, index = graphs.subset(index), None
    graphs = with_paths(graphs, first, device)
    outputs = []
    for trained in ensemble.members:
        model, size = trained.model.to(device), trained.config.batch_size
        entries = resolve_max_entries("auto", model, device)
        loader = PackedLoader(graphs, index, batch_size=size, max_entries=entries, device=device)
        outputs.append(model_outputs(model, loader, merge=True))
    return torch.stack(outputs)


def predict(
    trained: TrainedModel, task: Task, index: Tensor | None = None, *, device: torch.device | str = "cpu"
) -> Tensor:
    """Return the outputs of a trained model for the graphs `index` of a task (None: all), in the network's unit.

    ```python
    trained = load_model(Path("run/model.safetensors"))
    out = predict(trained, load_data("new.csv", targets=[]))
    logS = trained.signature.target_scale.decode(out)                # in the unit of the target
    ```
    """
    return predict_each(Ensemble((trained,)), task, index, device=device)[0]


def combine(outputs: Tensor, target: str) -> Tensor:
    """Return the mean of outputs `[networks, graphs, channels]`, or the logit of their mean probability."""
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
    return EnsembleScore(task.metric_name, measure(mean, y, task, scale), each)


def load_ensemble(path: Path) -> Ensemble:
    """Return the best models of a folder that `run_ensemble` or `cross_validate` wrote; all runs must be finished.

    ```python
    ensemble = load_ensemble(Path("three"))
    print([trained.val_score for trained in ensemble.members])
    ```
    """
    folder = EnsembleFolder.open(path)
    if not folder.begun:
        raise RunFolderError(f"{path} has no runs: expected a folder that pathnn train --seeds or --folds wrote.")
    if not folder.result.exists():
        raise RunFolderError(
            f"the runs of the {len(folder.numbers)} {folder.kind}s in {path} are not all finished. Resume them with "
            f"pathnn train DATA --{folder.kind}s {len(folder.numbers)} --out {path} --resume, or give one of the runs "
            "in it."
        )
    return load_members(folder)


def load_members(folder: EnsembleFolder) -> Ensemble:
    """Return the best models of the runs in a folder, whether or not its result is written."""
    members = [load_model(folder.member(number).model) for number in folder.numbers]
    if folder.kind == "fold":
        members = _in_one_unit(members, DataFingerprint.from_dict(folder.read_members().get("data")))
    return Ensemble(tuple(members))


def _in_one_unit(members: list[TrainedModel], data: DataFingerprint | None) -> list[TrainedModel]:
    """Return the models of folds with the target scale of the first, the training graphs of all and their `data`."""
    first = members[0].signature
    texts = [member.signature.training_graphs for member in members]
    shared: dict[str, Any] = {"target_mean": first.target_mean, "target_std": first.target_std}
    shared |= {"training_graphs": join_fingerprints(texts) if all(texts) else ""}
    unified = []
    for member in members:
        own = member.signature
        if own.target_scale != first.target_scale:
            _rescale(member, own.target_scale, first.target_scale)
        split = None if own.data is None or data is None else replace(own.data, split=data.split)
        unified.append(replace(member, signature=replace(own, data=split, **shared)))
    return unified


def _rescale(member: TrainedModel, own: TargetScale, common: TargetScale) -> None:
    """Change the last layer, and the kernel, so that their outputs are in the unit of `common`."""
    linear = [module for module in member.model.head.modules() if isinstance(module, torch.nn.Linear)]
    last: list[Any] = [linear[-1], member.model.kernel]
    mean, std, other_mean, other_std = torch.tensor([own.mean, own.std, common.mean, common.std], dtype=torch.float64)
    with torch.no_grad():
        for part in filter(None, last):
            part.weight.copy_(part.weight.double() * (std / other_std)[:, None])
            part.bias.copy_((part.bias.double() * std + mean - other_mean) / other_std)


MOST_SEEDS = 1000
"""A larger number is a typing error."""

Report = Callable[[Epoch, Run], None]


def run_ensemble(
    config: RunConfig,
    out: Path,
    seeds: int,
    *,
    task: Task | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Report | None = None,
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
    task = load_task(config) if task is None else with_metric(task, config.metric)
    configs = {seed: replace(config, seed=seed) for seed in range(config.seed, config.seed + seeds)}
    return run_members(configs, EnsembleFolder(out), task, summary, resume=resume, overwrite=overwrite, report=report)


def run_members(
    configs: Mapping[int, RunConfig],
    folder: EnsembleFolder,
    task: Task,
    summarize: Callable[[Ensemble, Task, list[dict[str, Any]]], dict[str, Any]],
    *,
    shared: Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Report | None = None,
) -> dict[str, Any]:
    """Train the runs of an ensemble, one for each seed or fold of `configs`, write `summarize` of them, and return it.

    `shared` is added to `ensemble.json`. A resumed ensemble becomes unfinished when its first epoch is added.
    """
    config, out, wanted, kind = next(iter(configs.values())), folder.path, list(configs), folder.kind
    if config.devices * config.num_nodes > 1 or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise RunError(
            f"several {kind}s are trained one after another in one process: leave out devices and num_nodes."
        )
    folder.check(wanted, resume=resume, overwrite=overwrite)
    if resume and not set(folder.numbers) <= set(wanted):
        raise RunError(
            f"{out} holds runs of the {kind}s {', '.join(map(str, folder.numbers))}, and some are not in {wanted[0]} "
            f"to {wanted[-1]}. Ask for at least these, or start again with --overwrite."
        )
    saved = {n: checked_config(folder.member(n)) for n in wanted if resume and folder.member(n).begun}
    fabric_for(config)
    for one in {one.fold: one for one in configs.values()}.values():  # before files are removed, or a network trained
        model = build_model(one, task)
        task = task.with_graphs(make_loaders(task, one, model, device="cpu").task.graphs)  # with paths, once for all
    begun = next(iter(saved.values()), config)
    entries = resolve_max_entries(begun.max_entries, model, resolve(config.device))
    automatic = [n for n, one in configs.items() if one.max_entries == "auto" and n not in saved]
    configs = {**configs, **{n: replace(configs[n], max_entries=entries) for n in automatic}}  # the same for all

    def tell(epoch: Epoch, ready: Run) -> None:
        if folder.result.exists() or folder.numbers != wanted:
            folder.write_members(wanted, shared or {})
        if report is not None:
            report(epoch, ready)

    with folder.lock():
        if overwrite:
            folder.clear({*folder.numbers, *wanted})
        if not folder.begun:
            folder.write_members(wanted, shared or {})
        paths = {number: folder.member(number).path for number in configs}
        results = [run(one, paths[n], task=task, resume=resume, report=tell) for n, one in configs.items()]
        result = summarize(load_members(folder), task, results)
        folder.write_result(result)
        return result


def summary(ensemble: Ensemble, task: Task, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the content of `result.json`: `test_score` is that of the mean of all predictions."""
    config = ensemble.config
    test, first = choose_split(task, config).test, results[0]
    found = score_ensemble(ensemble, task, test, device=resolve(config.device)).together if test.numel() else None
    return {
        **{name: first[name] for name in ("data", "model", "metric", "parameters", "fold", "device", "versions")},
        "split_seed": config.split_seed,
        "split_by": config.split_by,
        "seeds": [result["seed"] for result in results],
        "test_score": None if found is None else found.score,
        **result_scores({} if found is None else {"test": found}),
        **statistics("test", [result["test_score"] for result in results]),
        **statistics("val", [result["val_score"] for result in results]),
        "seconds": sum(result["seconds"] for result in results),
        "commit": commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def statistics(part: str, scores: Sequence[float | None]) -> dict[str, Any]:
    """Return mean and sample standard deviation of scores; None if one is missing or not finite."""
    each = [None if score is None or not math.isfinite(score) else score for score in scores]
    known = [score for score in each if score is not None]
    found = (mean(known), stdev(known)) if len(known) == len(each) else (None, None)
    return {f"{part}_each": each, f"{part}_mean": found[0], f"{part}_std": found[1]}
