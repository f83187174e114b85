"""Cross-validation: no network sees what it predicts, folds are an ensemble, and a kill loses nothing."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from molecule_runs import MOLECULES, small_config
from pathnn.data import DataError
from pathnn.data.splits import split_groups
from pathnn.evaluation import cross_validate
from pathnn.evaluation.held_out import out_of_fold
from pathnn.inference import evaluation_data, load_runs, predict_table
from pathnn.training import (
    EnsembleFolder,
    MismatchError,
    RunError,
    RunFolderError,
    load_model,
    load_task,
    predict,
    run,
    run_ensemble,
    score_ensemble,
)  # fmt: skip
from pathnn.training.setup import choose_split, splits_of


@pytest.fixture(scope="module")
def folds(molecules: Path, tmp_path_factory: pytest.TempPathFactory) -> EnsembleFolder:
    out = tmp_path_factory.mktemp("folds") / "three"
    cross_validate(small_config(molecules), out, 3)
    return EnsembleFolder.open(out)


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_every_molecule_is_predicted_by_the_network_that_did_not_see_it(folds):
    rows, task = table(folds.path / "out_of_fold.csv"), load_task(folds.member(0).read_config())
    assert [row["smiles"] for row in rows] == MOLECULES
    assert [int(row["row"]) for row in rows] == list(range(1, 61))
    for fold in folds.numbers:
        trained = load_model(folds.member(fold).model)
        split = choose_split(task, trained.config)
        held_out = [int(row["row"]) - 1 for row in rows if int(row["fold"]) == fold]
        assert held_out == split.test.tolist()
        assert not {*held_out} & {*split.train.tolist(), *split.val.tolist()}
        assert len(held_out) + split.train.numel() + split.val.numel() == 60
        alone = trained.signature.target_scale.decode(predict(trained, task, split.test))[:, 0].tolist()
        assert [float(rows[i]["predicted_size"]) for i in held_out] == pytest.approx(alone, rel=1e-5)


def test_the_result_has_every_fold_and_all_predictions_together(folds):
    result, rows = folds.read_result(), table(folds.path / "out_of_fold.csv")
    each = [folds.member(fold).read_result()["test_score"] for fold in (0, 1, 2)]
    assert (result["folds"], result["test_each"], result["test_score"]) == ([0, 1, 2], each, None)
    assert result["test_mean"] == pytest.approx(sum(each) / 3)
    errors = [abs(float(row["predicted_size"]) - float(row["size"])) for row in rows]
    assert result["out_of_fold_score"] == pytest.approx(sum(errors) / 60, rel=1e-5)
    assert result["scores"]["out_of_fold"]["mae"] == result["out_of_fold_score"]
    assert result["seconds"] > 0


def test_the_folds_are_an_ensemble_in_one_unit(folds, molecules):
    """Each fold standardizes with its own mean: the ensemble must not mix the scales."""
    ensemble, task = load_runs(folds.path), load_task(folds.member(0).read_config())
    alone = [load_model(folds.member(fold).model) for fold in (0, 1, 2)]
    assert len({one.signature.target_mean for one in alone}) == 3
    values = torch.stack([one.signature.target_scale.decode(predict(one, task)) for one in alone])
    predicted = predict_table(ensemble, str(molecules))
    column = predicted.header.index("predicted_size")
    mean = values.mean(dim=0)[:, 0].tolist()
    assert [row[column] for row in predicted.rows] == pytest.approx(mean, rel=1e-5)


def test_the_folds_know_all_molecules_that_they_were_trained_on(folds, molecules):
    ensemble = load_runs(folds.path)
    with pytest.raises(ValueError, match="no test graphs"):
        evaluation_data(ensemble, str(molecules))
    found = evaluation_data(ensemble, str(molecules), part="all")
    seen = torch.cat([split.train for split in splits_of(found.task, ensemble.config)[:3]]).unique().tolist()
    assert found.overlap is not None
    assert found.overlap.nonzero().flatten().tolist() == seen
    assert len(seen) > 50


def test_a_single_fold_is_an_ordinary_run(folds, molecules):
    found = evaluation_data(load_runs(folds.member(1).path), str(molecules))
    assert found.part == "test"
    score = score_ensemble(load_runs(folds.member(1).path), found.task, found.index).together.score
    assert score == pytest.approx(folds.read_result()["test_each"][1], rel=1e-5)


@pytest.mark.parametrize("split_by", ["scaffold", "butina"])
def test_groups_stay_in_one_fold(molecules, split_by):
    config = small_config(molecules, split_by=split_by, folds=2)
    task = load_task(replace(config, split_by=None))
    groups = split_groups(task, split_by)
    for split in splits_of(task, config)[:2]:
        assert not {*groups[split.test].tolist()} & {*groups[split.train].tolist(), *groups[split.val].tolist()}


def test_a_fixed_test_part_is_in_no_fold_and_all_networks_predict_it(molecules, tmp_path):
    config = small_config(molecules, split_by="part")
    result = cross_validate(config, tmp_path / "run", 2)
    rows = table(tmp_path / "run" / "out_of_fold.csv")
    assert len(rows) == 48
    assert not {int(row["row"]) - 1 for row in rows} & {*range(0, 60, 5)}
    ensemble, task = load_runs(tmp_path / "run"), load_task(config)
    test = torch.arange(0, 60, 5)
    assert result["test_score"] == pytest.approx(score_ensemble(ensemble, task, test).together.score, rel=1e-5)
    found = evaluation_data(ensemble, str(molecules))
    assert (found.part, found.index.tolist()) == ("test", test.tolist())


class Stop:
    def __init__(self, fold: int, epoch: int) -> None:
        self.at = fold, epoch

    def __call__(self, epoch, ready) -> None:
        if (ready.config.fold, epoch.epoch) == self.at:
            raise KeyboardInterrupt


def test_a_stopped_cross_validation_goes_on_to_the_same_result(folds, molecules, tmp_path):
    out, config = tmp_path / "run", small_config(molecules)
    with pytest.raises(KeyboardInterrupt):
        cross_validate(config, out, 3, report=Stop(1, 1))
    with pytest.raises(RunFolderError, match=r"the 3 folds in .* --folds 3 --out"):
        load_runs(out)
    kept = (out / "fold-0" / "metrics.jsonl").read_text()
    with pytest.raises(RunFolderError, match="3 folds already"):
        cross_validate(config, out, 3)
    with pytest.raises(RunError, match="folds=3"):
        cross_validate(config, out, 4, resume=True)
    result = cross_validate(config, out, 3, resume=True)
    assert (out / "fold-0" / "metrics.jsonl").read_text() == kept, "its times show that it was not trained again"
    whole = folds.read_result()
    assert [result[name] for name in ("test_each", "scores")] == [whole[name] for name in ("test_each", "scores")]
    assert (out / "out_of_fold.csv").read_bytes() == (folds.path / "out_of_fold.csv").read_bytes()


def test_seeds_and_folds_do_not_share_a_folder(folds, molecules, tmp_path):
    with pytest.raises(RunFolderError, match="several folds"):
        run_ensemble(small_config(molecules), folds.path, 2, overwrite=True)
    run_ensemble(small_config(molecules, epochs=1), tmp_path / "seeds", 2)
    with pytest.raises(RunFolderError, match="several seeds"):
        cross_validate(small_config(molecules), tmp_path / "seeds", 2, overwrite=True)
    with pytest.raises(RunFolderError, match="holds a single run"):
        cross_validate(small_config(molecules), folds.member(0).path, 2, overwrite=True)


def test_folds_of_different_data_are_no_ensemble(folds, molecules, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("\n".join(molecules.read_text().splitlines()[:-1]) + "\n")
    shutil.copytree(folds.path, tmp_path / "run")
    run(small_config(other, folds=3, fold=1), tmp_path / "run" / "fold-1", overwrite=True)
    with pytest.raises(MismatchError, match="fold 0 and fold 1 were trained on different data"):
        load_runs(tmp_path / "run")


def test_wrong_numbers_of_folds_are_refused(molecules, tmp_path):
    with pytest.raises(DataError, match="folds=60: expected a number from 2 to 59"):
        cross_validate(small_config(molecules), tmp_path / "run", 60)
    with pytest.raises(RunError, match="folds=1"):
        cross_validate(small_config(molecules), tmp_path / "run", 1)
    with pytest.raises(RunError, match="csl has its own splits"):
        cross_validate(small_config(molecules).__class__(data="csl"), tmp_path / "run", 3)
    assert not (tmp_path / "run").exists()


def test_the_out_of_fold_predictions_of_a_loaded_ensemble_are_those_of_the_file(folds):
    ensemble, task = load_runs(folds.path), load_task(folds.member(0).read_config())
    written = [float(row["predicted_size"]) for row in table(folds.path / "out_of_fold.csv")]
    assert out_of_fold(ensemble, task).out[:, 0].tolist() == pytest.approx(written, rel=1e-5)


def test_folds_have_the_score_of_each_target(molecules, tmp_path):
    result = cross_validate(small_config(molecules, ("size", "twice"), epochs=1), tmp_path / "folds", 2)
    rows = table(tmp_path / "folds" / "out_of_fold.csv")
    for name, score in result["targets"]["out_of_fold"].items():
        errors = [abs(float(row[name]) - float(row[f"predicted_{name}"])) for row in rows if row[name]]
        assert score == pytest.approx(sum(errors) / len(errors), rel=1e-6)
    assert sum(result["targets"]["out_of_fold"].values()) / 2 == pytest.approx(result["out_of_fold_score"])
    assert "targets" not in cross_validate(small_config(molecules, epochs=1), tmp_path / "one", 2)
