"""Results lines stay valid when `RunConfig` renames options, changes defaults or gets new ones."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from pathnn.training import RunConfig
from pathnn_reproduction import results as frozen_hash
from pathnn_reproduction.experiments import TABLES, get_experiment
from pathnn_reproduction.results import ADDED, RENAMED, V1_DEFAULTS, Results, config_hash, trained_row, v1_options
from tiny_experiments import tiny_spec

RESULTS = Path(__file__).resolve().parents[2] / "results"
LINES = [json.loads(line) for name in TABLES for line in (RESULTS / f"{name}.jsonl").read_text().splitlines()]
FINISHED = {"zinc": (60, 60), "molhiv": (60, 60), "peptides": (24, 36), "tu": (1554, 2906), "synthetic": (96, 96)}
"""Runs that were done when the hash was frozen, and runs that the protocol then asked for."""


def test_every_stored_hash_matches() -> None:
    assert len(LINES) >= 1794
    assert [config_hash(line["config"]) for line in LINES] == [line["config_hash"] for line in LINES]


def test_every_option_has_its_frozen_default() -> None:
    """If this fails, `RunConfig` has a new option (add it to ADDED) or a new name (add it to RENAMED)."""
    names = {RENAMED.get(entry.name, entry.name) for entry in fields(RunConfig)}
    assert names <= {*V1_DEFAULTS, *ADDED}
    assert not set(V1_DEFAULTS) & set(ADDED)
    assert set(RENAMED) <= {entry.name for entry in fields(RunConfig)}
    assert set(RENAMED.values()) <= {*V1_DEFAULTS, *ADDED}


def test_the_table_of_defaults_is_never_edited() -> None:
    text = json.dumps(dict(V1_DEFAULTS), sort_keys=True)
    assert (len(V1_DEFAULTS), config_hash({"data": text})) == (34, "d931b087f64aa9c9")


@pytest.mark.parametrize(("name", "value"), [("lr", 0.5), ("k", 3), ("batch_size", 64), ("standardize", True)])
def test_another_default_damages_no_line(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    monkeypatch.setitem(RunConfig.__init__.__kwdefaults__, name, value)
    assert RunConfig(data="").to_dict()[name] == value
    assert sum(len(Results.open(RESULTS / f"{target}.jsonl")) for target in TABLES) == len(LINES)


def test_a_line_is_read_without_the_config_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunConfig, "__init__", lambda *_, **__: pytest.fail("the reader made a RunConfig"))
    assert len(Results.open(RESULTS / "zinc.jsonl")) >= 60


def test_a_new_line_has_the_frozen_names(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, result = tiny_spec(), {"val_score": 1.0, "test_score": 1.0}
    result |= dict.fromkeys(
        ("metric", "epochs", "best_epoch", "stopped", "seconds", "parameters", "device", "commit", "time", "versions")
    )
    before = trained_row(spec, spec.config, result)
    options = spec.config.to_dict()
    options["learning_rate"] = options.pop("lr")
    monkeypatch.setattr(RunConfig, "to_dict", lambda self: options)
    monkeypatch.setattr(frozen_hash, "RENAMED", {"learning_rate": "lr"})
    after = trained_row(spec, spec.config, result)
    assert after == before
    assert v1_options(spec.config)["lr"] == 1e-3


def test_an_option_added_later_changes_only_the_runs_that_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen_hash, "ADDED", {"ema": None})
    assert config_hash({"data": "csl", "ema": None}) == config_hash({"data": "csl"})
    assert config_hash({"data": "csl", "ema": 0.9}) != config_hash({"data": "csl"})


@pytest.mark.parametrize("target", TABLES)
def test_finished_runs_stay_finished(target: str) -> None:
    """New runs may be added; a changed plan or hash would make finished runs missing."""
    experiment, results = get_experiment(target), Results.open(RESULTS / f"{target}.jsonl")
    done, missing = len(experiment.done(experiment.specs, results)), len(experiment.missing(experiment.specs, results))
    frozen_done, frozen_total = FINISHED[target]
    assert done >= frozen_done
    assert done + missing >= frozen_total
