"""The loss and the metric of a model on some graphs, by its task's own rules."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from lightning.fabric import Fabric
from torch import Tensor
from torchmetrics import Metric

from pathnn.data.loader import PackedLoader
from pathnn.data.targets import TargetScale, for_targets
from pathnn.data.task import Task
from pathnn.engine.build import Model
from pathnn.engine.errors import RunError
from pathnn.engine.predict import Forward, predict


@dataclass(frozen=True)
class Evaluation:
    """What came out: `score` is the metric in the unit of the paper (percent for accuracy), NaN where it is not
    defined: the ROC curve of graphs that are all yes, or all no.
    """

    loss: float
    score: float
    graphs: int


def evaluate(
    model: Model,
    loader: PackedLoader,
    task: Task,
    *,
    scale: TargetScale | None = None,
    fabric: Fabric | None = None,
    forward: Forward | None = None,
) -> Evaluation:
    """Loss and score of `model` on the graphs of `loader`, the same in every process.

    The metric sees all graphs at once, so that it does not depend on the batch size. `forward` is as in `predict`.

    ```python
    task, config = load_dataset("csl"), RunConfig(data="csl", collection="sp", k=2)
    model = build_model(config, task)
    loaders = make_loaders(task, config, model, device="cpu")
    print(evaluate(model, loaders.test, loaders.task).score)     # of a network that has learned nothing
    ```
    """
    if loader.index.numel() == 0:
        raise RunError(f"{task.name}: there are no graphs to evaluate on.")
    scale = TargetScale() if scale is None else scale
    out = predict(model, loader, fabric=fabric, forward=forward)
    return measure(out, targets(task, loader.index), task, scale)


def measure(out: Tensor, y: Tensor, task: Task, scale: TargetScale, *, metric: Metric | None = None) -> Evaluation:
    """Loss and score of the network's outputs (in its own unit) against targets. `metric` is one that `task` has made,
    to be used again.
    """
    if task.loss is None or task.metric is None:
        raise RunError(f"{task.name} has no targets: expected a task with a loss and a metric.")
    y, decoded = y.to(out.device), scale.decode(out)
    loss = float(for_targets(task.loss, y)(out, as_targets(scale.encode(y), out)))
    if metric is None:
        metric = task.metric().to(out.device)
        metric.set_dtype(decoded.dtype)
    metric.reset()
    metric.update(*task.scores(decoded, y))
    return Evaluation(loss, float(metric.compute()) * task.scale, out.size(0))


def targets(task: Task, index: Tensor) -> Tensor:
    """The targets of some graphs."""
    y = task.graphs.y
    if y is None:
        raise RunError(f"{task.name} has no targets: for a CSV, name the column with --target.")
    return y[index.to(y.device)]


def as_targets(y: Tensor, out: Tensor) -> Tensor:
    """Targets as the loss of these outputs reads them: there, and of their type unless they are classes.

    >>> as_targets(torch.tensor([True, False]), torch.zeros(2)).dtype
    torch.float32
    """
    y = y.to(out.device)
    return y.to(out.dtype) if y.is_floating_point() or y.dtype == torch.bool else y
