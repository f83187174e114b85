"""`pathnn reproduce counts`: the paper's table, and an exit code that tells when ours differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from pathnn.data import from_networkx, task_from_graphs
from pathnn_reproduction.experiments import counts as experiment
from pathnn_reproduction.experiments.counts import MeanPaths, mean_paths

Run = Callable[..., Any]


def test_all_twelve_numbers_are_the_papers(cli: Run, mirror: Path) -> None:
    result = cli("reproduce", "counts", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["all_agree"] is True
    cells = found["cells"]
    assert len(cells) == 12
    assert [cell["agrees"] for cell in cells if cell["dataset"] == "zinc"] == ["rounded"] * 9
    assert all(abs(cell["ours"] - cell["paper"]) < 1 for cell in cells)
    assert {cell["length"] for cell in cells if cell["dataset"] == "dd"} == {2}


def test_without_the_data_it_says_how_to_get_them(cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path))
    result = cli("reproduce", "counts")
    assert result.exit_code == 1
    assert "PATHNN_MIRROR" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(("paper", "code"), [(6.0, 0), (7.0, 1)])
def test_a_difference_is_exit_1(cli: Run, monkeypatch: pytest.MonkeyPatch, paper: float, code: int) -> None:
    cells = [MeanPaths("triangle", "ap", 2, paper, 6.0, decimals=1)]
    monkeypatch.setattr(experiment, "counts", lambda: iter([cells]))
    for flags in ((), ("--json",)):
        result = cli("reproduce", "counts", *flags)
        assert result.exit_code == code
        assert "6.0" in result.stdout
        assert ("differ from the paper" in result.stderr) is bool(code)


def test_means_are_over_all_graphs() -> None:
    task = task_from_graphs(from_networkx([nx.cycle_graph(3), nx.path_graph(2)]))
    printed = {"ap 1": 4.0, "ap 2": 3.0, "sp 1": 9.0}
    cells = mean_paths(task, "ap", printed, 0)
    assert [(cell.length, cell.ours, cell.agrees) for cell in cells] == [(1, 4.0, "rounded"), (2, 3.0, "rounded")]
    with pytest.raises(ValueError, match="reports no number of 'sp\\+' paths"):
        mean_paths(task, "sp+", printed, 0)
