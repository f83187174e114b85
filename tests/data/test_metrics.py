"""Metrics by name, against torchmetrics and by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision, MultilabelAUROC, MultilabelAveragePrecision
from torchmetrics.regression import MeanAbsoluteError, MeanSquaredError

from pathnn.data import DataError, PackedGraphs, Task, task_from_graphs
from pathnn.data.metrics import METRIC_NAMES, METRICS, OF_KIND, average_precision, roc_auc, tied_average_precision
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
    metric.update(*task.metric_inputs(out, task.graphs.y))
    return float(metric.compute())


@pytest.mark.parametrize(
    ("y", "name", "theirs"),
    [
        (torch.randn(40, 1), "mae", MeanAbsoluteError()),
        (torch.randn(40, 1), "rmse", MeanSquaredError(squared=False)),
        (LABELS[:, :1], "roc-auc", BinaryAUROC()),
        (LABELS[:, :1], "ap", BinaryAveragePrecision()),
        (LABELS, "roc-auc", MultilabelAUROC(num_labels=3, average="macro")),
        (LABELS, "ap", MultilabelAveragePrecision(num_labels=3, average="macro")),
    ],
)
def test_it_is_what_torchmetrics_has(y, name, theirs):
    task, out = with_metric(task_of(y), name), OUT[:, : y.size(1)]
    theirs.update(*(task.metric_inputs(out, y) if name in ("mae", "rmse") else (out, y.long())))
    assert measured(task, out) == pytest.approx(float(theirs.compute()), rel=1e-6)
    assert (task.metric_name, task.maximize) == (METRICS[name].name, name in ("roc-auc", "ap"))


def test_one_blank_does_not_make_it_another_metric():
    labels = LABELS.clone()
    labels[:, 1] = 0  # a label without any yes does not count, known or not
    whole, partly = task_of(labels), labels.clone()
    partly[labels.argmin(dim=0)[0], 0] = torch.nan
    scores = [measured(task, OUT) for task in (whole, task_of(partly))]
    expected = [float(average_precision(OUT[:, i], labels[:, i])) for i in (0, 2)]
    assert scores[0] == pytest.approx(sum(expected) / 2, rel=1e-6)
    assert scores[1] == pytest.approx(scores[0], abs=0.05)
    assert measured(with_metric(whole, "ap"), OUT) == scores[0]


def test_large_logits_are_told_apart():
    out, y = torch.tensor([20.0, 25, 30, 35, 40, 45]), torch.tensor([0.0, 0, 0, 1, 1, 1])
    assert float(roc_auc(out, y)) == float(average_precision(out, y)) == 1.0
    assert float(roc_auc(out.new_zeros(6), y)) == 0.5


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


def test_a_task_that_has_a_metric_keeps_its_own_form_of_it():
    """Peptides-func is measured by average precision in another form."""
    task = replace(task_of(LABELS), score=tied_average_precision)
    assert with_metric(task, "ap") is task
    assert with_metric(task, "roc-auc").score is roc_auc
