"""`pathnn embed`: what it prints, and wrong usage."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

from pathnn.cli.app import app


def call(*arguments: object, text: str | None = None) -> Any:
    return CliRunner().invoke(app, ["embed", "molhiv-ap", *map(str, arguments)], input=text)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "new.csv").write_text("smiles,name\nCCO,a\nC(,b\nc1ccccc1,c\n")
    return tmp_path / "new.csv"


def test_it_says_what_it_has_written(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    result = call(data, "-o", out)
    assert (result.exit_code, result.stdout) == (0, f"wrote 128 numbers per row for 3 rows to {out}\n")
    assert "1 of 3 rows cannot be read and have no embedding, the first is row 2: 'C(' is no" in result.stderr
    again = tmp_path / "again.csv"
    document = json.loads(call("-", "-o", again, "--json", text=data.read_text()).stdout)
    assert document == {"rows": 3, "bad_rows": 1, "width": 128, "out": str(again)}
    assert again.read_text() == out.read_text()
    assert "128 numbers per atom for 3 rows" in call(data, "-o", out, "--atoms").stdout
    assert out.read_text().startswith("row,atom,embedding_0,")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Missing option '--out'"),
        (["-o", "new.csv"], 2, "it is the file to read"),
        (["-o", "out.txt"], 1, "expected the name of a .parquet, .csv or .csv.gz file"),
        (["-o", "."], 1, "expected the name of a .parquet"),
        (["-o", "out.csv", "--smiles", "text"], 1, "no column 'text'"),
        (["-o", "out.csv", "--strict"], 1, "row 2: 'C(' is no molecule"),
        (["-o", "out.csv", "--device", "tpu"], 1, "tpu"),
    ],
)
def test_wrong_usage_is_explained(
    data: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(data.parent)
    result = call("new.csv", *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.replace("\u2502", " ").split())
    assert "Traceback" not in result.stderr
    assert [path.name for path in data.parent.iterdir()] == ["new.csv"]


def test_parquet_without_pyarrow_is_explained(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    result = call(data, "-o", data.parent / "out.parquet")
    assert result.exit_code == 1
    assert "this needs pyarrow, which is not installed: pip install 'pathnn[chem]'." in result.stderr


def test_data_that_the_model_cannot_read_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.g6").write_text("A_\n")
    result = call(tmp_path / "a.g6", "-o", tmp_path / "out.csv")
    assert (result.exit_code, "the model was trained on" in result.stderr) == (1, True)
