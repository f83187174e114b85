"""Metrics by name, for each target and as a mean over targets; some targets may be unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.data import dim_zero_cat

from pathnn.data.errors import DataError


class MeanOverTargets(Metric):
    """The mean over targets of a score, over the graphs with a known target (not NaN).

    Targets without a defined score are skipped.

    >>> from pathnn.data.metrics import mean_absolute_error
    >>> metric = MeanOverTargets(mean_absolute_error)
    >>> metric.update(torch.zeros(3, 2), torch.tensor([[1.0, 4.0], [3.0, torch.nan], [2.0, torch.nan]]))
    >>> metric.compute()  # 2 and 4
    tensor(3.)
    """

    full_state_update = False
    out: Any
    y: Any

    def __init__(self, score: TargetScore) -> None:
        super().__init__()
        self.score = score
        self.add_state("out", [], dist_reduce_fx="cat")
        self.add_state("y", [], dist_reduce_fx="cat")

    def update(self, out: Tensor, y: Tensor) -> None:
        """Add predictions and targets, `[graphs, targets]` or `[graphs]`."""
        self.out.append(out.reshape(out.size(0), -1))
        self.y.append(y.reshape(y.size(0), -1))

    def compute(self) -> Tensor:
        """Return the mean over targets; NaN if no target has a defined score."""
        scores = score_targets(self.score, dim_zero_cat(self.out), dim_zero_cat(self.y))
        return scores.nanmean()


def score_targets(score: TargetScore, out: Tensor, y: Tensor) -> Tensor:
    """Return the score of each target, `[targets]`, over the graphs where it is known; NaN if not defined."""
    each = []
    for mine, truth in zip(out.unbind(dim=1), y.unbind(dim=1), strict=True):
        known = ~truth.isnan()
        each.append(score(mine[known], truth[known]))
    return torch.stack(each)


TargetScore = Callable[[Tensor, Tensor], Tensor]
"""A function of predictions and targets, `[graphs]` each; NaN where the score is not defined."""


@dataclass(frozen=True)
class MetricInfo:
    """The name of a metric in tables, whether larger is better, and the factor to the unit of tables."""

    name: str
    maximize: bool
    scale: float
    score: TargetScore


def mean_absolute_error(out: Tensor, y: Tensor) -> Tensor:
    """Return the mean of the absolute differences."""
    return (out - y).abs().mean()


def root_mean_square_error(out: Tensor, y: Tensor) -> Tensor:
    """Return the square root of the mean of the squared differences.

    >>> root_mean_square_error(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 7.0]))
    tensor(5.)
    """
    return (out - y).square().mean().sqrt()


def roc_auc(out: Tensor, y: Tensor) -> Tensor:
    """Return the area under the ROC curve; NaN if all targets are equal."""
    from torchmetrics.functional.classification import binary_auroc

    one_side = y.numel() == 0 or bool((y == y[0]).all())
    return out.new_tensor(float("nan")) if one_side else binary_auroc(_ranks(out), y.long())


def average_precision(out: Tensor, y: Tensor) -> Tensor:
    """Return the average precision; NaN if no target is 1."""
    return tied_average_precision(_ranks(out), y)


def tied_average_precision(out: Tensor, y: Tensor) -> Tensor:
    """Return the average precision of probabilities in float32, in which logits above about 17 are equal.

    The results on Peptides-func use it, as torchmetrics does.
    """
    from torchmetrics.functional.classification import binary_average_precision

    return binary_average_precision(out, y.long()) if bool((y == 1).any()) else out.new_tensor(float("nan"))


def _ranks(out: Tensor) -> Tensor:
    """Map outputs to 0..1 in the same order: torchmetrics takes probabilities of logits, and large ones are equal.

    >>> _ranks(torch.tensor([20.0, -5.0, 40.0, 20.0]))
    tensor([0.5000, 0.0000, 1.0000, 0.5000], dtype=torch.float64)
    """
    values, place = torch.unique(out, return_inverse=True)
    return place.double() / max(values.numel() - 1, 1)


METRICS = {
    "mae": MetricInfo("MAE", maximize=False, scale=1.0, score=mean_absolute_error),
    "rmse": MetricInfo("RMSE", maximize=False, scale=1.0, score=root_mean_square_error),
    "roc-auc": MetricInfo("ROC-AUC", maximize=True, scale=100.0, score=roc_auc),
    "ap": MetricInfo("AP", maximize=True, scale=100.0, score=average_precision),
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
    """Return the default metric of a kind of target; None without targets.

    >>> default_metric("binary"), default_metric("none")
    ('roc-auc', None)
    """
    return OF_KIND.get(kind, (None,))[0]


def check_metric(metric: str, kind: str) -> None:
    """Raise `DataError` unless the metric is for targets of this kind.

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
    """Return a function that makes the torchmetrics metric of a score, for `Task.metric`."""
    return partial(MeanOverTargets, score)
