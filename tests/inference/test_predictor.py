"""A trained model on new data: which model, which graphs, and predictions as columns."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine_tasks import tiny_config, tiny_task
from pathnn.data.readers.molecules import read_molecules
from pathnn.data.readers.smiles import pack_molecules
from pathnn.data.task import Split
from pathnn.inference.intervals import checksum
from pathnn.inference.predictor import (
    Predictor,
    choose_graphs,
    choose_part,
    load_run,
    load_runs,
    target_options,
)
from pathnn.training import load_model, run
from pathnn.training.checkpoint import TrainedModel


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


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    return Predictor("molhiv-ap")


def test_a_predictor_keeps_the_places_of_what_cannot_be_read(predictor: Predictor) -> None:
    columns = predictor(["CCO", "C(", None, "OCC"])
    assert list(columns) == ["probability", "error"]
    assert [value is None for value in columns["probability"]] == [False, True, True, False]
    assert [value is None for value in columns["error"]] == [True, False, False, True]
    assert predictor(["C("])["probability"] == [None]
    assert predictor([]) == {"probability": [], "error": []}
    one, two = predictor(["CCO"])["probability"] + predictor(["OCC"])["probability"]
    assert one == columns["probability"][0]
    assert two == pytest.approx(columns["probability"][3], rel=1e-5)


def test_a_predictor_gives_what_the_network_gives(predictor: Predictor) -> None:
    """Whatever the size of a batch: compare with the graphs one at a time."""
    texts = ["C" * n + "O" for n in range(1, 12)] * 15
    expected = {text: predictor([text])["probability"][0] for text in set(texts)}
    assert predictor(texts)["probability"] == pytest.approx([expected[text] for text in texts], rel=1e-5)


def test_a_predictor_reads_graphs_of_pyg(predictor: Predictor) -> None:
    molecules, _ = read_molecules(["CCO", "c1ccccc1"], "ogb")
    graphs = pack_molecules([molecules])
    columns = predictor([graphs[0], graphs[1]])
    assert columns["probability"] == pytest.approx(predictor(["CCO", "c1ccccc1"])["probability"], rel=1e-6)
    assert columns["error"] == [None, None]
    for wrong, message in (("CCO", "list of SMILES"), (["CCO", graphs[0]], "one kind")):
        with pytest.raises(ValueError, match=message):
            predictor(wrong)


def test_a_predictor_can_be_pickled_and_knows_its_networks(predictor: Predictor) -> None:
    copy = pickle.loads(pickle.dumps(predictor))
    assert copy(["CCO"]) == predictor(["CCO"])
    assert checksum(copy.trained) == checksum(predictor.trained)
    next(copy.trained.members[0].model.parameters()).data[0] += 1
    assert checksum(copy.trained) != checksum(predictor.trained)


def test_functions_add_columns(predictor: Predictor) -> None:
    other = Predictor(predictor.trained)
    other.more_columns.append(lambda texts: {"length": [len(text or "") for text in texts]})
    assert list(other(["CCO", "C("])) == ["probability", "length", "error"]
    assert other(["CCO", "C("])["length"] == [3, 2]
