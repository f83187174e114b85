"""A trained model on new data: its outputs in the targets' own unit, its score, and a table for people."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pathnn.data.loader import PackedLoader
from pathnn.data.packed import PackedGraphs
from pathnn.data.targets import with_metric
from pathnn.data.task import Task
from pathnn.engine.build import Model
from pathnn.engine.checkpoint import Trained
from pathnn.engine.checks import check_finite, check_finite_targets
from pathnn.engine.classes import align_classes
from pathnn.engine.errors import RunError
from pathnn.engine.evaluate import Evaluation, measure, targets
from pathnn.engine.facts import TaskFacts
from pathnn.engine.loaders import has_paths, resolve_max_entries, with_paths
from pathnn.engine.predict import predict


def infer(trained: Trained, task: Task, index: Tensor | None = None, *, device: torch.device | str = "cpu") -> Tensor:
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


def score(
    trained: Trained,
    task: Task,
    index: Tensor | None = None,
    *,
    metric: str | None = None,
    device: torch.device | str = "cpu",
) -> Evaluation:
    """Loss and score of a trained model on the graphs `index` of a task (None: all).

    Classes are compared by their names, however the task numbers them; see `align_classes`. `metric` is one of
    `pathnn.data.metrics`; None for that of training.

    ```python
    trained, task = load_model(Path("run/model.safetensors")), load_data("molecules.csv", targets="logS")
    print(score(trained, task, task.splits[0].test, metric="rmse").score)
    ```
    """
    task = with_metric(comparable(trained.facts, task), metric or trained.facts.metric)
    index = torch.arange(len(task.graphs)) if index is None else index
    out = infer(trained, task, index, device=device)
    return measure(out, targets(task, index), task, trained.facts.target_scale)


def comparable(facts: TaskFacts, task: Task) -> Task:
    """The task with its classes numbered as in training, if its targets can be compared with the model's outputs."""
    facts.check_inputs(task)
    if facts.target == "class":
        task = align_classes(task, facts.classes)
    facts.check_targets(task)
    check_finite_targets(task)
    return task


def prediction_columns(out: Tensor, facts: TaskFacts) -> dict[str, list[str | int | float]]:
    """Outputs as columns for people: predicted values, classes, or probabilities.

    >>> facts = TaskFacts("a", "regression", 1, 3, None, "MAE", False, 1.0, ["logS"])
    >>> prediction_columns(torch.tensor([[0.1]]), facts)
    {'predicted_logS': [0.1]}
    >>> shifted = TaskFacts("a", "regression", 1, 3, None, "MAE", False, 1.0, ["mass"], (1e7,), (0.5,))
    >>> prediction_columns(torch.tensor([[0.1]]), shifted)
    {'predicted_mass': [10000000.05]}
    """
    std = facts.target_scale.std
    out = facts.target_scale.decode(out).cpu()
    count = 1 if facts.target == "binary" else facts.out_channels
    given = facts.classes if len(facts.classes) == count else []
    names = given or [str(i) for i in range(count)]
    if facts.target == "class":
        probability = out.softmax(dim=1)
        chosen = [names[i] for i in out.argmax(dim=1).tolist()]
        columns = {f"probability_{name}": _numbers(probability[:, i]) for i, name in enumerate(names)}
        return {"predicted_class": chosen, **columns}
    if facts.target in ("binary", "multilabel"):
        plain = ["probability"] if count == 1 and not given else [f"probability_{name}" for name in names]
        return {name: _numbers(out[:, i].sigmoid()) for i, name in enumerate(plain)}
    plain = ["prediction"] if count == 1 and not given else [f"predicted_{name}" for name in names]
    return {name: _numbers(out[:, i], std[i] if std else None) for i, name in enumerate(plain)}


def _numbers(column: Tensor, std: float | None = None) -> list[str | int | float]:
    """The numbers as short as their type allows: 0.1, and not 0.10000000149011612. With the standard deviation that
    they were learned in they keep seven digits of it, which is what the network's outputs have, whatever their mean."""
    if std is not None:
        return [round(value, 7 - math.floor(math.log10(std))) for value in column.tolist()]
    return [float(str(value)) for value in column.numpy()]
