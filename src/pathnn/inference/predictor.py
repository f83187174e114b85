"""A trained model on new data: its outputs in the targets' own unit, its score, and a table for people."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

import torch
from torch import Tensor

from pathnn.data.targets import with_metric
from pathnn.data.task import Task
from pathnn.training.checkpoint import TaskSignature, TrainedModel
from pathnn.training.ensemble import combine
from pathnn.training.scoring import Evaluation, comparable, measure, predict, targets


def score(
    trained: TrainedModel,
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
    task = with_metric(comparable(trained.signature, task), metric or trained.signature.metric)
    index = torch.arange(len(task.graphs)) if index is None else index
    out = predict(trained, task, index, device=device)
    return measure(out, targets(task, index), task, trained.signature.target_scale)


def prediction_columns(out: Tensor, signature: TaskSignature) -> dict[str, list[str | int | float]]:
    """Outputs as columns for people: predicted values, classes, or probabilities.

    >>> signature = TaskSignature("a", "regression", 1, 3, None, "MAE", False, 1.0, ["logS"])
    >>> prediction_columns(torch.tensor([[0.1]]), signature)
    {'predicted_logS': [0.1]}
    >>> shifted = TaskSignature("a", "regression", 1, 3, None, "MAE", False, 1.0, ["mass"], (1e7,), (0.5,))
    >>> prediction_columns(torch.tensor([[0.1]]), shifted)
    {'predicted_mass': [10000000.05]}
    """
    std = signature.target_scale.std
    out = signature.target_scale.decode(out).cpu()
    count = 1 if signature.target == "binary" else signature.out_channels
    given = signature.classes if len(signature.classes) == count else []
    names = given or [str(i) for i in range(count)]
    if signature.target == "class":
        probability = out.softmax(dim=1)
        chosen = [names[i] for i in out.argmax(dim=1).tolist()]
        columns = {f"probability_{name}": _numbers(probability[:, i]) for i, name in enumerate(names)}
        return {"predicted_class": chosen, **columns}
    if signature.target in ("binary", "multilabel"):
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


def ensemble_columns(outputs: Tensor, signature: TaskSignature) -> dict[str, list[str | int | float]]:
    """Outputs of several networks as columns for people: what `prediction_columns` makes of their mean, and after each
    number its standard deviation over the networks.

    >>> signature = TaskSignature("a", "regression", 1, 3, None, "MAE", False, 1.0, ["logS"])
    >>> ensemble_columns(torch.tensor([[[1.0]], [[3.0]]]), signature)
    {'predicted_logS': [2.0], 'predicted_logS_std': [1.4142...]}
    """
    mean = prediction_columns(combine(outputs, signature.target), signature)
    if outputs.size(0) == 1:
        return mean
    each, columns = [prediction_columns(out, signature) for out in outputs], {}
    for name, values in mean.items():
        columns[name] = values
        if not any(isinstance(value, str) for value in values):
            columns[free_name(f"{name}_std", mean)] = _deviation([column[name] for column in each])
    return columns


def free_name(name: str, taken: Container[str]) -> str:
    """A name like `name` that is not taken.

    >>> free_name("y", ["x", "y"])
    'y_'
    """
    return name if name not in taken else free_name(f"{name}_", taken)


def _deviation(values: Sequence[Sequence[str | int | float]]) -> list[str | int | float]:
    numbers = torch.tensor([[float(value) for value in column] for column in values], dtype=torch.float64)
    return [float(f"{value:.6g}") for value in numbers.std(dim=0).tolist()]
