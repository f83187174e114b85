"""A model that reads descriptors, or whose training molecules are stored, predicts in chunks as it was trained."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

from pathnn.data import DataError, load_data
from pathnn.explain.subject import read_subject
from pathnn.inference import Predictor, predict_table, stream
from pathnn.inference.similarity import TrainingMolecules
from pathnn.training import RunConfig, load_model, predict, run

MOLECULES = ["CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "OCCO", "Cc1ccccc1", "CCOC", "CNC"]


@pytest.fixture(params=["rdkit", ("pH",)])
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """The data and the folder of a run on descriptors."""
    data = tmp_path / "data.csv"
    with data.open("w") as file:
        rows = [(text, len(text), i % 3) for i, text in enumerate(MOLECULES)]
        csv.writer(file, lineterminator="\n").writerows([("smiles", "y", "pH"), *rows])
    options = {"hidden_channels": 8}
    config = RunConfig(data=str(data), target="y", descriptors=request.param, k=2, epochs=2, options=options)
    run(config, tmp_path / "run")
    return data, tmp_path / "run"


def test_chunks_get_the_descriptors_of_their_rows(trained: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    data, folder = trained
    monkeypatch.setattr(stream, "CHUNK_ROWS", 3)
    model = load_model(folder / "model.safetensors")
    task = load_data(data, targets="y", descriptors=model.signature.descriptors)
    expected = model.signature.target_scale.decode(predict(model, task))[:, 0].tolist()
    table = predict_table(Predictor(folder), str(data))
    found = [row[table.header.index("predicted_y")] for row in table.rows]
    assert found == pytest.approx(expected, abs=1e-4)
    assert len(set(found)) > 5


def test_missing_columns_are_named(trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, folder = trained
    predictor = Predictor(folder)
    if predictor.trained.signature.descriptors.kind == "rdkit":
        assert predictor(["CCO"])["error"] == [None]
        return
    other = tmp_path / "other.csv"
    other.write_text("smiles\nCCO\n")
    with pytest.raises(DataError, match="pH"):
        predict_table(predictor, str(other))
    with pytest.raises(DataError, match="pH"):
        predictor(["CCO"])


def test_a_row_with_a_descriptor_that_is_no_number_has_no_prediction(
    trained: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = trained
    monkeypatch.setattr(stream, "CHUNK_ROWS", 2)
    other = tmp_path / "other.csv"
    other.write_text("smiles,pH\nCCO,1\nCCN,2\nCCC,1\nCO,high\nCC,inf\n")
    predictor = Predictor(folder)
    table = predict_table(predictor, str(other))
    columns = predictor.trained.signature.descriptors.kind == "columns"
    assert [bad.row for bad in table.bad] == ([4, 5] if columns else [])
    assert [row[-1] for row in table.rows[:3]] == [""] * 3
    if columns:
        assert table.rows[3] == ["CO", "high", "", "the descriptor 'pH' is 'high', not a finite number"]
        with pytest.raises(DataError, match="row 2: the descriptor 'pH' is 'high'"):
            read_subject(predictor.trained.members[0], str(_lines(other, 0, 1, 4)), row=2)


def _lines(table: Path, *numbers: int) -> Path:
    lines = table.read_text().splitlines()
    part = table.with_name("part.csv")
    part.write_text("\n".join(lines[number] for number in numbers))
    return part


def test_the_similarity_is_added_where_the_training_molecules_are(trained: tuple[Path, Path]) -> None:
    data, folder = trained
    assert "similarity" not in predict_table(Predictor(folder), str(data)).header
    TrainingMolecules.of(["CCO", "CCN"]).save(folder)
    table = predict_table(Predictor(folder), str(data))
    similarity = [row[table.header.index("similarity")] for row in table.rows]
    assert similarity[:2] == [1.0, 1.0]
    assert max(similarity[2:]) < 1
