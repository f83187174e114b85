"""Files are predicted in chunks: whole, in parts, resumed, compressed, with what cannot be read in its place."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

from pathnn.data.errors import BadRowsError
from pathnn.files import locked_file
from pathnn.inference import Predictor, predict_file, predict_table, stream
from pathnn.inference.stream import PredictionTable, count_rows, part_rows

ROWS = [("CCO", "a"), ("C(", "b"), ("c1ccccc1", "c"), ("CC,N", "d"), ("CCN",), ("CCCl", "f"), ("N", "g")]


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor("molhiv-ap")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of seven rows, and chunks of two."""
    monkeypatch.setattr(stream, "CHUNK_ROWS", 2)
    path = tmp_path / "new.csv"
    with path.open("w") as file:
        csv.writer(file, lineterminator="\n").writerows([("smiles", "name"), *ROWS])
    return path


def stop_after(chunks: int) -> Any:
    """Return a report that stops a prediction, as a signal would."""
    left = [chunks]

    def report(chunk: PredictionTable) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    return report


def test_names_of_columns_are_not_taken_twice(predictor: Predictor, data: Path) -> None:
    data.write_text("smiles,error\nC(,x\nC,y\n")
    table = predict_table(predictor, str(data))
    assert table.header == ["smiles", "error", "probability", "error_"]
    bad, good = table.rows
    assert bad == ["C(", "x", "", "'C(' is no molecule: it does not follow the SMILES grammar"]
    assert (*good[:2], good[3]) == ("C", "y", "")


def test_graphs_that_are_not_in_a_table_keep_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = tmp_path / "my.g6"
    graphs.write_text("Bw\nBww\nA_\n")
    predict = Predictor("molhiv-ap")

    def sizes(task: Any) -> dict[str, list[float]]:
        return {"prediction": [float(graph.num_nodes) for graph in task.graphs]}

    monkeypatch.setattr(predict, "predict_task", sizes)
    table = predict_table(predict, str(graphs))
    assert table.header == ["graph", "name", "prediction", "error"]
    assert table.rows[0] == [0, "Bw", 3.0, ""]
    assert table.rows[2] == [2, "A_", 2.0, ""]
    assert table.rows[1][:3] == [1, "", ""]


