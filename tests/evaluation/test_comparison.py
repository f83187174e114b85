"""Comparisons: paired samples of the same molecules, and nothing else is compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from molecule_runs import small_config
from pathnn.evaluation import compare_runs, cross_validate, fit_baselines, write_evaluation
from pathnn.evaluation.comparison import _check_same
from pathnn.evaluation.held_out import BASELINES, read_held_out
from pathnn.evaluation.predictions import Predictions, paired_difference
from pathnn.inference import load_runs
from pathnn.training import MismatchError, RunFolderError, TaskSignature, load_task, run, run_ensemble


def made(noise: float, *, count: int = 80, seed: int = 0) -> Predictions:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randn(count, 1, generator=generator).double()
    out = y + noise * torch.randn(count, 1, generator=generator).double()
    signature = TaskSignature("t", "regression", 1, 3, None, "MAE", False, 1.0, ["a"])
    return Predictions(signature, tuple(range(1, count + 1)), ("C",) * count, y, out)


def test_a_clear_difference_is_distinguishable_and_a_model_is_not_from_itself():
    good, bad = made(0.1), made(1.0)
    found = paired_difference(good, bad, "mae")
    assert found.distinguishable
    assert found.value == pytest.approx(bad.score("mae") - good.score("mae"))
    assert found.low < found.value < found.high
    assert (found.better, paired_difference(bad, good, "mae").better) == (0.0, 1.0)
    assert paired_difference(bad, good, "r2").better == 1.0, "larger is better"
    same = paired_difference(good, good, "mae")
    assert (same.value, same.low, same.high, same.distinguishable) == (0.0, 0.0, 0.0, False)


def test_the_interval_is_that_of_a_loop_over_samples():
    one, two = made(0.5), made(0.6)
    generator, differences = np.random.default_rng(0), []
    for index in generator.integers(80, size=(1000, 80)):
        errors = [float((found.out[index] - found.y[index]).abs().mean()) for found in (one, two)]
        differences.append(errors[1] - errors[0])
    found = paired_difference(one, two, "mae")
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(differences, [2.5, 97.5])))


def test_samples_without_a_defined_metric_say_nothing_about_which_model_is_better():
    signature = TaskSignature("t", "binary", 1, 3, None, "ROC-AUC", True, 100.0, ["a"])
    y = torch.tensor([[1.0]] + [[0.0]] * 11)  # many samples lack the only positive
    good = Predictions(signature, tuple(range(1, 13)), ("C",) * 12, y, 2 * y.double() - 1)
    bad = replace(good, out=1 - 2 * y.double(), _resampled={})
    assert np.isnan(good.resampled("roc-auc")).any()
    assert paired_difference(bad, good, "roc-auc").better == 1.0
    alone = [replace(one, y=torch.zeros(12, 1), _resampled={}) for one in (bad, good)]
    assert np.isnan(paired_difference(*alone, "roc-auc").better)


@pytest.fixture(scope="module")
def runs(molecules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, config = tmp_path_factory.mktemp("compared"), small_config(molecules, epochs=1)
    task = load_task(config)
    run(config, folder / "one", task=task)
    run_ensemble(config, folder / "seeds", 2, task=task)
    cross_validate(config, folder / "folds", 2, task=task)
    cross_validate(replace(config, k=1), folder / "short", 2, task=task)
    for name in ("one", "seeds", "folds", "short"):
        write_evaluation(folder / name, task)
    return folder


def test_runs_are_compared_on_their_test_molecules(runs):
    found = compare_runs([runs / "one", runs / "seeds"])
    one, seeds = found.models
    assert (found.metric, found.molecules, found.maximize) == ("MAE", 6, False)
    assert one.difference is None
    assert one.score == pytest.approx(load_runs(runs / "one").members[0].test_score, rel=1e-5)
    assert seeds.difference.value == pytest.approx(seeds.score - one.score)
    assert compare_runs([runs / "one", runs / "seeds"], metric="rmse").metric == "RMSE"
    with pytest.raises(ValueError, match="roc-auc"):
        compare_runs([runs / "one"], metric="roc-auc")


def test_folds_are_compared_by_their_out_of_fold_predictions(runs):
    found = compare_runs([runs / "folds", runs / "short"])
    assert found.molecules == 60
    with pytest.raises(MismatchError, match=r"60 test molecules and .* 6, of which they share 6"):
        compare_runs([runs / "folds", runs / "one"])


def test_baselines_of_a_run_are_compared_once(runs, molecules, monkeypatch):
    pytest.importorskip("lightgbm", reason="baselines need the extra chem")
    task = load_task(small_config(molecules))
    simple = fit_baselines(task, task.splits[0])
    for name in ("one", "seeds"):
        read_held_out(runs / name, load_runs(runs / name).signature).write(runs / name / BASELINES, simple)
    found = compare_runs([runs / "one", runs / "seeds"])
    assert [model.name for model in found.models] == [str(runs / "one"), *simple, str(runs / "seeds")]
    for name in ("one", "seeds"):
        (runs / name / BASELINES).unlink()


def test_runs_on_other_targets_or_without_predictions_are_refused(runs, molecules, tmp_path):
    config = small_config(molecules, "active", epochs=1)
    task = load_task(config)
    run(config, tmp_path / "active", task=task)
    with pytest.raises(RunFolderError, match=r"neither test_predictions.csv"):
        compare_runs([tmp_path / "active"])
    write_evaluation(tmp_path / "active", task)
    with pytest.raises(MismatchError, match="same targets"):
        compare_runs([runs / "one", tmp_path / "active"])
    other = tmp_path / "other.csv"
    other.write_text(molecules.read_text().replace(",size,", ",old,").replace("smiles,", "smiles,size,", 1))
    lines = molecules.read_text().splitlines()
    changed = [lines[0], *(line.replace(",", ",1", 1) for line in lines[1:])]
    other.write_text("\n".join(changed) + "\n")
    config = small_config(other, epochs=1)
    task = load_task(config)
    run(config, tmp_path / "changed", task=task)
    write_evaluation(tmp_path / "changed", task)
    with pytest.raises(MismatchError, match=r"targets of .* differ"):
        compare_runs([runs / "one", tmp_path / "changed"])


def test_an_unknown_target_is_not_zero():
    known = made(0.5)
    zero, unknown = (replace(known, y=known.y.index_fill(0, torch.tensor([3]), y)) for y in (0.0, torch.nan))
    _check_same("a", unknown, "b", unknown)
    with pytest.raises(MismatchError, match="the targets of a and b differ"):
        _check_same("a", zero, "b", unknown)


def test_each_of_several_targets_is_compared(molecules, tmp_path):
    config = small_config(molecules, ("size", "twice"), epochs=1)
    task = load_task(config)
    for name, k in (("short", 1), ("long", 2)):
        cross_validate(replace(config, k=k), tmp_path / name, 2, task=task)
    found = compare_runs([tmp_path / "short", tmp_path / "long"])
    size, twice = found.targets["size"], found.targets["twice"]
    assert (found.molecules, size.molecules, twice.molecules) == (60, 60, 40), "the known targets"
    for i, model in enumerate(found.models):
        assert (size.models[i].score + twice.models[i].score) / 2 == pytest.approx(model.score)
    assert size.models[1].difference.low < size.models[1].difference.high


def test_few_molecules_have_no_interval():
    few = paired_difference(made(0.1, count=9), made(1.0, count=9), "mae")
    assert np.isnan([few.low, few.high, few.better]).all()
    assert not few.distinguishable
    assert paired_difference(made(0.1, count=10), made(1.0, count=10), "mae").distinguishable
