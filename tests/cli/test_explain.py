"""`pathnn explain`: a table, a document, a page; and what is in the way."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathnn.explain import attribution

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

Run = Callable[..., Any]


@pytest.fixture
def drugs(tmp_path: Path) -> Path:
    table = tmp_path / "drugs.csv"
    table.write_text("name,smiles\nethanol,CCO\nbad,C(\naspirin,CC(=O)Oc1ccccc1C(=O)O\n")
    return table


def test_the_document_adds_up(cli: Run, drugs: Path, tmp_path: Path) -> None:
    result = cli("explain", "molhiv-ap", str(drugs), "--row", "1", "--json", "-o", str(tmp_path / "why.html"))
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert {tuple(path["path"]) for path in found["paths"]} == {(0, 1), (1, 2), (0, 1, 2)}
    assert {path["words"] for path in found["paths"]} == {"C0–C1", "C1–O2", "C0–C1–O2"}
    parts = found["baseline"] + sum(path["score"] for path in found["paths"]) + found["rest"]
    assert parts == pytest.approx(found["prediction"])
    assert sum(found["vertex_scores"]) == pytest.approx(found["prediction"] - found["baseline"] - found["rest"])
    assert "<svg" in (tmp_path / "why.html").read_text()
    predicted = json.loads(cli("predict", "molhiv-ap", str(drugs), "--json").stdout)["predictions"]
    assert f"a probability of {predicted['probability'][0]:.3g}" in (tmp_path / "why.html").read_text()


def test_the_table_says_the_rest(cli: Run, drugs: Path) -> None:
    result = cli("explain", "molhiv-ap", str(drugs), "--row", "3", "--top", "2")
    assert result.exit_code == 0, result.stderr
    assert "the other 28" in result.stdout
    assert "the logit: " in result.stdout
    assert "the output for the atoms alone, without any path" in " ".join(result.stdout.split())


def test_a_long_name_is_cut_in_the_table(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text(f"smiles\n{'C' * 300}\n")
    found = cli("explain", "molhiv-ap", str(tmp_path / "long.csv"), "--row", "1").stdout
    shown = "".join(found.split())  # the title may be wrapped
    assert f"{'C' * 97}..." in shown
    assert "C" * 98 not in shown


def test_other_data_has_graphs(cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert cli("train", "csl", "--out", str(out), "--epochs", "1", "--k", "2", "--device", "cpu").exit_code == 0
    found = json.loads(cli("explain", str(out), "csl", "--graph", "3", "--json", "--output", "skip 4").stdout)
    assert (found["subject"], found["output"]) == ("graph 3 of csl", "the logit of 'skip 4'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["molhiv-ap", "{}", "--row", "2"], "row 2: 'C(' is no molecule"),
        (["molhiv-ap", "{}", "--row", "4"], "row=4 does not exist: "),
        (["molhiv-ap", "{}", "--graph", "0"], "is a table. Choose a row"),
        (["molhiv-ap", "csl", "--row", "1"], "csl is not a table. Choose a graph"),
        (["molhiv-ap", "csl", "--graph", "150"], "graph=150 does not exist: csl has 150 graphs, counted from 0"),
        (["molhiv-ap", "csl"], "the model was trained on molhiv"),
        (["zinc-ap", "{}"], "models of zinc do not read SMILES"),
        (["molhiv-ap", "{}", "--output", "toxic"], "output='toxic' does not exist: expected one of 0"),
    ],
)
def test_bad_input_is_a_sentence(cli: Run, drugs: Path, arguments: list[str], message: str) -> None:
    result = cli("explain", *(argument.format(drugs) for argument in arguments))
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())


def test_a_missing_extra_is_named_before_the_work(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    trained = cli("train", "csl", "--out", out, "--epochs", "1", "--k", "1", "--device", "cpu", "--collection", "SP")
    assert trained.exit_code == 0
    assert "without curves.png, which needs matplotlib: pip install 'pathnn[plot]'" in trained.stderr
    assert not (out / "curves.png").exists()
    monkeypatch.setattr(attribution, "explain_paths", None)  # not called
    result = cli("explain", out, "csl", "--graph", "3", "-o", tmp_path / "why.html")
    assert result.exit_code != 0
    assert "pip install 'pathnn[plot]'" in result.stderr


def test_only_paths_are_explained(cli: Run, drugs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["--epochs", "1", "--device", "cpu", "--model", "gin"]
    assert cli("train", "csl", "--out", str(out), *options).exit_code == 0
    assert "is a gin, whose paths cannot be explained" in cli("explain", str(out), "csl").stderr
    assert cli("explain", "molhiv-ap", str(drugs), "-o", "why.txt").exit_code == 2


def test_the_document_has_as_many_paths_as_asked(cli: Run, drugs: Path) -> None:
    few, all_of_them = (
        json.loads(cli("explain", "molhiv-ap", drugs, "--row", 3, "--top", top, "--json").stdout)["paths"]
        for top in (2, 100)
    )
    assert (few, len(all_of_them)) == (all_of_them[:2], 30)