def test_chunks_are_the_rows_of_the_molecules_in_order(predictor: Predictor, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out.csv"
    done = predict_file(predictor, str(data), out)
    assert (done.chunks, done.rows, done.bad) == (4, 7, 2)
    assert done.first_bad is not None
    assert done.first_bad.startswith("row 2: 'C(' is no molecule")
    header, *rows = csv.reader(out.read_text().splitlines())
    assert header == ["smiles", "name", "probability", "error"]
    assert [tuple(row[:2]) for row in rows] == [(one[0], one[1] if len(one) > 1 else "") for one in ROWS]
    alone = predictor([one[0] for one in ROWS])
    assert [row[2] == "" for row in rows] == [value is None for value in alone["probability"]]
    for row, expected in zip(rows, alone["probability"], strict=True):
        assert expected is None or float(row[2]) == pytest.approx(expected, rel=1e-5)
    assert [row[3] for row in rows] == [reason or "" for reason in alone["error"]]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out.csv"]
    table = predict_table(predictor, str(data))
    assert [[str(value) for value in row] for row in table.rows] == rows
    assert [one.row for one in table.bad] == [2, 4]


def test_compressed_files_and_standard_input_hold_the_same(
    predictor: Predictor, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict_file(predictor, str(data), tmp_path / "out.csv")
    expected = (tmp_path / "out.csv").read_bytes()
    (tmp_path / "new.csv.xz").write_bytes(lzma.compress(data.read_bytes()))
    predict_file(predictor, str(tmp_path / "new.csv.xz"), tmp_path / "out.csv.gz")
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
    predict_file(predictor, "-", tmp_path / "stdin.csv")
    assert (tmp_path / "stdin.csv").read_bytes() == expected
    for wrong in ("out.csv.xz", "."):
        with pytest.raises(ValueError, match=r"expected the name of a .csv or .csv.gz"):
            predict_file(predictor, str(data), tmp_path / wrong)


@pytest.mark.parametrize("parts", [2, 3, 7, 9])
def test_the_parts_are_the_whole(predictor: Predictor, data: Path, tmp_path: Path, parts: int) -> None:
    predict_file(predictor, str(data), tmp_path / "whole.csv")
    header, *whole = csv.reader((tmp_path / "whole.csv").read_text().splitlines())
    joined, sizes = [], []
    for number in range(1, parts + 1):
        predict_file(predictor, str(data), tmp_path / "one.csv", part=(number, parts))
        first, *rows = csv.reader((tmp_path / "one.csv").read_text().splitlines())
        assert first == header
        joined += rows
        sizes.append(len(rows))
    for row, expected in zip(joined, whole, strict=True):
        assert [*row[:2], row[3]] == [*expected[:2], expected[3]]
        assert float(row[2] or 0) == pytest.approx(float(expected[2] or 0), rel=1e-5), "up to rounding"
    assert max(sizes) - min(sizes) <= 1, "whatever the chunks"
    assert count_rows(str(data)) == len(ROWS)
    with pytest.raises(ValueError, match="part=3/2"):
        part_rows(str(data), (3, 2))
    with pytest.raises(ValueError, match="standard input"):
        part_rows("-", (1, 2))


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
@pytest.mark.parametrize("stop", [1, 3, 4])
@pytest.mark.parametrize("part", [(1, 1), (2, 2)])
def test_a_stopped_prediction_is_resumed_at_its_chunk(
    predictor: Predictor, data: Path, tmp_path: Path, name: str, stop: int, part: tuple[int, int]
) -> None:
    out = tmp_path / name
    expected = predict_file(predictor, str(data), out, part=part)
    content = out.read_bytes()
    out.unlink()
    stop = min(stop, expected.chunks)
    with pytest.raises(KeyboardInterrupt):
        predict_file(predictor, str(data), out, part=part, report=stop_after(stop))
    assert not out.exists()
    with (tmp_path / f"{name}.part").open("ab") as file:
        file.write(b"half a chunk")
    chunks: list[PredictionTable] = []
    done = predict_file(predictor, str(data), out, part=part, resume=True, report=chunks.append)
    assert len(chunks) == expected.chunks - stop
    assert out.read_bytes() == content
    assert done == expected
    assert not list(tmp_path.glob("*.part*"))


def test_what_has_changed_is_not_resumed(predictor: Predictor, data: Path, tmp_path: Path) -> None:
    out, text = tmp_path / "out.csv", data.read_text()
    with pytest.raises(KeyboardInterrupt):
        predict_file(predictor, str(data), out, report=stop_after(2))
    partial = (tmp_path / "out.csv.part").read_bytes()
    with pytest.raises(ValueError, match="this has changed: the model"):
        predict_file(Predictor("molhiv-sp+"), str(data), out, resume=True)
    with pytest.raises(ValueError, match="this has changed: --part"):
        predict_file(predictor, str(data), out, resume=True, part=(1, 2))
    data.write_text(text + "C,h\n")
    with pytest.raises(ValueError, match="this has changed: the size of the data"):
        predict_file(predictor, str(data), out, resume=True)
    data.write_text(text.replace("CCO", "CCF"))
    with pytest.raises(ValueError, match="has changed since its prediction was stopped"):
        predict_file(predictor, str(data), out, resume=True)
    assert (tmp_path / "out.csv.part").read_bytes() == partial
    data.write_text(text)
    state = tmp_path / "out.csv.part.json"
    written = state.read_text()
    for damaged in ("{", "{}", "[]"):
        state.write_text(damaged)
        with pytest.raises(ValueError, match="is damaged"):
            predict_file(predictor, str(data), out, resume=True)
    state.write_text(written)
    assert predict_file(predictor, str(data), out, resume=True).rows == 7


def test_a_lost_part_begins_again_and_a_second_process_is_refused(
    predictor: Predictor, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    with pytest.raises(KeyboardInterrupt):
        predict_file(predictor, str(data), out, report=stop_after(2))
    with locked_file(tmp_path / "out.csv.part"), pytest.raises(ValueError, match="another process"):
        predict_file(predictor, str(data), out, resume=True)
    assert json.loads((tmp_path / "out.csv.part.json").read_text())["written"]["chunks"] == 2
    (tmp_path / "out.csv.part").unlink()
    assert predict_file(predictor, str(data), out, resume=True).chunks == 4
    assert len(out.read_text().splitlines()) == 8


def test_strict_refuses_bad_rows_and_leaves_no_file(predictor: Predictor, data: Path, tmp_path: Path) -> None:
    data.write_text("smiles\nC\nCC\nCCC\nC(\n")
    for refused in (
        lambda: predict_file(predictor, str(data), tmp_path / "out.csv", strict=True),
        lambda: predict_table(predictor, str(data), strict=True),
    ):
        with pytest.raises(BadRowsError, match="row 4"):
            refused()
    assert list(tmp_path.iterdir()) == [data]


def test_a_file_without_smiles_is_refused_and_leaves_no_file(predictor: Predictor, data: Path, tmp_path: Path) -> None:
    data.write_text("text\nnone\n")
    with pytest.raises(ValueError, match="no SMILES column"):
        predict_file(predictor, str(data), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == [data]
    assert predict_file(predictor, str(data), tmp_path / "out.csv", smiles="text").rows == 1


def test_many_molecules_are_read_by_processes(
    predictor: Predictor, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = predict_table(predictor, str(data))
    monkeypatch.setattr(stream, "reader_processes", lambda rows: 2)
    assert predict_table(predictor, str(data)) == alone
