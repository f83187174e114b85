"""Kinds of targets: loss, metric and direction that go together, as keyword arguments of a `Task`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from torch import nn

from pathnn.data.known import KnownLoss
from pathnn.data.metrics import METRICS, check_metric, mean_over_targets
from pathnn.data.task import Task


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


def regression(num_targets: int = 1, *, partly_known: bool = False, metric: str = "mae") -> dict[str, Any]:
    """Numbers per graph: mean absolute error, as loss and as metric, or another metric (`METRICS`).

    >>> regression()["maximize"], regression(metric="rmse")["metric_name"]
    (False, 'RMSE')
    """
    return _numbers("regression", num_targets, nn.L1Loss, partly_known, metric)


def binary(*, metric: str = "roc-auc") -> dict[str, Any]:
    """Yes or no per graph: binary cross-entropy, area under the ROC curve in percent, or another metric."""
    return _numbers("binary", 1, nn.BCEWithLogitsLoss, False, metric)


def multilabel(num_labels: int, *, partly_known: bool = False, metric: str = "ap") -> dict[str, Any]:
    """Several yes or no per graph: binary cross-entropy, average precision (mean over labels) in percent, or another
    metric.
    """
    return _numbers("multilabel", num_labels, nn.BCEWithLogitsLoss, partly_known, metric)


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


def _numbers(kind: str, channels: int, loss: type[nn.Module], partly_known: bool, metric: str) -> dict[str, Any]:
    """What is said of targets that are numbers, some of which may be unknown."""
    check_metric(metric, kind)
    return {
        "target": kind,
        "out_channels": channels,
        "loss": partial(KnownLoss, loss) if partly_known else loss,
        "partly_known": partly_known,
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
