"""Metrics by name, against torchmetrics, scikit-learn and scipy, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics as sklearn_metrics
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision, MultilabelAUROC, MultilabelAveragePrecision
from torchmetrics.regression import MeanAbsoluteError, MeanSquaredError

from pathnn.data import DataError, PackedGraphs, Task, task_from_graphs
from pathnn.data.metrics import OF_KIND, average_precision, roc_auc, score_targets, tied_average_precision
from pathnn.data.task import with_metric
from pathnn.training.scoring import all_scores

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
    assert (task.metric_name, task.maximize) == (OF_KIND[task.target][name].name, name in ("roc-auc", "ap"))


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
    for name in {name for metrics in OF_KIND.values() for name in metrics}:
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


def probability(out):
    return 1 / (1 + np.exp(-out))


THEIRS = {
    "mae": lambda out, y: sklearn_metrics.mean_absolute_error(y, out),
    "rmse": lambda out, y: sklearn_metrics.root_mean_squared_error(y, out),
    "r2": lambda out, y: sklearn_metrics.r2_score(y, out),
    "pearson": lambda out, y: stats.pearsonr(out, y).statistic,
    "spearman": lambda out, y: stats.spearmanr(out, y).statistic,
    "roc-auc": lambda out, y: 100 * sklearn_metrics.roc_auc_score(y, out),
    "ap": lambda out, y: 100 * sklearn_metrics.average_precision_score(y, out),
    "mcc": lambda out, y: sklearn_metrics.matthews_corrcoef(y, out > 0),
    "f1": lambda out, y: 100 * sklearn_metrics.f1_score(y, out > 0),
    "balanced-accuracy": lambda out, y: 100 * sklearn_metrics.balanced_accuracy_score(y, out > 0),
    "brier": lambda out, y: sklearn_metrics.brier_score_loss(y, probability(out)),
}
THEIRS_OF_CLASSES = {
    "accuracy": lambda out, y: 100 * sklearn_metrics.accuracy_score(y, out.argmax(1)),
    "balanced-accuracy": lambda out, y: (
        100 * sklearn_metrics.recall_score(y, out.argmax(1), labels=np.unique(y), average="macro")
    ),
    "f1": lambda out, y: 100 * sklearn_metrics.f1_score(y, out.argmax(1), average="macro"),
    "mcc": lambda out, y: sklearn_metrics.matthews_corrcoef(y, out.argmax(1)),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["regression", "binary", "multilabel"])
def test_all_metrics_of_numbers_are_those_of_scikit_learn(kind, seed):
    """With ties in predictions and targets, and with a third of several targets unknown."""
    generator = torch.Generator().manual_seed(seed)
    columns = 1 if kind == "binary" else 3
    out = (4 * torch.randn(30, columns, generator=generator)).round() / 4
    y = (out + 2 * torch.randn(30, columns, generator=generator)).round()
    y = y if kind == "regression" else (y > 1).float()
    if columns > 1:
        y[torch.rand(30, columns, generator=generator) < 0.3] = torch.nan
    found = all_scores(out, y, task_of(y))
    assert list(found) == list(OF_KIND[kind])
    for name, score in found.items():
        known = [~column.isnan().numpy() for column in y.T]
        each = [
            THEIRS[name](out[:, i].double().numpy()[known[i]], y[:, i].double().numpy()[known[i]])
            for i in range(columns)
        ]
        assert score == pytest.approx(np.mean(each), rel=1e-5), name


@pytest.mark.parametrize("seed", range(5))
def test_all_metrics_of_classes_are_those_of_scikit_learn(seed):
    """Of five classes, the fourth is never a target, and the last is never predicted."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.tensor([0, 1, 2, 4])[torch.randint(4, (40,), generator=generator)]
    out = torch.nn.functional.one_hot(y, 5) + torch.randn(40, 5, generator=generator)
    out[:, 4] = -9.0
    task = task_of(torch.arange(40) % 5)
    found = all_scores(out, y, task)
    assert list(found) == list(OF_KIND["class"])
    for name, score in found.items():
        assert score == pytest.approx(THEIRS_OF_CLASSES[name](out.double().numpy(), y.numpy()), rel=1e-6), name
        scored = with_metric(task, name)
        metric = scored.metric()
        for part in (slice(0, 25), slice(25, 40)):
            metric.update(*scored.metric_inputs(out[part], y[part]))
        assert float(metric.compute()) * scored.scale == pytest.approx(score, rel=1e-6)


ONE_SIDED = {
    "regression": {"r2", "pearson", "spearman"},
    "binary": {"roc-auc", "ap", "mcc", "f1", "balanced-accuracy"},
}


@pytest.mark.parametrize("kind", list(ONE_SIDED))
def test_metrics_of_equal_targets_are_not_defined(kind):
    out, y = torch.tensor([0.1, 0.7, -0.3]), torch.zeros(3)
    scores = {name: info.score(out, y) for name, info in OF_KIND[kind].items()}
    assert {name for name, score in scores.items() if bool(score.isnan())} == ONE_SIDED[kind]
    nothing = {name for name, info in OF_KIND[kind].items() if bool(info.score(out[:0], y[:0]).isnan())}
    assert nothing == set(scores), "no graph, no score"


def test_equal_targets_beside_others_do_not_count():
    y = LABELS.clone()
    y[:, 1] = 1
    for name, info in OF_KIND["multilabel"].items():
        each = score_targets(info.score, OUT, y)
        assert each.isnan().tolist() == [False, name in ("roc-auc", "mcc", "balanced-accuracy"), False]


def test_equal_predictions():
    y, out = torch.tensor([0.0, 1, 1, 0]), torch.full((4,), 0.1)
    scores = {name: float(info.score(out, y)) for name, info in OF_KIND["binary"].items()}
    assert (scores["mcc"], scores["roc-auc"], scores["balanced-accuracy"]) == (0, 0.5, 0.5)
    assert bool(OF_KIND["regression"]["pearson"].score(out, y).isnan())
    assert bool(OF_KIND["regression"]["spearman"].score(out, y).isnan())
    same = torch.zeros(4, 3)
    assert float(OF_KIND["class"]["mcc"].score(same, y.long())) == 0
    assert bool(OF_KIND["class"]["mcc"].score(same, torch.ones(4).long()).isnan())


def test_the_score_of_the_task_is_one_of_all_scores():
    """Peptides-func has its own form of average precision, in which large logits are equal."""
    out, y = torch.tensor([[20.0], [25], [30], [35]]).repeat(1, 2), torch.tensor([[0.0], [1], [0], [1]]).repeat(1, 2)
    task = task_of(y)
    tied = replace(task, score=tied_average_precision)
    assert all_scores(out, y, tied)["ap"] == pytest.approx(50.0)
    assert all_scores(out, y, task)["ap"] == pytest.approx(100 * float(average_precision(out[:, 0], y[:, 0])))
    assert all_scores(out, y, task)["ap"] > 80
