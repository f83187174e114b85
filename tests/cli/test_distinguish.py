"""`pathnn distinguish`: the keys, the pairs, the table, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch

from pathnn.theory import isomorphism

Run = Callable[..., Any]
KEYS = {
    "graphs", "pairs", "failure_rate", "exact_failure_rate", "wl1_failure_rate", "wl3_failure_rate", "seconds",
}  # fmt: skip


@pytest.fixture
def three(tmp_path: Path) -> Path:
    path = tmp_path / "three.g6"
    chosen = [nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)), nx.path_graph(4)]
    path.write_bytes(b"".join(nx.to_graph6_bytes(graph, header=False) for graph in chosen))
    return path


def test_json_has_the_promised_keys(cli: Run, three: Path) -> None:
    result = cli("distinguish", three, "--k", 2, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert set(found) >= KEYS
    assert (found["graphs"], found["pairs"], found["failure_rate"]) == (3, 3, [0] * 5)
    assert (found["exact_failure_rate"], found["wl3_failure_rate"]) == (0, 0)
    assert found["wl1_failure_rate"] == pytest.approx(1 / 3)
    assert found["seconds"] > 0


def test_options_reach_the_tests(cli: Run, three: Path) -> None:
    found = json.loads(
        cli("distinguish", three, "-k", 2, "--no-distances", "--seeds", 2, "--phi", "tanh", "--json").stdout
    )
    assert found["failure_rate"] == [pytest.approx(1 / 3)] * 2
    assert found["exact_failure_rate"] == pytest.approx(1 / 3)
    assert found["confused"] == found["confused_by_network"] == [[0, 1]]
    plain = json.loads(cli("distinguish", three, "-k", 2, "--no-distances", "--seeds", 1, "--json").stdout)
    assert plain["failure_rate"] == [pytest.approx(1 / 3)]
    forgets = json.loads(cli("distinguish", three, "-k", 5, "-c", "sp+", "--no-residual", "--json").stdout)
    assert forgets["exact_failure_rate"] == pytest.approx(1 / 3)  # six vertices without a path of length 5, twice
    assert forgets["sum_failure_rate"] is None


def test_table_names_the_confused_pairs(cli: Run, three: Path) -> None:
    result = cli("distinguish", three, "--k", 2, "--no-distances", "--seeds", 1)
    assert result.exit_code == 0
    assert "at best (annotated path sets)" in result.stdout
    assert "confused by the exact test, the first: 0-1" in result.stdout
    assert "33.33 %" in result.stdout


def test_sp_says_that_it_depends_on_the_numbering(cli: Run, three: Path) -> None:
    assert "relabelled copies" in cli("distinguish", three, "-c", "sp", "-k", 2, "--seeds", 0).stderr


def test_pairs_are_the_dataset_s(cli: Run, mirror: Path) -> None:
    found = json.loads(cli("distinguish", "sr16622", "--seeds", 1, "--json").stdout)
    assert (found["pairs"], found["failure_rate"], found["wl3_failure_rate"]) == (1, [0], 1)
    brec = json.loads(cli("distinguish", "brec", "-c", "sp+", "-k", 3, "--seeds", 0, "--json").stdout)
    assert (brec["graphs"], brec["pairs"], brec["wl1_failure_rate"], brec["wl3_failure_rate"]) == (800, 400, 1, None)


def test_refuses(cli: Run, three: Path) -> None:
    assert cli("distinguish", three, "--phi", "swish").exit_code == 2
    for device in ("abacus", "mps", "meta"):  # the last two exist, but not for us
        result = cli("distinguish", three, "--device", device)
        assert result.exit_code == 1
        assert f"device={device!r} is unknown: expected auto, cpu, cuda or cuda:N" in result.stderr
    if not torch.cuda.is_available():
        result = cli("distinguish", three, "--device", "cuda")
        assert result.exit_code == 1
        assert "no CUDA device" in result.stderr


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_the_gpu_finds_what_the_cpu_finds(cli: Run, three: Path, collection: str) -> None:
    arguments = ("distinguish", three, "-c", collection, "-k", 3, "--seeds", 2, "--json")
    here, there = (json.loads(cli(*arguments, "--device", device).stdout) for device in ("cpu", "cuda"))
    assert here["failure_rate"] == there["failure_rate"]
    assert here["confused_by_network"] == there["confused_by_network"]


def test_one_graph_has_nothing_to_be_compared_with(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "one.g6").write_text("@\n")
    result = cli("distinguish", tmp_path / "one.g6")
    assert result.exit_code == 1
    assert "expected at least two" in result.stderr


def test_rows_that_cannot_be_read_are_left_out_if_asked(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "some.g6").write_text("A_\n!!\nA?\n")
    assert cli("distinguish", tmp_path / "some.g6", "-k", 2).exit_code == 1
    result = cli("distinguish", tmp_path / "some.g6", "-k", 2, "--skip-invalid", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["graphs"] == 2


def test_an_explosion_is_refused(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "two.g6").write_text("I~~~~~~~w\nI~~~~~~~w\n")  # complete graphs of ten vertices
    result = cli("distinguish", tmp_path / "two.g6", "-k", 9, "--max-steps", 1000)
    assert result.exit_code == 1
    assert "Lower k" in result.stderr


def test_the_column_of_smiles_can_be_named(cli: Run, tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
    table = tmp_path / "drugs.csv"
    table.write_text("drug,salt\nCCO,CCO.Cl\nC1CC1,C1CC1.Cl\n")
    assert "(--smiles COLUMN)" in cli("distinguish", str(table), "--seeds", "0").stderr
    found = cli("distinguish", str(table), "--smiles", "drug", "--seeds", "0", "--json")
    assert json.loads(found.stdout)["exact_failure_rate"] == 0


def test_every_option_reaches_the_test(cli: Run, three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    test = isomorphism.isomorphism_test

    def note_down(*graphs: Any, **options: Any) -> Any:
        asked.update(options)
        return test(*graphs, **options)

    monkeypatch.setattr(isomorphism, "isomorphism_test", note_down)
    given = {"hidden": 3, "threshold": 0.5, "memory": 7, "max-steps": 1000, "seeds": 1, "phi": "relu"}
    options = [word for name, value in given.items() for word in (f"--{name}", value)]
    result = cli("distinguish", three, "-k", 1, "--extend", *options, "--json")
    assert result.exit_code == 0, result.stderr
    assert asked["extend"] is True
    assert (asked["hidden_channels"], asked["threshold"], asked["memory"]) == (3, 0.5, 7 * 2**20)
    assert (asked["max_steps"], asked["seeds"], asked["phi"]) == (1000, 1, "relu")
