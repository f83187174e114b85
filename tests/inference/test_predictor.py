"""A trained model on new data: which model, which graphs, and predictions as a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine_tasks import tiny_config, tiny_task
from pathnn.data.errors import BadRow, BadRowsError
from pathnn.data.task import Split
from pathnn.inference.predictor import (
    choose_graphs,
    choose_part,
    load_run,
    load_runs,
    target_options,
)
from pathnn.inference.stream import add_columns, predict_table
from pathnn.training import load_model, run
from pathnn.training.checkpoint import TrainedModel
from pathnn.training.ensemble import Ensemble


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("inference") / "run"
    run(tiny_config(fold=3, epochs=1), out, task=replace(tiny_task(), splits=tiny_task().splits * 4))
    return out


@pytest.fixture
def trained(folder: Path) -> TrainedModel:
    return load_model(folder / "model.safetensors")


def test_a_model_is_found_in_a_folder_a_file_or_by_name(folder: Path, tmp_path: Path) -> None:
    one, two = load_runs(folder), load_run(folder / "model.safetensors")
    assert one.members[0].config == two.config
    assert load_run(Path("zinc-ap")).config.data == "zinc"
    for wrong, message in ((tmp_path, "no model.safetensors"), (tmp_path / "zinc-ab", "does not exist.*zinc-ap")):
        with pytest.raises(ValueError, match=message):
            load_runs(wrong)


def test_the_part_is_test_for_the_training_data_and_all_for_other_data(trained: TrainedModel) -> None:
    """Also where other data of the same size has no fold of the run's number."""
    other, folds = replace(trained.config, data="other"), replace(tiny_task(), splits=tiny_task().splits * 4)
    for asked, expected in ((None, "all"), ("all", "all"), ("val", "val")):
        assert choose_part(trained, tiny_task(seed=1), other, asked) == expected
    assert choose_part(trained, folds, other, None) == "test"
    with pytest.raises(ValueError, match="its graphs are others"):
        choose_part(trained, tiny_task(seed=1), trained.config, None)


def test_a_part_is_known_and_has_graphs(trained: TrainedModel) -> None:
    task, config = tiny_task(), replace(trained.config, fold=0)
    assert choose_graphs(task, config, "all") is None
    assert torch.equal(choose_graphs(task, config, "val"), task.splits[0].val)
    with pytest.raises(ValueError, match=r"best.*expected one of 'train', 'val', 'test', 'all'"):
        choose_graphs(task, config, "best")
    split = task.splits[0]
    untested = replace(task, splits=(Split(split.train, split.val, split.test[:0]),))
    with pytest.raises(ValueError, match="no test graphs"):
        choose_graphs(untested, config, "test")


def test_targets_are_read_as_in_training(trained: TrainedModel) -> None:
    facts = replace(trained.signature, target="regression", classes=["a", "b"])
    two = replace(trained, signature=facts)
    assert target_options(two, ["b", "a"]) == {"target": ("a", "b"), "kind": "regression"}
    assert target_options(two, ["c"]) == {"target": ("c",)}
    assert target_options(two, None)["kind"] == "regression"
    classes = replace(trained, signature=replace(facts, target="class"))
    assert target_options(classes, ["c"]) == {"target": ("c",), "kind": "class"}


def test_names_of_columns_are_not_taken_twice() -> None:
    header, rows = add_columns((["error"], [["x"], ["y"]]), (BadRow(1, "no"),), {"prediction": [2.0]})
    assert header == ["error", "prediction", "error_"]
    assert rows == [["x", "", "no"], ["y", 2.0, ""]]


def test_rows_that_cannot_be_read_keep_their_place(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    ensemble = Ensemble((load_run(Path("molhiv-ap")),))
    path = tmp_path / "new.csv"
    path.write_text("smiles\nCCO\nnonsense\n")
    table = predict_table(ensemble, str(path))
    assert (table.header, table.predicted) == (["smiles", "probability", "error"], ("probability",))
    assert 0 < table.rows[0][1] < 1
    assert table.rows[1][1] == ""
    assert [bad.row for bad in table.bad] == [2]
    with pytest.raises(BadRowsError, match="row 2"):
        predict_table(ensemble, str(path), strict=True)
    path.write_text("smiles\nnonsense\n")
    assert predict_table(ensemble, str(path)).rows[0][1] == ""
