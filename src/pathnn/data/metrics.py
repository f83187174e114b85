"""Metrics by name: of classes, and of each target and as a mean over targets, some of which may be unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


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
    """The name of a metric in tables, how to compute it, whether larger is better, and the factor to its unit."""

    name: str
    score: TargetScore
    maximize: bool = True
    scale: float = 1.0


def mean_absolute_error(out: Tensor, y: Tensor) -> Tensor:
    """Return the mean of the absolute differences."""
    return (out - y).abs().mean()


def root_mean_square_error(out: Tensor, y: Tensor) -> Tensor:
    """Return the square root of the mean of the squared differences."""
    return (out - y).square().mean().sqrt()


def r2(out: Tensor, y: Tensor) -> Tensor:
    """Return the coefficient of determination; NaN if all targets are equal."""
    y = y.double()
    return _undefined(y) if _constant(y) else 1 - (out - y).square().sum() / (y - y.mean()).square().sum()


def pearson(out: Tensor, y: Tensor) -> Tensor:
    """Return Pearson's correlation coefficient; NaN if all predictions or all targets are equal."""
    if _constant(out) or _constant(y):
        return _undefined(y)
    both = torch.stack([out.double(), y.double()])
    a, b = both - both.mean(dim=1, keepdim=True)
    return (a @ b) / (a.norm() * b.norm())


def spearman(out: Tensor, y: Tensor) -> Tensor:
    """Return Spearman's rank correlation coefficient; NaN if all predictions or all targets are equal."""
    return pearson(_mean_ranks(out), _mean_ranks(y))


def _mean_ranks(values: Tensor) -> Tensor:
    """Return the ranks of values, from 1; equal values get the mean of their ranks."""
    _, place, count = torch.unique(values, return_inverse=True, return_counts=True)
    return (count.cumsum(0) - (count - 1).double() / 2)[place]


def roc_auc(out: Tensor, y: Tensor) -> Tensor:
    """Return the area under the ROC curve; NaN if all targets are equal."""
    from torchmetrics.functional.classification import binary_auroc

    return _undefined(out) if _constant(y) else binary_auroc(_ranks(out), y.long())


def _constant(values: Tensor) -> bool:
    return values.numel() == 0 or bool((values == values[0]).all())


def _undefined(like: Tensor) -> Tensor:
    return like.new_tensor(float("nan"))


def average_precision(out: Tensor, y: Tensor) -> Tensor:
    """Return the average precision; NaN if no target is 1."""
    return tied_average_precision(_ranks(out), y)


def tied_average_precision(out: Tensor, y: Tensor) -> Tensor:
    """Return the average precision of Peptides-func: of probabilities in float32, where logits above 17 are equal."""
    from torchmetrics.functional.classification import binary_average_precision

    return binary_average_precision(out, y.long()) if bool((y == 1).any()) else _undefined(out)


def _ranks(out: Tensor) -> Tensor:
    """Map outputs to 0..1 in the same order: torchmetrics takes probabilities of logits, and large ones are equal."""
    values, place = torch.unique(out, return_inverse=True)
    return place.double() / max(values.numel() - 1, 1)


def brier(out: Tensor, y: Tensor) -> Tensor:
    """Return the Brier score: the mean squared difference of probability and target."""
    return (out.double().sigmoid() - y).square().mean()


def accuracy(out: Tensor, y: Tensor) -> Tensor:
    """Return the share of graphs whose class has the largest output."""
    return (out.argmax(dim=1) == y).sum() / y.numel()


def balanced_accuracy(out: Tensor, y: Tensor) -> Tensor:
    """Return the mean recall of the classes that occur in the targets; of labels, NaN if all targets are equal."""
    table = _confusion(out, y)
    recall = table.diagonal() / table.sum(dim=1)
    return recall.mean() if out.dim() == 1 else recall.nanmean()


def f1(out: Tensor, y: Tensor) -> Tensor:
    """Return the mean F1 score of all classes that occur; of labels, the F1 score of 1, or NaN if no target is 1."""
    table = _confusion(out, y)
    each = 2 * table.diagonal() / (table.sum(dim=0) + table.sum(dim=1))
    if out.dim() > 1:
        return each.nanmean()
    return each[1] if bool((y == 1).any()) else _undefined(out)


def mcc(out: Tensor, y: Tensor) -> Tensor:
    """Return Matthews' correlation (Gorodkin 2004): 0 if all predictions are equal, NaN if all targets are equal."""
    table = _confusion(out, y)
    total, truth, predicted = table.sum(), table.sum(dim=1), table.sum(dim=0)
    shared = table.trace() * total - truth @ predicted
    of_truth, of_predicted = total**2 - truth @ truth, total**2 - predicted @ predicted
    return torch.where((of_truth > 0) & (of_predicted == 0), 0.0, shared / (of_truth * of_predicted).sqrt())


def _confusion(out: Tensor, y: Tensor) -> Tensor:
    """Count labels, for `out` `[graphs]` and probabilities above 0.5, or classes, for `out` `[graphs, classes]`."""
    return confusion(out > 0, y, 2) if out.dim() == 1 else confusion(out.argmax(dim=1), y, out.size(1))


def confusion(predicted: Tensor, y: Tensor, classes: int) -> Tensor:
    """Count the graphs by class and predicted class, `[classes, classes]`."""
    pairs = y.long() * classes + predicted.long()
    return torch.bincount(pairs, minlength=classes**2).view(classes, classes).double()


_BY_NAME = {
    "mae": MetricInfo("MAE", mean_absolute_error, maximize=False),
    "rmse": MetricInfo("RMSE", root_mean_square_error, maximize=False),
    "r2": MetricInfo("R2", r2),
    "pearson": MetricInfo("Pearson", pearson),
    "spearman": MetricInfo("Spearman", spearman),
    "roc-auc": MetricInfo("ROC-AUC", roc_auc, scale=100.0),
    "ap": MetricInfo("AP", average_precision, scale=100.0),
    "accuracy": MetricInfo("accuracy", accuracy, scale=100.0),
    "balanced-accuracy": MetricInfo("balanced accuracy", balanced_accuracy, scale=100.0),
    "f1": MetricInfo("F1", f1, scale=100.0),
    "mcc": MetricInfo("MCC", mcc),
    "brier": MetricInfo("Brier", brier, maximize=False),
}

_LABELS = ("roc-auc", "ap", "mcc", "f1", "balanced-accuracy", "brier")
_NAMES = {
    "class": ("accuracy", "balanced-accuracy", "f1", "mcc"),
    "binary": _LABELS,
    "multilabel": ("ap", *(name for name in _LABELS if name != "ap")),
    "regression": ("mae", "rmse", "r2", "pearson", "spearman"),
}
OF_KIND = {kind: {name: _BY_NAME[name] for name in names} for kind, names in _NAMES.items()}
"""The metrics of each kind of target by name, the default first."""


def default_metric(kind: str) -> str | None:
    """Return the default metric of a kind of target; None without targets."""
    return next(iter(OF_KIND.get(kind, ())), None)
