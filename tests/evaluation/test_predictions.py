"""Predictions as files, and bootstrap samples of their scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pathnn.evaluation import Predictions
from pathnn.evaluation.predictions import WEIGHTED, interval, read_predictions, samples
from pathnn.training import CheckpointError, TaskSignature

KINDS = ("regression", "binary", "multilabel", "class")


def made(kind: str, count: int = 30, *, names=("a", "b"), folds: bool = False, scale=()) -> Predictions:
    generator = torch.Generator().manual_seed(1)
    names = list(names) if kind not in ("binary",) else ["a"]
    signature = TaskSignature("t", kind, len(names), 3, None, "", False, 1.0, names, *scale)
    out = torch.randn(count, len(names), generator=generator, dtype=torch.float64).mul(4).round().div(4)  # with ties
    if kind == "class":
        y = torch.randint(len(names), (count,), generator=generator)
    elif kind == "regression":
        y = out + torch.randn(out.shape, generator=generator).double()
    else:
        y = (out + torch.randn(out.shape, generator=generator).double() > 0).double()
    if kind in ("regression", "multilabel") and len(names) > 1:
        y[::4, 0] = torch.nan
    rows, smiles = tuple(range(1, count + 1)), tuple("C" * (i + 1) for i in range(count))
    return Predictions(signature, rows, smiles, y, out, tuple(i % 3 for i in range(count)) if folds else ())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("folds", [False, True])
def test_a_file_has_the_same_scores(tmp_path, kind, folds):
    found = made(kind, folds=folds)
    found.write(tmp_path / "one.csv")
    again = read_predictions(tmp_path / "one.csv", found.signature)[""]
    assert (again.rows, again.smiles, again.folds) == (found.rows, found.smiles, found.folds)
    torch.testing.assert_close(again.y, found.y, equal_nan=True)
    for name, score in found.scores.items():
        assert again.score(name) == pytest.approx(score, abs=1e-4, nan_ok=True), name


def test_a_file_of_several_models_keeps_them_apart(tmp_path):
    found, other = made("class", folds=True), made("class")
    models = {"random forest, Morgan": found, "LightGBM, Morgan": Predictions.of(task_of(found), *halves(other))}
    found.write(tmp_path / "models.csv", models)
    again = read_predictions(tmp_path / "models.csv", found.signature)
    assert list(again) == list(models)
    for name, one in models.items():
        torch.testing.assert_close(again[name].out.softmax(1), one.out.softmax(1), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
@pytest.mark.parametrize("names", [("IC50: nM", "b"), ("a", "b: c"), ("y_", "y")])
def test_names_of_targets_are_not_names_of_models(tmp_path, kind, names):
    found = made(kind, names=names, folds=True)
    found.write(tmp_path / "one.csv")
    assert list(read_predictions(tmp_path / "one.csv", found.signature)) == [""]
    found.write(tmp_path / "models.csv", {"forest, Morgan": found, "LightGBM": found})
    assert list(read_predictions(tmp_path / "models.csv", found.signature)) == ["forest, Morgan", "LightGBM"]


def halves(found: Predictions):
    return torch.arange(len(found.rows)), found.out / 2


def task_of(found: Predictions):
    from types import SimpleNamespace

    from pathnn.data import load_dataset

    graphs = SimpleNamespace(names=found.smiles, y=found.y)
    csl = load_dataset("csl")
    return SimpleNamespace(descriptors=None,
        rows=lambda: list(found.rows), graphs=graphs, name="t", target="class", out_channels=2,
        node_features=csl.node_features, edge_features=None, metric_name="", maximize=True, scale=1.0,
        classes=found.signature.classes, vocabulary={},
    )  # fmt: skip


def test_columns_that_share_a_name_are_both_kept(tmp_path):
    found = made("regression", names=("row", "fold"), folds=True)
    found.write(tmp_path / "one.csv")
    again = read_predictions(tmp_path / "one.csv", found.signature)[""]
    torch.testing.assert_close(again.out, found.out)
    assert again.folds == found.folds


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "one.csv").write_text("row,smiles,a,predicted_a\n1,C,x,2\n")
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_predictions(tmp_path / "one.csv", made("regression", names=("a",)).signature)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_scored_as_the_metrics_score_them(kind):
    """The oracle: the metric of `pathnn.data` on each sample, one after another."""
    found = made(kind)
    index = np.concatenate(list(samples(len(found.rows))))
    assert index.shape == (1000, 30)
    for metric in found.metrics:
        slow = [found.score(metric, row) for row in index[:50]]
        assert found.resampled(metric)[:50].tolist() == pytest.approx(slow, rel=1e-5, nan_ok=True), metric
    assert {*WEIGHTED} <= {*made("binary").metrics}


def test_samples_without_a_defined_score_are_left_out():
    found = made("binary", count=10)
    found.y[:] = torch.tensor([[1.0]] + [[0.0]] * 9)
    scores = found.resampled("roc-auc")
    assert np.isnan(scores).any()
    assert 0 <= interval(scores)[0] <= interval(scores)[1] <= 100
    found = made("binary", count=3)
    found.y[:] = 1.0
    assert np.isnan(interval(found.resampled("roc-auc"))).all()


def test_parts_are_joined_in_the_order_of_rows():
    one = made("regression", names=("a",))
    first, second = (
        Predictions(one.signature, one.rows[i::2], one.smiles[i::2], one.y[i::2], one.out[i::2], (i,) * 15)
        for i in (0, 1)
    )
    joined = Predictions.join([second, first])
    assert (joined.rows, joined.smiles, joined.folds) == (one.rows, one.smiles, (0, 1) * 15)
    assert torch.equal(joined.out, one.out)
