"""Names of classes: what stands in a column of words or codes, in an order that does not depend on the rows'."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pathnn.data.metrics import METRICS, check_metric, mean_over_targets
from pathnn.data.task import Task


def class_key(name: str) -> Hashable:
    """What makes two names those of one class: the number, if they are numbers.

    >>> class_key("3") == class_key(" 3.0"), class_key("toxic") == class_key("Toxic")
    (True, False)
    """
    number = finite_number(name)
    return name.strip() if number is None else number


def class_names(values: Iterable[str]) -> tuple[str, ...]:
    """One name per class, the shortest: in the order of numbers if all are numbers, else of text.

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
    """The name of a class that is given as a number.

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
    """The number that a text is, maybe infinite or NaN; None where it is none. 1_2 is a name, though Python reads 12.

    >>> as_number(" 1e3"), as_number("1_2"), as_number("high")
    (1000.0, None, None)
    """
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def finite_number(text: str) -> float | None:
    """The number that a text is, None where it is none."""
    value = as_number(text)
    return value if value is not None and math.isfinite(value) else None


def known_fraction(y: Tensor | None) -> float:
    """The share of the targets that are known.

    >>> known_fraction(torch.tensor([[1.0, torch.nan], [0.0, 3.0]]))
    0.75
    """
    if y is None or not y.is_floating_point() or y.numel() == 0:
        return 1.0
    return float((~y.isnan()).double().mean())


class MaskedLoss(nn.Module):
    """A loss of each target, over those that are known: each weighs as much as any other, whichever batch it is in.

    The sum over a batch is divided by the number of targets times `share`, the share of them that is known in all of
    the data that is gone through (`loss_for`), and not by the number of those known in the batch. So the loss of a
    batch is the mean over its graphs still, and several processes, and steps that are padded, find the same one.
    Without a share a batch is taken to be all there is.

    >>> loss = MaskedLoss(nn.L1Loss)
    >>> loss(torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, torch.nan]]))
    tensor(2.)
    """

    def __init__(self, loss: type[nn.Module], share: float | None = None) -> None:
        super().__init__()
        if share is not None and not 0 < share <= 1:
            raise ValueError(f"share={share}: expected the share of known targets, above 0 and at most 1.")
        self.each, self.share, self.reduction = loss(reduction="none"), share, "mean"

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        """The mean, or with `reduction = "none"` a loss for each target: 0 where it is not known."""
        known = ~y.isnan()
        share = known.sum().clamp(min=1) / known.numel() if self.share is None else self.share
        each = torch.where(known, self.each(out, torch.where(known, y, 0.0)), 0.0) / share
        return each.mean() if self.reduction == "mean" else each


def loss_for(make: Callable[[], nn.Module], y: Tensor) -> nn.Module:
    """The loss that `make` makes, for batches of these targets: that of all is the mean over those that are known.

    >>> y = torch.tensor([[3.0, torch.nan], [1.0, 1.0]])
    >>> loss = loss_for(lambda: MaskedLoss(nn.L1Loss), y)
    >>> [round(float(loss(torch.zeros_like(part), part)), 4) for part in (y, y[:1], y[1:])]  # (3 + 1 + 1) / 3
    [1.6667, 2.0, 1.3333]
    """
    loss = make()
    if isinstance(loss, MaskedLoss):
        loss.share = known_fraction(y)
    return loss


def classification(num_classes: int) -> dict[str, Any]:
    """One class per graph: cross-entropy, accuracy in percent.

    >>> classification(3)["target"], classification(3)["out_channels"]
    ('class', 3)
    """
    return {
        "target": "class",
        "out_channels": num_classes,
        "loss": nn.CrossEntropyLoss,
        "metric": partial(_accuracy, num_classes),
        "metric_name": "accuracy",
        "maximize": True,
        "scale": 100.0,
    }


def regression(num_targets: int = 1, *, has_missing_targets: bool = False, metric: str = "mae") -> dict[str, Any]:
    """Numbers per graph: mean absolute error, as loss and as metric, or another metric (`METRICS`).

    >>> regression()["maximize"], regression(metric="rmse")["metric_name"]
    (False, 'RMSE')
    """
    return _numbers("regression", num_targets, nn.L1Loss, has_missing_targets, metric)


def binary(*, metric: str = "roc-auc") -> dict[str, Any]:
    """Yes or no per graph: binary cross-entropy, area under the ROC curve in percent, or another metric."""
    return _numbers("binary", 1, nn.BCEWithLogitsLoss, False, metric)


def multilabel(num_labels: int, *, has_missing_targets: bool = False, metric: str = "ap") -> dict[str, Any]:
    """Several yes or no per graph: binary cross-entropy, average precision (mean over labels) in percent, or another
    metric.
    """
    return _numbers("multilabel", num_labels, nn.BCEWithLogitsLoss, has_missing_targets, metric)


def with_metric(task: Task, metric: str | None) -> Task:
    """The task measured by another metric (None: as it is).

    >>> from pathnn.data import load_dataset
    >>> with_metric(load_dataset("csl"), "rmse")
    Traceback (most recent call last):
    ...
    pathnn.data.errors.DataError: metric='rmse' is not for targets of the kind 'class': expected accuracy.
    """
    if metric is None:
        return task
    check_metric(metric, task.target)
    if task.target == "class" or METRICS[metric].name == task.metric_name:
        return task  # its own
    return replace(task, **_measured_by(metric))


def _numbers(kind: str, channels: int, loss: type[nn.Module], has_missing_targets: bool, metric: str) -> dict[str, Any]:
    """What is said of targets that are numbers, some of which may be unknown."""
    check_metric(metric, kind)
    return {
        "target": kind,
        "out_channels": channels,
        "loss": partial(MaskedLoss, loss) if has_missing_targets else loss,
        "has_missing_targets": has_missing_targets,
        **_measured_by(metric),
    }


def _measured_by(metric: str) -> dict[str, Any]:
    facts = METRICS[metric]
    return {
        "metric": mean_over_targets(facts.score),
        "metric_name": facts.name,
        "score": facts.score,
        "maximize": facts.maximize,
        "scale": facts.scale,
    }


def _accuracy(num_classes: int) -> Any:
    from torchmetrics.classification import MulticlassAccuracy

    return MulticlassAccuracy(num_classes=num_classes, average="micro")


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target over the training graphs; empty where targets stay as they
    are.

    >>> scale = TargetScale.of(torch.tensor([[1.0], [3.0]]))
    >>> scale.decode(scale.encode(torch.tensor([[2.5]]))).item()
    2.5
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @staticmethod
    def of(y: Tensor) -> TargetScale:
        """The scale of training targets `[graphs, targets]`; a constant target is only shifted. NaN is not known, and
        passed over."""
        y = y.double()
        mean, std = _known_mean_std(y) if bool(y.isnan().any()) else (y.mean(dim=0), y.std(dim=0, correction=0))
        std = std.where(std > 0, 1.0)
        return TargetScale(tuple(mean.tolist()), tuple(std.tolist()))

    def encoder(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """`encode` for targets on this device, with its numbers there already: nothing is copied in a call."""
        if not self.mean:
            return lambda y: y
        mean, std = self._tensors(device)
        return lambda y: (y.double() - mean) / std

    def encode(self, y: Tensor) -> Tensor:
        """Targets as the network learns them, in float64; unchanged where there is no scale."""
        return self.encoder(y.device)(y)

    def decode(self, out: Tensor) -> Tensor:
        """The network's outputs in the targets' own unit, in float64; unchanged where there is no scale."""
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
