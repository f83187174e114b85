"""`pathnn train --folds --baselines` and `pathnn compare`, as a user calls them."""

from __future__ import annotations

import builtins
import csv
import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from molecule_runs import write_molecules
from pathnn.cli.app import make_app

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

SMALL = ["--target", "size", "--epochs", "2", "--hidden", "8", "--k", "2", "--device", "cpu"]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_molecules(tmp_path_factory.mktemp("csv") / "molecules.csv")


def call(*arguments: object):
    return CliRunner().invoke(make_app(), [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folds(molecules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("folds") / "run"
    result = call("train", molecules, "--out", out, "--folds", 2, *SMALL)
    assert result.exit_code == 0, result.stderr
    assert "MAE of 2 folds: each" in result.stdout
    assert f"{out}/report.html is the report" in result.stdout
    return out


def test_folds_can_be_evaluated_predicted_with_and_explained(molecules, folds, tmp_path):
    assert (folds / "out_of_fold.csv").exists()
    evaluated = call("evaluate", folds, molecules, "--split", "all", "--json")
    assert json.loads(evaluated.stdout)["networks"] == 2
    refused = call("evaluate", folds, molecules)
    assert (refused.exit_code, "no test graphs in common. out_of_fold.csv" in refused.stderr) == (1, True)
    assert "2 networks, one per fold" in call("evaluate", folds, molecules, "--split", "all").stdout
    predicted = call("predict", folds, molecules, "-o", tmp_path / "out.csv")
    assert predicted.exit_code == 0, predicted.stderr
    with (tmp_path / "out.csv").open() as file:
        row = list(csv.DictReader(file))[4]
    explained = json.loads(call("explain", folds, molecules, "--row", 5, "--json").stdout)
    assert explained["networks"] == 2
    assert explained["prediction"] == pytest.approx(float(row["predicted_size"]), rel=1e-4)


def test_folds_are_resumed_by_their_number(molecules, folds):
    again = call("train", molecules, "--out", folds, "--folds", 2, "--resume", "--json", *SMALL)
    assert again.exit_code == 0, again.stderr
    saved = json.loads((folds / "result.json").read_text())
    assert json.loads(again.stdout) == {**saved, "out": str(folds)}
    for wish in (["--folds", 3, "--resume"], ["--folds", 2]):
        assert call("train", molecules, "--out", folds, *wish, *SMALL).exit_code == 1
    single = call("train", molecules, "--out", folds, "--resume", *SMALL)
    assert (single.exit_code, "--folds 2 --resume" in single.stderr) == (2, True)
    one = call("train", molecules, "--out", folds / "fold-1", "--resume", *SMALL)
    assert one.exit_code == 0, one.stderr


def test_folds_and_a_calibration_part_give_intervals(molecules, folds, tmp_path):
    predicted = call("predict", folds, molecules, "-o", tmp_path / "out.csv", "--interval", 0.9)
    assert predicted.exit_code == 0, predicted.stderr
    with (tmp_path / "out.csv").open() as file:
        assert all(float(row["size_lower"]) < float(row["size_upper"]) for row in csv.DictReader(file))
    high = call("predict", folds, molecules, "--interval", 0.99, "--json")
    assert "a level of 0.99 needs at least 99 calibration molecules" in high.stderr
    assert json.loads(high.stdout)["predictions"]["size_upper"] == [None] * 60, "JSON has no infinity"
    assert call("predict", folds, molecules, "--interval", 90).exit_code == 2
    run = tmp_path / "run"
    assert call("train", molecules, "--out", run, *SMALL).exit_code == 0
    refused = call("predict", run, molecules, "--interval", 0.9)
    assert (refused.exit_code, "--calibration 0.1" in refused.stderr) == (1, True)
    trained = call("train", molecules, "--out", run, "--overwrite", "--calibration", 0.2, *SMALL)
    assert trained.exit_code == 0, trained.stderr
    assert "size_lower" in call("predict", run, molecules, "--interval", 0.8).stdout
    splits = tmp_path / "split.csv"
    for name in ("first", "again"):  # the first writes the split, with the calibration part in the training part
        result = call("train", molecules, "--out", tmp_path / name, "--splits", splits, "--calibration", 0.2, *SMALL)
        assert result.exit_code == 0, result.stderr
    first, again = ((tmp_path / name / "intervals.json").read_text() for name in ("first", "again"))
    assert len(json.loads(first)["scores"]) == len(json.loads(again)["scores"])


def test_a_metric_that_is_not_defined_is_a_dash_with_a_reason(molecules, tmp_path):
    lines = molecules.read_text().splitlines()
    table = tmp_path / "same.csv"
    rows = [line.split(",") for line in lines]
    table.write_text("\n".join(",".join([*row[:3], "0" if row[5] == "test" else row[3], *row[4:]]) for row in rows))
    options = ["--target", "active", "--split-by", "part", *SMALL[2:]]
    for seed in (0, 1):
        result = call("train", table, "--out", tmp_path / f"run{seed}", "--seed", seed, *options)
        assert result.exit_code == 0, result.stderr
    compared = call("compare", tmp_path / "run0", tmp_path / "run1")
    assert compared.exit_code == 0, compared.stderr
    assert "nan" not in compared.stdout
    assert compared.stdout.count("–") == 8, "two scores with intervals, and all of a difference"
    assert "ROC-AUC needs molecules whose targets differ" in compared.stderr
    assert "–" not in call("compare", tmp_path / "run0", tmp_path / "run1", "--metric", "brier").stdout


@pytest.mark.parametrize(
    ("wish", "code", "message"),
    [
        (["--folds", 2, "--seeds", 2], 2, "exclude each other"),
        (["--folds", 2, "--calibration", 0.1], 2, "folds calibrate intervals"),
        (["--folds", 2, "--fold", 1], 2, "leave out --fold"),
        (["--folds", 60], 1, "from 2 to 59"),
        (["--folds", 1], 2, "2"),
    ],
)
def test_wrong_wishes_are_refused(molecules, tmp_path, wish, code, message):
    result = call("train", molecules, "--out", tmp_path / "run", *wish, *SMALL)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert not (tmp_path / "run").exists()


def test_other_data_has_no_baselines(tmp_path):
    result = call("train", "csl", "--out", tmp_path / "run", "--baselines")
    assert (result.exit_code, "--baselines" in result.stderr) == (2, True)
    result = call("train", "csl", "--out", tmp_path / "run", "--folds", 3)
    assert (result.exit_code, "has its own splits" in result.stderr) == (1, True)


@pytest.mark.parametrize(("package", "extra"), [("lightgbm", "chem"), ("sklearn", "chem")])
def test_a_missing_extra_is_named_before_the_training(molecules, tmp_path, monkeypatch, package, extra):
    find = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return find(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    result = call("train", molecules, "--out", tmp_path / "run", "--baselines", *SMALL)
    assert (result.exit_code, f"pathnn[{extra}]" in result.stderr) == (1, True), result.stderr
    assert not (tmp_path / "run").exists()


def test_baselines_are_printed_kept_and_compared(molecules, tmp_path, monkeypatch):
    pytest.importorskip("lightgbm", reason="baselines need the extra chem")
    from pathnn.evaluation import baselines

    monkeypatch.setitem(baselines.FOREST, "n_estimators", 20)
    monkeypatch.setitem(baselines.BOOSTING, "n_estimators", 20)
    one, two = tmp_path / "one", tmp_path / "two"
    result = call("train", molecules, "--out", one, "--baselines", "--json", *SMALL)
    assert result.exit_code == 0, result.stderr
    scores = json.loads(result.stdout)["baselines"]
    assert set(scores) == {f"{m}, {f}" for m in ("random forest", "LightGBM") for f in ("Morgan", "descriptors")}
    before = (one / "baselines.json").stat().st_mtime_ns
    again = call("train", molecules, "--out", one, "--baselines", "--resume", *SMALL)
    assert "random forest, Morgan: " in again.stdout
    assert (one / "baselines.json").stat().st_mtime_ns == before, "they are not trained again"
    assert call("train", molecules, "--out", two, "--seed", 1, *SMALL).exit_code == 0
    compared = call("compare", one, two, "-o", tmp_path / "compared.svg")
    assert compared.exit_code == 0, compared.stderr
    assert "MAE on 6 molecules" in compared.stdout
    assert "<svg" in (tmp_path / "compared.svg").read_text()
    document = json.loads(call("compare", one, two, "--metric", "rmse", "--json").stdout)
    assert [model["name"] for model in document["models"]] == [str(one), *scores, str(two)]
    assert document["models"][1]["score"] == pytest.approx(scores["random forest, Morgan"]["rmse"], rel=1e-5)
    assert {"value", "low", "high", "better"} == {*document["models"][2]["difference"]}
    overwritten = call("train", molecules, "--out", one, "--overwrite", *SMALL)
    assert overwritten.exit_code == 0, overwritten.stderr
    assert not (one / "baselines.json").exists()


def test_what_cannot_be_compared_is_refused(molecules, folds, tmp_path):
    assert call("train", molecules, "--out", tmp_path / "one", *SMALL).exit_code == 0
    result = call("compare", folds, tmp_path / "one")
    assert (result.exit_code, "the same molecules" in result.stderr) == (1, True)
    assert call("compare", folds, "-o", tmp_path / "x.gif").exit_code == 2
    assert call("compare", tmp_path / "nowhere").exit_code == 1
    assert call("compare", folds, "--metric", "roc-auc").exit_code == 1


def test_several_targets_of_folds_are_printed(molecules, tmp_path):
    table = tmp_path / "two.csv"
    lines = [line.split(",")[:2] for line in molecules.read_text().splitlines()]
    table.write_text("\n".join(",".join([*row, "other" if i == 0 else str(i)]) for i, row in enumerate(lines)))
    options = ["--target", "size", "--target", "other", *SMALL[2:]]
    trained = call("train", table, "--out", tmp_path / "run", "--folds", 2, *options)
    assert trained.exit_code == 0, trained.stderr
    assert "out_of_fold, MAE of each target: size " in trained.stdout
    compared = call("compare", tmp_path / "run").stdout
    for title in ("MAE of size", "MAE of other", "MAE, the mean of 2 targets,"):
        assert f"{title} on 60 molecules" in compared
    document = json.loads(call("compare", tmp_path / "run", "--json").stdout)
    scores = json.loads((tmp_path / "run" / "result.json").read_text())["targets"]["out_of_fold"]
    assert {name: one["models"][0]["score"] for name, one in document["targets"].items()} == pytest.approx(scores)
    single = call("train", table, "--out", tmp_path / "one", *options)
    assert single.exit_code == 0, single.stderr
    few = call("compare", tmp_path / "one", tmp_path / "one")
    assert "fewer than 10 molecules have no intervals" in few.stderr
    assert "yes" not in few.stdout
