"""`pathnn reproduce counts`: the paper's table, and an exit code that tells when ours differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pathnn_reproduction import cli as reproduce
from pathnn_reproduction.experiments import counts, get_experiment
from pathnn_reproduction.results import Results, measured_row
from pathnn_reproduction.spec import select
from tiny_experiments import InlinePool

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def _inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "_pool", lambda settings, ray: InlinePool(settings))


def test_all_twelve_numbers_are_the_papers(cli: Run, mirror: Path, tmp_path: Path) -> None:
    result = cli("reproduce", "counts", "--json", "--results", tmp_path)
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["tables"][0]["rows"]
    assert len(rows) == 12
    assert [row["agrees"] for row in rows if row["dataset"] == "zinc"] == ["rounded"] * 9
    assert all(row["agrees"] != "no" and abs(row["ours"] - row["paper"]) < 1 for row in rows)
    assert {row["length"] for row in rows if row["dataset"] == "dd"} == {2}


def test_without_the_data_it_says_how_to_get_them(cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs whose data is not available stay missing; they have not failed."""
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path))
    result = cli("reproduce", "counts", "--results", tmp_path)
    assert result.exit_code == 0
    assert "set PATHNN_MIRROR to that folder" in result.stderr
    assert result.stderr.count("is not available, its runs stay missing") == 2  # once for each dataset
    assert "0 of 6 runs done, 0 now, 0 failed, 6 left" in result.stdout


@pytest.mark.parametrize(("ours", "code"), [(69.2, 0), (70.0, 1)])
def test_a_difference_is_exit_1(cli: Run, tmp_path: Path, ours: float, code: int) -> None:
    (spec,) = select(get_experiment("counts").specs, "zinc,ap")
    means = [0.0, *(value for _, value in sorted(counts.printed("zinc", "ap").items()))]
    means[1] = ours if code else means[1]
    Results.open(tmp_path / "counts.jsonl").add(measured_row(spec, {"means": means, "seconds": 1.0}), spec.key)
    for flags in ((), ("--json",)):
        result = cli("reproduce", "counts", "--limit", 0, "--results", tmp_path, *flags)
        assert result.exit_code == code, result.stderr
        assert ("differ from the paper" in result.stderr) is bool(code)
