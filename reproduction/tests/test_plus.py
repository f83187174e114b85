"""PathNN+: its runs have at most 500,000 parameters, and its table says what is not measured."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathnn.nn import DeepPathNN
from pathnn.nn.presets import plus_config
from pathnn_reproduction.cli import reproduce
from pathnn_reproduction.experiments import get_experiment
from pathnn_reproduction.experiments.plus import tables as plus_tables
from pathnn_reproduction.pages import PILOT, plus_page, write_report
from pathnn_reproduction.results import Results, trained_row


def test_every_row_has_its_seeds_and_at_most_500_000_parameters():
    specs = get_experiment("plus").specs
    seeds = Counter(spec.entry[:2] for spec in specs)
    assert {entry[0]: count for entry, count in seeds.items() if entry[1] in ("pathnn+", "control")} == {
        "zinc": 10, "peptides-func": 4, "molhiv": 10,
    }  # fmt: skip
    assert {count for entry, count in seeds.items() if entry[1] not in ("pathnn+", "control")} == {3}
    for spec in {spec.entry: spec for spec in specs}.values():
        assert spec.config is not None
        config = plus_config(spec.dataset, **spec.config.options)
        assert sum(p.numel() for p in DeepPathNN.from_config(config).parameters()) <= 500_000


def test_the_table_has_means_where_runs_are_done(tmp_path):
    experiment, results = get_experiment("plus"), Results(tmp_path / "plus.jsonl")
    for spec, score in zip(experiment.specs[:2], (0.07, 0.09), strict=True):
        assert spec.config is not None
        times = {"metric": "mae", "epochs": 1, "best_epoch": 1, "stopped": "", "seconds": 5.0, "parameters": 7}
        place = {"device": "cpu", "commit": "0", "time": "2026", "versions": {}}
        row = trained_row(spec, spec.config, {"val_score": score, "test_score": score, **times, **place})
        results.add(row, spec.key)
    (table,) = plus_tables(experiment, experiment.specs, results)
    assert table.values[0] == {
        "dataset": "zinc", "model": "pathnn+", "mean": pytest.approx(0.08), "deviation": pytest.approx(0.02 / 2**0.5),
        "seeds": 2, "parameters": 7,
    }  # fmt: skip
    assert all(row["mean"] is None and row["parameters"] is None for row in table.values[1:])
    assert "not measured" in table.rows[1]


def test_the_command_prints_all_rows(tmp_path):
    result = CliRunner().invoke(reproduce, ["plus", "--limit", "0", "--json", "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["tables"][0]["rows"]
    assert {"pathnn+", "control", "without-random-walks"} <= {row["model"] for row in rows}
    assert {tuple(row) for row in rows} == {("dataset", "model", "mean", "deviation", "seeds", "parameters")}


def test_the_page_of_the_project_is_current():
    """If this fails, run `pathnn reproduce plus --report`."""
    root = Path(__file__).resolve().parents[2]
    assert (root / "docs" / "pathnn-plus.md").read_text() == plus_page(root / "results", root / PILOT)


def test_the_page_is_written_without_results(tmp_path):
    (tmp_path / "docs").mkdir()
    (page,) = write_report("plus", tmp_path / "results", tmp_path)
    entries = {spec.entry for spec in get_experiment("plus").specs}
    assert page.read_text().count("| not measured |") == len(entries)
