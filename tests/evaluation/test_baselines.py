"""Baselines: the same parts and metrics as the network, for every kind of target, and the same for a seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine_tasks import tiny_task
from molecule_runs import MOLECULES, small_config
from pathnn.data.readers.smiles import rdkit_descriptors
from pathnn.data.splits import fold_splits
from pathnn.evaluation import baselines, fit_baselines
from pathnn.evaluation.baselines import trivial_predictions
from pathnn.training import RunError, load_task

pytest.importorskip("sklearn", reason="baselines need the extra chem")
pytest.importorskip("lightgbm", reason="baselines need the extra chem")

NAMES = ["random forest, Morgan", "random forest, descriptors", "LightGBM, Morgan", "LightGBM, descriptors"]


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setitem(baselines.FOREST, "n_estimators", 20)
    monkeypatch.setitem(baselines.BOOSTING, "n_estimators", 20)
    monkeypatch.setitem(baselines.FOREST, "n_jobs", 1)
    monkeypatch.setitem(baselines.BOOSTING, "n_jobs", 1)


def test_the_settings_are_those_of_the_documentation():
    monkeypatched = {"n_jobs", "n_estimators"}
    assert {k: v for k, v in baselines.FOREST.items() if k not in monkeypatched} == {"min_samples_leaf": 1}
    assert baselines.BOOSTING["learning_rate"] == 0.05


@pytest.mark.parametrize(("target", "channels"), [("size", 1), (("size", "twice"), 2), ("active", 1), ("letter", 3)])
def test_every_kind_of_target_has_predictions_for_the_test_part(molecules, target, channels):
    task = load_task(small_config(molecules, target))
    split = task.splits[0]
    found = fit_baselines(task, split)
    assert list(found) == NAMES
    for one in found.values():
        assert one.rows == tuple(row + 1 for row in split.test.tolist())
        assert one.smiles == tuple(MOLECULES[i] for i in split.test.tolist())
        assert tuple(one.out.shape) == (split.test.numel(), channels)
        assert bool(one.out.isfinite().all())
    again = fit_baselines(task, split)
    assert all(torch.equal(found[name].out, again[name].out) for name in NAMES)


def test_only_training_and_validation_parts_are_learned_from(molecules):
    task = load_task(small_config(molecules))
    split, y = task.splits[0], task.graphs.y.clone()
    y[split.test] = 1e6
    other = task.with_graphs(replace(task.graphs, y=y))
    one, two = fit_baselines(task, split), fit_baselines(other, split)
    assert all(torch.equal(one[name].out, two[name].out) for name in NAMES)
    y[split.val] += 5.0
    three = fit_baselines(other, split)
    assert not torch.equal(one[NAMES[0]].out, three[NAMES[0]].out)


def test_folds_have_their_own_models(molecules):
    task = load_task(small_config(molecules))
    splits, steps = fold_splits(task, folds=3), []
    found = fit_baselines(task, splits, step=lambda: steps.append(1))
    assert len(steps) == 12
    joined = found[NAMES[0]]
    assert joined.rows == tuple(range(1, 61))
    alone = fit_baselines(task, splits[1])[NAMES[0]]
    held_out = [i for i, fold in enumerate(joined.folds) if fold == 1]
    assert torch.equal(joined.out[held_out], alone.out)
    assert joined.score("mae") < trivial_predictions(task, splits).score("mae")


def test_the_trivial_prediction_is_the_mean_or_the_frequency(molecules):
    task = load_task(small_config(molecules, ("size", "twice")))
    split = task.splits[0]
    known = task.graphs.y[split.train]
    found = trivial_predictions(task, split).out
    torch.testing.assert_close(found[0], known.nanmean(dim=0))
    task = load_task(small_config(molecules, "letter"))
    frequency = torch.bincount(task.graphs.y[task.splits[0].train], minlength=3).double()
    out = trivial_predictions(task, task.splits[0]).out[0]
    torch.testing.assert_close(out.softmax(0), frequency / frequency.sum(), atol=1e-4, rtol=1e-4)


def test_missing_descriptors_are_medians_of_the_training_part():
    x = np.array([[1.0], [3.0], [np.nan], [100.0]], dtype=np.float32)
    train, test = baselines._filled(x, np.array([0, 1]), np.array([2, 3]))
    assert (train[:, 0].tolist(), test[:, 0].tolist()) == ([1.0, 3.0], [2.0, 100.0])
    train, test = baselines._filled(x * np.nan, np.array([0, 1]), np.array([2, 3]))
    assert test[:, 0].tolist() == [0.0, 0.0]
    assert np.isfinite(rdkit_descriptors(["CCO"])).any()


def test_a_class_that_the_training_part_lacks_is_never_predicted(molecules):
    task = load_task(small_config(molecules, "letter"))
    y, split = task.graphs.y, task.splits[0]
    train = split.train[y[split.train] != 2]
    val = split.val[y[split.val] != 2]
    found = fit_baselines(task, type(split)(train, val, split.test))
    assert all(int(one.out.argmax(dim=1).max()) < 2 for one in found.values())


def test_graphs_without_molecules_are_refused():
    task = tiny_task()
    with pytest.raises(RunError, match="no molecules"):
        fit_baselines(task, task.splits[0])
