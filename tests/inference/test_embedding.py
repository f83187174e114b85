"""Embeddings are what the head of a trained model reads: of molecules, of atoms, and of files in chunks."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

from engine_tasks import one_thread as one_thread
from molecule_runs import MOLECULES, small_config, write_molecules
from pathnn.data.errors import BadRowsError
from pathnn.data.readers.molecules import read_molecules
from pathnn.data.readers.pool import MoleculesRead
from pathnn.data.readers.smiles import pack_molecules
from pathnn.inference import Embedder, Predictor, embed, embed_file, stream
from pathnn.inference.predictor import load_run
from pathnn.training import RunConfig, run, run_ensemble

SMILES = ["OCC", "c1ccccc1C(=O)N", "CC", "N[C@@H](C)C(=O)O"]


@pytest.fixture
def chunks_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHUNK_ROWS", 2)


def test_the_head_of_an_embedding_is_the_prediction() -> None:
    model = load_run(Path("molhiv-ap")).model
    with torch.no_grad():
        probability = model.head(torch.from_numpy(embed("molhiv-ap", SMILES))).sigmoid()[:, 0]
    np.testing.assert_allclose(probability, Predictor("molhiv-ap")(SMILES)["probability"], rtol=1e-5)


def test_the_mean_over_atoms_is_the_embedding_of_the_molecule() -> None:
    assert load_run(Path("molhiv-ap")).model.config.readout == "mean"
    means = [rows.mean(axis=0) for rows in embed("molhiv-ap", SMILES, atoms=True)]
    np.testing.assert_allclose(means, embed("molhiv-ap", SMILES), atol=1e-5)


def test_atoms_are_in_the_order_of_the_smiles() -> None:
    one, two, three = embed("molhiv-ap", ["OCCN", "NCCO", "C(CN)O"], atoms=True)
    np.testing.assert_allclose(one, two[::-1], atol=1e-5)
    np.testing.assert_allclose(one[[1, 2, 3, 0]], three, atol=1e-5)
    assert not np.allclose(one[0], one[3], atol=1e-3)


def test_parts_without_molecules_do_not_shift_the_atoms() -> None:
    """Processes read a chunk in parts, and one of them may have only bad rows."""
    embedder = Embedder("molhiv-ap", atoms=True)
    parts = [read_molecules([text], embedder.trained.signature.molecule_features)[0] for text in ("C(", "OCCN", "CO")]
    columns = embedder.predict_molecules(["C(", "OCCN", "CO"], MoleculesRead(parts, {0: "bad"}))
    expected = embed("molhiv-ap", ["OCCN", "CO"], atoms=True)
    assert columns["embedding"][0] is None
    for found, rows in zip(columns["embedding"][1:], expected, strict=True):
        np.testing.assert_allclose(found, rows, atol=1e-5)


def test_bad_molecules_are_named() -> None:
    with pytest.raises(BadRowsError, match=r"1 of 2 rows .*row 2: 'C\(' is no molecule"):
        embed("molhiv-ap", ["CCO", "C("])
    assert embed("molhiv-ap", []).shape == (0, 128)


def test_networks_of_an_ensemble_are_next_to_each_other(tmp_path: Path) -> None:
    config = small_config(write_molecules(tmp_path / "data.csv"), epochs=1)
    run_ensemble(config, tmp_path / "seeds", 2)
    each = [embed(tmp_path / "seeds" / f"seed-{i}", SMILES) for i in (0, 1)]
    np.testing.assert_allclose(embed(tmp_path / "seeds", SMILES), np.hstack(each), atol=1e-6)
    assert not np.allclose(*each, atol=1e-3)


@pytest.mark.parametrize("model", ["pathnn", "gin"])
def test_descriptors_are_left_out(tmp_path: Path, model: str) -> None:
    data = write_molecules(tmp_path / "data.csv")
    run(small_config(data, descriptors=("twice", "active"), skip_invalid=True, epochs=1, model=model), tmp_path / "run")
    trained = load_run(tmp_path / "run")
    found = embed(tmp_path / "run", MOLECULES[:3])  # without the columns
    assert found.shape == (3, 8)
    graphs = pack_molecules([read_molecules(MOLECULES[:3], "cip")[0]])
    with torch.no_grad():
        batch = graphs.select([0, 1, 2])
        expected = trained.model.embed(batch.x, batch.edge_index, batch=batch.batch, edge_attr=batch.edge_attr)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def read_csv(path: Path) -> list[dict[str, str]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.DictReader(text.decode().splitlines()))


TABLE = "smiles,embedding_0,error\nOCC,a,b\nC(,,\nCO,c,d\nc1ccccc1,e\n"


@pytest.mark.usefixtures("chunks_of_two")
@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_a_file_keeps_its_columns_and_its_bad_rows(tmp_path: Path, name: str) -> None:
    """Also columns with the names of the new ones."""
    (tmp_path / "new.csv").write_text(TABLE)
    done = embed_file(Embedder("molhiv-ap"), str(tmp_path / "new.csv"), tmp_path / name)
    assert (done.rows, done.bad) == (4, 1)
    if name == "out.parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (extra chem)")
        rows = parquet.read_table(tmp_path / name).to_pylist()
        assert rows[1]["embedding_1"] is None
    else:
        rows = read_csv(tmp_path / name)
        assert rows[1]["embedding_1"] == ""
    names = ["smiles", "embedding_0", "error", "embedding_0_", *(f"embedding_{i}" for i in range(1, 128)), "error_"]
    assert list(rows[0]) == names
    assert [row["smiles"] for row in rows] == ["OCC", "C(", "CO", "c1ccccc1"]
    assert [row["embedding_0"] for row in rows] == ["a", "", "c", "e"]
    assert "is no molecule" in rows[1]["error_"]
    assert not rows[0]["error_"]
    found = [[float(row[column]) for column in names[3:-1]] for row in rows if row["smiles"] != "C("]
    np.testing.assert_allclose(found, embed("molhiv-ap", ["OCC", "CO", "c1ccccc1"]), atol=1e-5)


@pytest.mark.usefixtures("chunks_of_two")
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_file_of_atoms_has_the_numbers_of_rows_and_atoms(tmp_path: Path, name: str) -> None:
    (tmp_path / "new.csv").write_text(TABLE)
    embed_file(Embedder("molhiv-ap", atoms=True), str(tmp_path / "new.csv"), tmp_path / name)
    if name == "out.parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow (extra chem)")
        rows = parquet.read_table(tmp_path / name).to_pylist()
    else:
        rows = [{key: int(value) if key in ("row", "atom") and value else value or None for key, value in row.items()}
                for row in read_csv(tmp_path / name)]  # fmt: skip
    assert list(rows[0]) == ["row", "atom", *(f"embedding_{i}" for i in range(128)), "error"]
    places = [(row["row"], row["atom"]) for row in rows]
    assert places == [(1, 0), (1, 1), (1, 2), (2, None), (3, 0), (3, 1), *((4, i) for i in range(6))]
    assert [place for place, row in zip(places, rows, strict=True) if row["error"]] == [(2, None)]
    found = [float(row["embedding_5"]) for row in rows if not row["error"]]
    expected = np.concatenate(embed("molhiv-ap", ["OCC", "CO", "c1ccccc1"], atoms=True))
    np.testing.assert_allclose(found, expected[:, 5], atol=1e-5)


@pytest.mark.usefixtures("chunks_of_two")
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path: Path, name: str) -> None:
    (tmp_path / "new.csv").write_text("smiles\nCC\nCCC\nCO\nC(\n")
    with pytest.raises(BadRowsError, match="row 4"):
        embed_file(Embedder("molhiv-ap"), str(tmp_path / "new.csv"), tmp_path / name, strict=True)
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_graphs_that_are_not_in_a_table_have_numbers(tmp_path: Path) -> None:
    run(
        RunConfig(data="csl", collection="sp", k=1, epochs=1, device="cpu", options={"hidden_channels": 4}),
        tmp_path / "run",
    )
    embed_file(Embedder(tmp_path / "run"), "csl", tmp_path / "graphs.csv")
    embed_file(Embedder(tmp_path / "run", atoms=True), "csl", tmp_path / "vertices.csv")
    graphs, vertices = read_csv(tmp_path / "graphs.csv"), read_csv(tmp_path / "vertices.csv")
    assert [row["graph"] for row in graphs] == [str(i) for i in range(150)]
    assert [(row["graph"], row["vertex"]) for row in vertices] == [
        (str(i), str(j)) for i in range(150) for j in range(41)
    ]
    total = sum(float(row["embedding_0"]) for row in vertices[:41])
    assert float(graphs[0]["embedding_0"]) == pytest.approx(total, rel=1e-4)
