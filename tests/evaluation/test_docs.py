"""What docs/evaluation.md says: its code runs, its commands parse, and its settings are those of the baselines."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from pathnn.cli.app import app
from pathnn.evaluation.baselines import BOOSTING, FOREST, SETTINGS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evaluation.md").read_text()


def test_the_code_runs(molecules, tmp_path, monkeypatch, capsys):
    pytest.importorskip("lightgbm", reason="baselines need the extra chem")
    lines = molecules.read_text().replace(",size,", ",logS,", 1).splitlines()
    table = "\n".join(",".join(line.split(",")[:2]) for line in lines)
    (tmp_path / "molecules.csv").write_text(table + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(FOREST, "n_estimators", 10)
    monkeypatch.setitem(BOOSTING, "n_estimators", 10)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "random forest, Morgan" in printed
    assert "Difference(" in printed
    assert (tmp_path / "k1" / "report.html").exists()


@pytest.mark.parametrize("line", "".join(re.findall(r"```console\n(.*?)```", PAGE, re.S)).splitlines())
def test_each_command_parses(line):
    _, name, *arguments = shlex.split(line)
    typer.main.get_command(app).commands[name].make_context(name, arguments)


def test_the_settings_are_those_of_the_code():
    assert (FOREST["n_estimators"], FOREST["min_samples_leaf"]) == (500, 1)
    assert (BOOSTING["n_estimators"], BOOSTING["learning_rate"]) == (500, 0.05)
    assert SETTINGS["Morgan"] == {"radius": 2, "size": 2048, "counts": True}
    for text in ("500 trees", "500 rounds, learning rate 0.05", "radius 2, folded to 2048"):
        assert text in PAGE
