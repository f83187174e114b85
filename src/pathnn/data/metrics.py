"""Metrics by name: what each is for one target, and for which kinds of targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pathnn.data.errors import DataError

if TYPE_CHECKING:
    from torchmetrics import Metric

TargetScore = Callable[[Tensor, Tensor], Tensor]
"""From the predictions and targets of some graphs, `[graphs]` each, to a number; NaN where it is not defined."""


@dataclass(frozen=True)
class MetricFacts:
    """What a metric is called in tables, whether a larger one is better, and the factor to the unit of tables."""

    name: str
    maximize: bool
    scale: float
    score: TargetScore


def mean_absolute_error(out: Tensor, y: Tensor) -> Tensor:
    """The mean of the differences."""
    return (out - y).abs().mean()


def root_mean_square_error(out: Tensor, y: Tensor) -> Tensor:
    """The root of the mean of the squares of the differences.

    >>> root_mean_square_error(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 7.0]))
    tensor(5.)
    """
    return (out - y).square().mean().sqrt()


def roc_auc(out: Tensor, y: Tensor) -> Tensor:
    """The area under the ROC curve; NaN where all are yes, or all no."""
    from torchmetrics.functional.classification import binary_auroc

    one_side = y.numel() == 0 or bool((y == y[0]).all())
    return out.new_tensor(float("nan")) if one_side else binary_auroc(_ranks(out), y.long())


def average_precision(out: Tensor, y: Tensor) -> Tensor:
    """The area under the curve of precision over recall; NaN where nothing is yes."""
    return tied_average_precision(_ranks(out), y)


def tied_average_precision(out: Tensor, y: Tensor) -> Tensor:
    """The same as torchmetrics has it of logits, from their probabilities in float32: above 17 or so, all are equal.

    The runs on Peptides-func are measured so.
    """
    from torchmetrics.functional.classification import binary_average_precision

    return binary_average_precision(out, y.long()) if bool((y == 1).any()) else out.new_tensor(float("nan"))


def _ranks(out: Tensor) -> Tensor:
    """Numbers from 0 to 1 in the same order. Of logits torchmetrics takes probabilities, and large ones are then equal.

    >>> _ranks(torch.tensor([20.0, -5.0, 40.0, 20.0]))
    tensor([0.5000, 0.0000, 1.0000, 0.5000], dtype=torch.float64)
    """
    values, place = torch.unique(out, return_inverse=True)
    return place.double() / max(values.numel() - 1, 1)


METRICS = {
    "mae": MetricFacts("MAE", maximize=False, scale=1.0, score=mean_absolute_error),
    "rmse": MetricFacts("RMSE", maximize=False, scale=1.0, score=root_mean_square_error),
    "roc-auc": MetricFacts("ROC-AUC", maximize=True, scale=100.0, score=roc_auc),
    "ap": MetricFacts("AP", maximize=True, scale=100.0, score=average_precision),
}

METRIC_NAMES = ("accuracy", *METRICS)

OF_KIND = {
    "class": ("accuracy",),
    "binary": ("roc-auc", "ap"),
    "multilabel": ("ap", "roc-auc"),
    "regression": ("mae", "rmse"),
}
"""The metrics of each kind of target, the default first."""


def default_metric(kind: str) -> str | None:
    """The metric of a kind of target where none is asked for; None where there are no targets.

    >>> default_metric("binary"), default_metric("none")
    ('roc-auc', None)
    """
    return OF_KIND.get(kind, (None,))[0]


def check_metric(metric: str, kind: str) -> None:
    """Raise `DataError` unless targets of this kind can be measured so.

    >>> check_metric("rmse", "class")
    Traceback (most recent call last):
    ...
    pathnn.data.errors.DataError: metric='rmse' is not for targets of the kind 'class': expected accuracy.
    """
    fitting = OF_KIND.get(kind, ())
    if metric not in fitting:
        expected = " or ".join(fitting) if fitting else "none, since there are no targets"
        raise DataError(f"metric={metric!r} is not for targets of the kind {kind!r}: expected {expected}.")


def mean_over_targets(score: TargetScore) -> Callable[[], Metric]:
    """What makes the torchmetrics metric that is the mean over targets of a score, as `Task.metric` wants it."""
    return partial(_mean_over_targets, score)


def _mean_over_targets(score: TargetScore) -> Metric:
    from pathnn.data.mean_over_targets import MeanOverTargets

    return MeanOverTargets(score)
