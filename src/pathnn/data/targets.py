"""Targets: names of classes, kinds of targets with their losses and metrics, and the scale of a regression."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pathnn.data.errors import DataError
from pathnn.data.metrics import OF_KIND, MeanOverTargets, MetricInfo, OverClasses, check_metric
from pathnn.data.task import TargetKind, Task


def class_key(name: str) -> Hashable:
    """Return a key that is equal for two names of one class: the number, if they are numbers."""
    number = as_number(name)
    return name.strip() if number is None or not math.isfinite(number) else number


def class_names(values: Iterable[str]) -> tuple[str, ...]:
    """Return one name per class, the shortest; sorted as numbers if all are numbers, else as text."""
    names: dict[Hashable, str] = {}
    for value in sorted({value.strip() for value in values}, key=lambda value: (len(value), value)):
        names.setdefault(class_key(value), value)
    numbers = all(isinstance(key, float) for key in names)
    return tuple(sorted(names.values(), key=float if numbers else None))


def number_name(value: float) -> str:
    """Name a class that is given as a number."""
    return str(int(value)) if value == int(value) else repr(float(value))


def is_missing(value: str | None) -> bool:
    """Return whether a value names no class: it is empty or NaN."""
    return value is None or value.strip().lower() in ("", "nan")


def is_missing_number(value: str | None) -> bool:
    """Return whether a value of a column of numbers is empty, or a word for a missing number."""
    return value is None or value.strip().lower().strip("<>#") in ("", "nan", "na", "n/a", "null", "none")


def as_number(text: str) -> float | None:
    """Parse a number, maybe infinite or NaN; None for other text. 1_2 is a name, although Python reads 12."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def known_fraction(y: Tensor | None) -> float:
    """Return the fraction of the targets that are known."""
    if y is None or not y.is_floating_point() or y.numel() == 0:
        return 1.0
    return float((~y.isnan()).double().mean())


class MaskedLoss(nn.Module):
    """A loss over the known targets, which all have the same weight, whatever their batch.

    The sum over a batch is divided by its number of targets times `share`, the fraction of known targets in all data
    (`loss_for`), not by the number of known targets in the batch. The loss of a batch is then a mean over its graphs,
    and is the same with several processes and with padded batches. Without `share`, the batch is all data.
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
    """Make the loss for batches of the targets `y`; over all of `y` it is the mean over the known targets."""
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
    """
    if task.target == "class":
        counts = torch.bincount(y, minlength=task.out_channels).clamp(min=1)
        weight = y.numel() / (counts.numel() * counts)
        return partial(MaskedLoss, partial(nn.CrossEntropyLoss, weight=weight), 1.0)
    weight = (y == 0).sum(dim=0).clamp(min=1) / (y == 1).sum(dim=0).clamp(min=1)
    weighted = partial(nn.BCEWithLogitsLoss, pos_weight=weight)
    return partial(MaskedLoss, weighted) if task.has_missing_targets else weighted


KIND_LOSSES: dict[str, type[nn.Module]] = {
    "class": nn.CrossEntropyLoss,
    "binary": nn.BCEWithLogitsLoss,
    "multilabel": nn.BCEWithLogitsLoss,
    "regression": nn.L1Loss,
}
"""The default loss of each kind of target."""


def target_fields(kind: TargetKind, channels: int = 1, *, has_missing_targets: bool = False) -> dict[str, Any]:
    """Return the fields of a `Task` that describe its targets, with the default loss and metric of their kind."""
    loss = KIND_LOSSES[kind]
    return {
        "target": kind,
        "out_channels": channels,
        "loss": partial(MaskedLoss, loss) if has_missing_targets else loss,
        "has_missing_targets": has_missing_targets,
        **metric_fields(kind, next(iter(OF_KIND[kind].values()))),
    }


def metric_fields(kind: str, info: MetricInfo) -> dict[str, Any]:
    """Return the fields of a `Task` that describe its metric."""
    return {
        "metric": partial(OverClasses if kind == "class" else MeanOverTargets, info.score),
        "metric_name": info.name,
        "score": None if kind == "class" else info.score,
        "maximize": info.maximize,
        "scale": info.scale,
    }


def with_metric(task: Task, metric: str | None) -> Task:
    """Replace the metric of a task (None: keep it)."""
    if metric is None:
        return task
    check_metric(metric, task.target)
    info = OF_KIND[task.target][metric]
    return task if info.name == task.metric_name else replace(task, **metric_fields(task.target, info))


def guess_kind(y: Tensor | None) -> TargetKind:
    """Guess the kind of target from the values of `y`."""
    if y is None:
        return "none"
    several = y.dim() > 1 and y.size(1) > 1
    if not y.is_floating_point():
        return "multilabel" if several else "class"
    unknown = y.isnan() & several
    if bool(((y == 0) | (y == 1) | unknown).all()) and bool((y == 0).any()) and bool((y == 1).any()):
        return "multilabel" if several else "binary"
    return "regression"


def convert_targets(y: Tensor, kind: TargetKind) -> Tensor:
    """Convert targets to the form of their kind; raise `DataError` for values that it does not have."""
    if kind == "class":
        y = y.view(len(y), -1)
        if y.size(1) != 1:
            raise DataError(f"kind='class' takes one target column, got {y.size(1)}.")
        if y.is_floating_point() and not bool(y.isfinite().all()):
            graph = int((~y.isfinite()).nonzero()[0, 0])
            raise DataError(f"the class of graph {graph} is NaN or infinite: expected a number. Leave that graph out.")
        codes: Tensor = torch.unique(y.view(-1), return_inverse=True)[1]
        return codes
    exact = kind == "regression" and y.dtype not in (torch.float32, torch.float16, torch.bfloat16)
    y = (y.double() if exact else y.float()).view(len(y), -1)
    if kind == "binary" and y.size(1) != 1:
        raise DataError(f"kind='binary' takes one target, got {y.size(1)}: expected kind='multilabel' for several.")
    wrong = (y != 0) & (y != 1) & ~(y.isnan() & (y.size(1) > 1))
    if kind in ("binary", "multilabel") and bool(wrong.any()):
        row, column = wrong.nonzero()[0].tolist()
        raise DataError(
            f"kind={kind!r} takes targets of 0 and 1, got {y[row, column]:g} in graph {row}: expected kind='class' or "
            "'regression' for other values."
        )
    return y


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target over the training graphs; empty for targets without a scale."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @staticmethod
    def of(y: Tensor) -> TargetScale:
        """Compute the scale of training targets `[graphs, targets]`; skip NaN, and only shift a constant target."""
        y = y.double()
        if bool(y.isnan().any()):
            mean = y.nanmean(dim=0)
            std = (y - mean).square().nanmean(dim=0).sqrt()
        else:
            mean, std = y.mean(dim=0), y.std(dim=0, correction=0)
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
