"""Kinds of targets: loss, metric and direction that go together, as keyword arguments of a `Task`."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from pathnn.data.known import UNKNOWN, known_loss


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


def regression(num_targets: int = 1, *, known: float = 1.0) -> dict[str, Any]:
    """Numbers per graph: mean absolute error, as loss and as metric; `known` is the share of targets that are.

    >>> regression()["maximize"]
    False
    """
    partly = known < 1
    return {
        "target": "regression",
        "out_channels": num_targets,
        "loss": known_loss(nn.L1Loss, known) if partly else nn.L1Loss,
        "metric": partial(_known_mean_absolute_error, num_targets) if partly else _mean_absolute_error,
        "partly_known": partly,
        "metric_name": "MAE",
        "maximize": False,
        "scale": 1.0,
    }


def binary() -> dict[str, Any]:
    """Yes or no per graph: binary cross-entropy, area under the ROC curve in percent."""
    return {
        "target": "binary",
        "out_channels": 1,
        "loss": nn.BCEWithLogitsLoss,
        "metric": _auroc,
        "metric_name": "ROC-AUC",
        "maximize": True,
        "scale": 100.0,
    }


def multilabel(num_labels: int, *, known: float = 1.0) -> dict[str, Any]:
    """Several yes or no per graph: binary cross-entropy, average precision (mean over labels) in percent.

    `known` is the share of targets that are.
    """
    partly = known < 1
    return {
        "target": "multilabel",
        "out_channels": num_labels,
        "loss": known_loss(nn.BCEWithLogitsLoss, known) if partly else nn.BCEWithLogitsLoss,
        "metric": partial(_average_precision, num_labels, UNKNOWN if partly else None),
        "partly_known": partly,
        "metric_name": "AP",
        "maximize": True,
        "scale": 100.0,
    }


def _accuracy(num_classes: int) -> Any:
    from torchmetrics.classification import MulticlassAccuracy

    return MulticlassAccuracy(num_classes=num_classes, average="micro")


def _mean_absolute_error() -> Any:
    from torchmetrics.regression import MeanAbsoluteError

    return MeanAbsoluteError()


def _known_mean_absolute_error(num_targets: int) -> Any:
    from pathnn.data.known_error import KnownMeanAbsoluteError

    return KnownMeanAbsoluteError(num_targets)


def _auroc() -> Any:
    from torchmetrics.classification import BinaryAUROC

    return BinaryAUROC()


def _average_precision(num_labels: int, unknown: int | None) -> Any:
    from torchmetrics.classification import MultilabelAveragePrecision

    return MultilabelAveragePrecision(num_labels=num_labels, average="macro", ignore_index=unknown)
