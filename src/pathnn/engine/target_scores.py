"""The score of each of several targets."""

from __future__ import annotations

import math

from torch import Tensor

from pathnn.data.task import Task
from pathnn.engine.evaluate import as_targets


def target_scores(out: Tensor, y: Tensor, task: Task) -> tuple[float, ...]:
    """The metric of each target by itself, over the graphs for which it is known; none for one target or for classes.

    `out` is in the targets' unit. NaN is not defined: nothing is known, or nothing is yes. The mean of the others is
    the metric of the task.
    """
    if task.target not in ("multilabel", "regression") or task.out_channels < 2:
        return ()
    y = as_targets(y, out)
    return tuple(_score(out[:, i], y[:, i], task) for i in range(task.out_channels))


def _score(out: Tensor, y: Tensor, task: Task) -> float:
    from torchmetrics.functional.classification import binary_average_precision

    known = ~y.isnan()
    out, y = out[known], y[known]
    if task.target == "regression":
        return float((out - y).abs().mean()) * task.scale
    return float(binary_average_precision(out, y.long())) * task.scale if bool((y == 1).any()) else math.nan
