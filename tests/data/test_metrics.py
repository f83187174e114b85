"""Metrics by name, against torchmetrics and by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision, MultilabelAUROC
from torchmetrics.regression import MeanAbsoluteError, MeanSquaredError

from pathnn.data import DataError, PackedGraphs, Task, task_from_graphs
from pathnn.data.metrics import METRIC_NAMES, METRICS, OF_KIND, average_precision, roc_auc
from pathnn.data.targets import with_metric

torch.manual_seed(0)
OUT = torch.randn(40, 3)
LABELS = (torch.rand(40, 3) < 0.4).float()


def task_of(y: torch.Tensor) -> Task:
    edge = torch.tensor([[0, 1], [1, 0]])
    return task_from_graphs(replace(PackedGraphs.from_edges([edge] * len(y), [2] * len(y)), y=y))


def measured(task: Task, out: torch.Tensor) -> float:
    assert task.metric is not None
    assert task.graphs.y is not None
    metric = task.metric()
    metric.update(*task.scores(out, task.graphs.y))
    return float(metric.compute())


@pytest.mark.parametrize(
    ("y", "name", "theirs"),
    [
        (torch.randn(40, 1), "mae", MeanAbsoluteError()),
        (torch.randn(40, 1), "rmse", MeanSquaredError(squared=False)),
        (LABELS[:, :1], "roc-auc", BinaryAUROC()),
        (LABELS[:, :1], "ap", BinaryAveragePrecision()),
        (LABELS, "roc-auc", MultilabelAUROC(num_labels=3, average="macro")),
    ],
)
def test_it_is_what_torchmetrics_has(y, name, theirs):
    task, out = with_metric(task_of(y), name), OUT[:, : y.size(1)]
    theirs.update(*task.scores(out, y))
    assert measured(task, out) == pytest.approx(float(theirs.compute()), rel=1e-6)
    assert (task.metric_name, task.maximize) == (METRICS[name].name, name in ("roc-auc", "ap"))


def test_the_default_is_the_same_metric_by_another_way():
    """The paper's metrics are torchmetrics' own; where targets are unknown they are ours."""
    task = task_of(LABELS)
    assert task.score is not None
    each = [float(task.score(OUT[:, i], LABELS[:, i])) for i in range(3)]
    assert measured(task, OUT) == pytest.approx(sum(each) / 3, rel=1e-6)
    assert measured(with_metric(task, "ap"), OUT) == measured(task, OUT)


def test_targets_of_which_all_are_yes_or_no_have_no_area_and_do_not_count():
    labels = LABELS.clone()
    labels[:, 1] = 0
    task = with_metric(task_of(labels), "roc-auc")
    each = [float(roc_auc(OUT[:, i], labels[:, i])) for i in (0, 2)]
    assert measured(task, OUT) == pytest.approx(sum(each) / 2, rel=1e-6)
    assert bool(roc_auc(OUT[:, 1], labels[:, 1]).isnan())
    assert bool(average_precision(OUT[:, 1], labels[:, 1]).isnan())
    assert bool(roc_auc(OUT[:0, 1], labels[:0, 1]).isnan())


@pytest.mark.parametrize("kind", list(OF_KIND))
def test_a_metric_of_another_kind_is_refused(kind):
    y = {"class": torch.arange(40) % 3, "binary": LABELS[:, :1], "multilabel": LABELS, "regression": OUT}[kind]
    task = task_of(y)
    assert task.target == kind
    assert with_metric(task, None) is task
    for name in METRIC_NAMES:
        if name in OF_KIND[kind]:
            assert with_metric(task, name).loss is task.loss
        else:
            with pytest.raises(DataError, match=f"metric='{name}' is not for targets of the kind '{kind}'"):
                with_metric(task, name)
