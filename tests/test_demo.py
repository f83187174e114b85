"""`make demo`, with one epoch, and its data."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest

from pathnn.data import load_data, load_dataset
from pathnn.data.errors import DataError

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_demo_writes_what_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rdkit")
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("demo", EXAMPLES / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    quick = tmp_path / "quick.yaml"
    quick.write_text(demo.SETTING.read_text().replace("epochs: 18", "epochs: 1"))
    assert "epochs: 1\n" in quick.read_text()
    monkeypatch.setattr(demo, "SETTING", quick)
    monkeypatch.chdir(tmp_path)
    demo.main()

    said = capsys.readouterr().out
    with demo.PREDICTIONS.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows][:2] == ["aspirin", "caffeine"]
    assert all(float(row["predicted_logS_std"]) > 0 for row in rows)
    assert demo.PICTURE.read_text().startswith("<svg")
    assert all(str(path) in said for path in (demo.PREDICTIONS, demo.PAGE, demo.PICTURE))
    lines = [line.split() for line in said.splitlines()]
    errors = {words[0]: float(words[-2]) for words in lines if words and words[0] in ("mean", "random", "PathNN,")}
    assert errors["random"] < errors["mean"]
    assert errors["PathNN,"] > 0
    assert "ESOL, Delaney 2004" in said


def test_solubility_is_esol() -> None:
    pytest.importorskip("rdkit")
    ours = load_data(EXAMPLES / "solubility.csv", targets="logS").graphs
    try:
        esol = load_dataset("esol").graphs
    except DataError as error:  # neither a mirror nor a network
        pytest.skip(str(error))
    assert len(ours) == 1128
    assert ours.x.size(0) == esol.x.size(0)
    assert ours.y.allclose(esol.y, atol=1e-6)
