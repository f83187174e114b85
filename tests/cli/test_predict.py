"""`pathnn predict` on files of any size: streams, parts, resumed files, and wrong usage."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

from pathnn.cli.app import app
from pathnn.inference import stream

TEXT = "smiles,name\nCCO,a\nC(,b\nc1ccccc1,c\nCCN,d\nCCCl,e\n"


def call(*arguments: object, text: str | None = None) -> Any:
    return CliRunner().invoke(app, ["predict", "molhiv-ap", *map(str, arguments)], input=text)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stream, "CHUNK_ROWS", 2)
    (tmp_path / "new.csv").write_text(TEXT)
    return tmp_path / "new.csv"


def test_a_file_standard_input_and_json_have_the_same_predictions(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    written = call(data, "-o", out)
    assert written.stdout == f"wrote 5 rows to {out}\n"
    assert (
        "1 of 5 rows cannot be read and have no prediction, the first is row 2: 'C(' is no molecule" in written.stderr
    )
    assert call(data).stdout == call("-", text=TEXT).stdout == out.read_text()
    rows = list(csv.DictReader(out.read_text().splitlines()))
    for arguments in ((data, "--json"), (data, "--json", "-o", tmp_path / "again.csv")):
        document = json.loads(call(*arguments).stdout)
        assert (document["rows"], document["bad_rows"]) == (5, 1)
        found = ["" if value is None else str(value) for value in document["predictions"]["probability"]]
        assert found == [row["probability"] for row in rows]
    assert (tmp_path / "again.csv").read_text() == out.read_text()


def test_parts_are_the_whole(data: Path) -> None:
    parts = [call(data, "--part", f"{number}/2").stdout.partition("\n") for number in (1, 2)]
    assert "".join([parts[0][0], "\n", *(rows for _, _, rows in parts)]) == call(data).stdout


def test_a_stopped_file_is_resumed(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, add = tmp_path / "out.csv", stream.Written.add

    def stop(self: stream.Written, chunk: Any, size: int = 0) -> stream.Written:
        if self.chunks == 2:
            raise KeyboardInterrupt
        return add(self, chunk, size)

    monkeypatch.setattr(stream.Written, "add", stop)
    assert call(data, "-o", out).exit_code == 130
    assert not out.exists()
    monkeypatch.setattr(stream.Written, "add", add)
    result = call(data, "-o", out, "--resume")
    assert result.stdout == f"wrote 5 rows to {out}\n"
    assert out.read_text() == call(data).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--part", "3"], 2, "expected a part and the number of parts"),
        (["--part", "3/2"], 2, "expected a part and the number of parts"),
        (["--part", "a/b"], 2, "expected a part and the number of parts"),
        (["--resume"], 2, "only a file that --out names can be resumed"),
        (["-o", "."], 1, "expected the name of a .csv"),
        (["-o", "new.xlsx"], 1, "new.xlsx cannot be written: expected the name of a .csv or .csv.gz file"),
        (["-o", "new.tsv", "--json"], 1, "expected the name of a .csv or .csv.gz file"),
        (["--smiles", "text"], 1, "no column 'text'"),
    ],
)
def test_wrong_usage_is_explained(data: Path, arguments: list[str], code: int, message: str) -> None:
    result = call(data, *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.replace("\u2502", " ").split())
    assert "Traceback" not in result.stderr


def test_graphs_are_written_to_a_csv_only(tmp_path: Path) -> None:
    (tmp_path / "a.g6").write_text("A_\n")
    result = call(tmp_path / "a.g6", "-o", tmp_path / "out.parquet")
    assert (result.exit_code, "expected the name of a .csv or .csv.gz file" in result.stderr) == (1, True)


@pytest.mark.parametrize("command", ["predict", "explain", "evaluate", "embed"])
def test_a_model_that_reads_no_smiles_says_so_before_it_writes(data: Path, tmp_path: Path, command: str) -> None:
    more = ["-o", str(tmp_path / "out.csv")] if command == "embed" else []
    result = CliRunner().invoke(app, [command, "zinc-ap", str(data), *more])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "models of zinc do not read SMILES" in result.stderr


def test_parts_are_of_tables(data: Path, tmp_path: Path) -> None:
    (tmp_path / "a.g6").write_text("A_\n")
    result = call(tmp_path / "a.g6", "--part", "1/2")
    assert (result.exit_code, "are for tables" in result.stderr) == (1, True)
    result = call("-", "--part", "1/2", text=TEXT)
    assert (result.exit_code, "give a file" in result.stderr) == (1, True)
