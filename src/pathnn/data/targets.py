"""Targets: names of classes, kinds of targets with their losses and metrics, and the scale of a regression."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pathnn.data.metrics import OF_KIND, OverClasses, check_metric, mean_over_targets
from pathnn.data.task import Task


def class_key(name: str) -> Hashable:
    """Return a key that is equal for two names of one class: the number, if they are numbers.

    >>> class_key("3") == class_key(" 3.0"), class_key("toxic") == class_key("Toxic")
    (True, False)
    """
    number = finite_number(name)
    return name.strip() if number is None else number


def class_names(values: Iterable[str]) -> tuple[str, ...]:
    """Return one name per class, the shortest; sorted as numbers if all are numbers, else as text.

    >>> class_names(["10", "9", "9.0"]), class_names(["toxic", "safe", "toxic"])
    (('9', '10'), ('safe', 'toxic'))
    """
    names: dict[Hashable, str] = {}
    for value in sorted({value.strip() for value in values}, key=lambda value: (len(value), value)):
        names.setdefault(class_key(value), value)
    if all(isinstance(key, float) for key in names):
        return tuple(sorted(names.values(), key=float))
    return tuple(sorted(names.values()))


def number_name(value: float) -> str:
    """Name a class that is given as a number.

    >>> number_name(1234567.0), number_name(-1), number_name(0.5)
    ('1234567', '-1', '0.5')
    """
    return str(int(value)) if value == int(value) else repr(float(value))


def is_missing(value: str | None) -> bool:
    """Return whether a value names no class: it is empty or NaN.

    >>> is_missing(" "), is_missing("NaN"), is_missing("none")
    (True, True, False)
    """
    return value is None or value.strip().lower() in ("", "nan")


def is_missing_number(value: str | None) -> bool:
    """Return whether a value of a column of numbers is empty, or a word for a missing number.

    >>> is_missing_number("N/A"), is_missing_number("None"), is_missing_number("0")
    (True, True, False)
    """
    return value is None or value.strip().lower().strip("<>#") in ("", "nan", "na", "n/a", "null", "none")


def as_number(text: str) -> float | None:
    """Parse a number, maybe infinite or NaN; None for other text. 1_2 is a name, although Python reads 12.

    >>> as_number(" 1e3"), as_number("1_2"), as_number("high")
    (1000.0, None, None)
    """
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def finite_number(text: str) -> float | None:
    """Parse a finite number; None for other text."""
    value = as_number(text)
    return value if value is not None and math.isfinite(value) else None


def known_fraction(y: Tensor | None) -> float:
    """Return the fraction of the targets that are known.

    >>> known_fraction(torch.tensor([[1.0, torch.nan], [0.0, 3.0]]))
    0.75
    """
    if y is None or not y.is_floating_point() or y.numel() == 0:
        return 1.0
    return float((~y.isnan()).double().mean())


class MaskedLoss(nn.Module):
    """A loss over the known targets, which all have the same weight, whatever their batch.

    The sum over a batch is divided by its number of targets times `share`, the fraction of known targets in all data
    (`loss_for`), not by the number of known targets in the batch. The loss of a batch is then a mean over its graphs,
    and is the same with several processes and with padded batches. Without `share`, the batch is all data.

    >>> loss = MaskedLoss(nn.L1Loss)
    >>> loss(torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, torch.nan]]))
    tensor(2.)
    """

    def __init__(self, loss: Callable[..., nn.Module], share: float | None = None) -> None:
        super().__init__()
        if share is not None and not 0 < share <= 1:
            raise ValueError(f"share={share}: expected the fraction of known targets, above 0 and at most 1.")
        self.each, self.share, self.reduction = loss(reduction="none"), share, "mean"

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        """Return the mean; with `reduction = "none"`, the loss of each target, 0 for an unknown one."""
        known = ~y.isnan()
        share = known.sum().clamp(min=1) / known.numel() if self.share is None else self.share
        each = torch.where(known, self.each(out, torch.where(known, y, torch.zeros_like(y))), 0.0) / share
        return each.mean() if self.reduction == "mean" else each


def loss_for(make: Callable[[], nn.Module], y: Tensor) -> nn.Module:
    """Make the loss for batches of the targets `y`; over all of `y` it is the mean over the known targets.

    >>> y = torch.tensor([[3.0, torch.nan], [1.0, 1.0]])
    >>> loss = loss_for(lambda: MaskedLoss(nn.L1Loss), y)
    >>> [round(float(loss(torch.zeros_like(part), part)), 4) for part in (y, y[:1], y[1:])]  # (3 + 1 + 1) / 3
    [1.6667, 2.0, 1.3333]
    """
    loss = make()
    if isinstance(loss, MaskedLoss):
        loss.share = known_fraction(y)
    return loss


LOSSES: dict[str, type[nn.Module]] = {"l1": nn.L1Loss, "mse": nn.MSELoss, "huber": nn.HuberLoss}
"""The losses of a regression by name."""


def regression_loss(task: Task, name: str) -> Callable[[], nn.Module]:
    """Return how to make the loss of a regression by its name; the loss is masked if targets may be unknown."""
    return partial(MaskedLoss, LOSSES[name]) if task.has_missing_targets else LOSSES[name]


def weighted_loss(task: Task, y: Tensor) -> Callable[[], nn.Module]:
    """Return how to make a loss whose weights are inversely proportional to the class frequencies in `y`.

    The weight of a class has the mean 1 over the graphs. Of labels, the known ones of 1 together weigh as much as those
    of 0. The loss of a batch is the mean over its graphs, as of `MaskedLoss`.

    >>> from pathnn.data import load_dataset
    >>> loss = weighted_loss(load_dataset("exp"), torch.tensor([0, 0, 0, 1]))()
    >>> loss.each.weight
    tensor([0.6667, 2.0000])
    """
    if task.target == "class":
        counts = torch.bincount(y, minlength=task.out_channels).clamp(min=1)
        weight = y.numel() / (counts.numel() * counts)
        return partial(MaskedLoss, partial(nn.CrossEntropyLoss, weight=weight), 1.0)
    weight = (y == 0).sum(dim=0).clamp(min=1) / (y == 1).sum(dim=0).clamp(min=1)
    weighted = partial(nn.BCEWithLogitsLoss, pos_weight=weight)
    return partial(MaskedLoss, weighted) if task.has_missing_targets else weighted


def classification(num_classes: int) -> dict[str, Any]:
    """Describe one class per graph: cross-entropy, accuracy in percent.

    >>> classification(3)["target"], classification(3)["out_channels"]
    ('class', 3)
    """
    return {
        "target": "class",
        "out_channels": num_classes,
        "loss": nn.CrossEntropyLoss,
        **_measured_by("accuracy", "class"),
    }


def regression(num_targets: int = 1, *, has_missing_targets: bool = False, metric: str = "mae") -> dict[str, Any]:
    """Describe numbers per graph: mean absolute error as loss and metric, or another metric (`OF_KIND`).

    >>> regression()["maximize"], regression(metric="rmse")["metric_name"]
    (False, 'RMSE')
    """
    return _numbers("regression", num_targets, nn.L1Loss, has_missing_targets, metric)


def binary(*, metric: str = "roc-auc") -> dict[str, Any]:
    """Describe a target of 0 or 1 per graph: binary cross-entropy, ROC-AUC in percent, or another metric."""
    return _numbers("binary", 1, nn.BCEWithLogitsLoss, False, metric)


def multilabel(num_labels: int, *, has_missing_targets: bool = False, metric: str = "ap") -> dict[str, Any]:
    """Describe several targets of 0 or 1 per graph: binary cross-entropy, and the mean over labels of the average
    precision in percent, or another metric.
    """
    return _numbers("multilabel", num_labels, nn.BCEWithLogitsLoss, has_missing_targets, metric)


def with_metric(task: Task, metric: str | None) -> Task:
    """Replace the metric of a task (None: keep it).

    >>> from pathnn.data import load_dataset
    >>> with_metric(load_dataset("csl"), "f1").metric_name
    'F1'
    """
    if metric is None:
        return task
    check_metric(metric, task.target)
    if OF_KIND[task.target][metric].name == task.metric_name:
        return task
    return replace(task, **_measured_by(metric, task.target))


def _numbers(kind: str, channels: int, loss: type[nn.Module], has_missing_targets: bool, metric: str) -> dict[str, Any]:
    """Describe targets that are numbers; some may be unknown."""
    check_metric(metric, kind)
    return {
        "target": kind,
        "out_channels": channels,
        "loss": partial(MaskedLoss, loss) if has_missing_targets else loss,
        "has_missing_targets": has_missing_targets,
        **_measured_by(metric, kind),
    }


def _measured_by(metric: str, kind: str) -> dict[str, Any]:
    info, classes = OF_KIND[kind][metric], kind == "class"
    return {
        "metric": partial(OverClasses, info.score) if classes else mean_over_targets(info.score),
        "metric_name": info.name,
        "score": None if classes else info.score,
        "maximize": info.maximize,
        "scale": info.scale,
    }


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target over the training graphs; empty for targets without a scale.

    >>> scale = TargetScale.of(torch.tensor([[1.0], [3.0]]))
    >>> scale.decode(scale.encode(torch.tensor([[2.5]]))).item()
    2.5
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @staticmethod
    def of(y: Tensor) -> TargetScale:
        """Compute the scale of training targets `[graphs, targets]`; skip NaN, and only shift a constant target."""
        y = y.double()
        mean, std = _known_mean_std(y) if bool(y.isnan().any()) else (y.mean(dim=0), y.std(dim=0, correction=0))
        std = std.where(std > 0, 1.0)
        return TargetScale(tuple(mean.tolist()), tuple(std.tolist()))

    def encoder(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """Return `encode` for targets on `device`; a call copies nothing to it."""
        if not self.mean:
            return lambda y: y
        mean, std = self._tensors(device)
        return lambda y: (y.double() - mean) / std

    def encode(self, y: Tensor) -> Tensor:
        """Standardize targets, in float64; unchanged without a scale."""
        return self.encoder(y.device)(y)

    def decode(self, out: Tensor) -> Tensor:
        """Convert outputs of the network to the unit of the targets, in float64; unchanged without a scale."""
        if not self.mean:
            return out
        mean, std = self._tensors(out.device)
        return out.double() * std + mean

    def _tensors(self, device: torch.device) -> tuple[Tensor, Tensor]:
        mean, std = torch.tensor([self.mean, self.std], dtype=torch.float64, device=device)
        return mean, std


def _known_mean_std(y: Tensor) -> tuple[Tensor, Tensor]:
    mean = y.nanmean(dim=0)
    return mean, (y - mean).square().nanmean(dim=0).sqrt()
