"""A trained model on new data: its outputs in the targets' own unit, its score, and a table for people."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import mean, stdev

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from pathnn.data.loader import PackedLoader
from pathnn.data.packed import PackedGraphs
from pathnn.data.targets import with_metric
from pathnn.data.task import Task
from pathnn.training.checkpoint import TaskSignature, TrainedModel
from pathnn.training.checks import check_finite, check_finite_targets
from pathnn.training.classes import align_classes
from pathnn.training.config import RunConfig
from pathnn.training.errors import MismatchError, RunError
from pathnn.training.scoring import Evaluation, measure, predict, target_scores, targets
from pathnn.training.setup import Model, has_paths, resolve_max_entries, with_paths


def infer(
    trained: TrainedModel, task: Task, index: Tensor | None = None, *, device: torch.device | str = "cpu"
) -> Tensor:
    """The network's outputs for the graphs `index` of a task (None: all), in the network's own unit.

    ```python
    trained = load_model(Path("run/model.safetensors"))
    out = infer(trained, load_data("new.csv", targets=[]))
    logS = trained.facts.target_scale.decode(out)                # in the unit of the target
    ```
    """
    trained.facts.check_inputs(task)
    check_finite(task)
    model = trained.model.to(device)
    graphs, index = graphs_to_read(task.graphs, index, model)
    if (len(graphs) if index is None else index.numel()) == 0:
        raise RunError(f"{task.name}: there are no graphs to predict for.")
    loader = PackedLoader(
        with_paths(graphs, model, device),
        index,
        batch_size=trained.config.batch_size,
        max_entries=resolve_max_entries("auto", model, device),
        device=device,
    )
    return predict(model, loader)


def graphs_to_read(graphs: PackedGraphs, index: Tensor | None, model: Model) -> tuple[PackedGraphs, Tensor | None]:
    """Of graphs without paths those that are asked for alone, since a subset has no paths; of others all, and which."""
    if index is None or has_paths(graphs, model):
        return graphs, index
    return graphs.subset(index), None


def comparable(facts: TaskSignature, task: Task) -> Task:
    """The task with its classes numbered as in training, if its targets can be compared with the model's outputs."""
    facts.check_inputs(task)
    if facts.target == "class":
        task = align_classes(task, facts.classes)
    facts.check_targets(task)
    check_finite_targets(task)
    return task


@dataclass(frozen=True, eq=False)
class Ensemble:
    """TrainedModel networks of one task that differ in their seeds; a single network is an ensemble of one."""

    members: tuple[TrainedModel, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("an ensemble needs at least one network.")
        first = self.members[0]
        for other in self.members[1:]:
            if replace(other.facts, name=first.facts.name) != first.facts:
                raise MismatchError(
                    f"the networks of seeds {first.config.seed} and {other.config.seed} were trained on other data, or "
                    "another split of it: expected the same. Train them again with --overwrite."
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
        """How the first network was trained; the others differ in the seed."""
        return self.members[0].config

    @property
    def facts(self) -> TaskSignature:
        """What all were trained for."""
        return self.members[0].facts


MAY_DIFFER = {"seed", "data", "max_entries", "device", "devices", "num_nodes", "epochs"}
"""Options that may differ: the seed, what the data was called, where it ran and how long it might."""


def _different(first: RunConfig, other: RunConfig) -> list[str]:
    mine, theirs = first.to_dict(), other.to_dict()
    return [name for name in mine if name not in MAY_DIFFER and mine[name] != theirs[name]]


@dataclass(frozen=True)
class EnsembleScore:
    """What came out: of the mean of all predictions, and of each network by itself; of several targets also the scores
    of each target by the mean of all predictions. `metric` is the name of what was measured.
    """

    metric: str
    together: Evaluation
    each: tuple[Evaluation, ...]
    targets: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """The mean of the networks' own scores."""
        return mean(one.score for one in self.each)

    @property
    def std(self) -> float:
        """The sample standard deviation of the networks' own scores; NaN for a single one, and where one is NaN."""
        scores = [one.score for one in self.each]
        return stdev(scores) if len(scores) > 1 and all(map(math.isfinite, scores)) else math.nan


def infer_each(
    ensemble: Ensemble, task: Task, index: Tensor | None = None, *, device: torch.device | str = "cpu"
) -> Tensor:
    """The outputs of every network for the graphs `index` of a task (None: all): `[networks, graphs, channels]`.

    ```python
    ensemble = EnsembleFolder(Path("three")).load()
    outputs = infer_each(ensemble, load_data("new.csv", targets=[]))
    print(outputs.std(dim=0))                                    # how far the networks differ
    ```
    """
    ensemble.facts.check_inputs(task)
    check_finite(task)
    model = ensemble.members[0].model
    graphs, index = graphs_to_read(task.graphs, index, model)
    task = task.with_graphs(with_paths(graphs, model, device) if len(graphs) else graphs)  # once for all
    return torch.stack([infer(trained, task, index, device=device) for trained in ensemble.members])


def combine(outputs: Tensor, target: str) -> Tensor:
    """One output for each graph, from those of several networks, `[networks, graphs, channels]`: their mean, or where
    outputs stand for probabilities, what stands for the mean probability.

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
    """Loss and score on the graphs `index` of a task (None: all), as `pathnn.training.score` has them for one network.

    ```python
    ensemble = EnsembleFolder(Path("three")).load()
    found = score_ensemble(ensemble, load_data("molecules.csv", targets="logS"))
    print(found.together.score, [one.score for one in found.each])
    ```
    """
    task = with_metric(comparable(ensemble.facts, task), metric or ensemble.facts.metric)
    index = torch.arange(len(task.graphs)) if index is None else index
    outputs, y = infer_each(ensemble, task, index, device=device), targets(task, index)
    scale = ensemble.facts.target_scale
    mean = combine(outputs, ensemble.facts.target)
    each = tuple(measure(out, y, task, scale) for out in outputs)
    together = measure(mean, y, task, scale)
    return EnsembleScore(task.metric_name, together, each, target_scores(scale.decode(mean), y, task))
