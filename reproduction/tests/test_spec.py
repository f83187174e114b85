"""Run specs: the experiments are the paper's, `--only` selects by any part of a key, and every spec can be sent."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pathnn_reproduction.experiments import TARGETS, get_experiment
from pathnn_reproduction.results import Results
from pathnn_reproduction.spec import SelectionError, select, slots
from tiny_experiments import made_up_row


@pytest.mark.parametrize(
    ("target", "only", "count"),
    [
        ("zinc", "ap,seed=3", 1),
        ("zinc", "ap,sp,seed=0-4", 10),
        ("zinc", "gin", 10),
        ("zinc", "pathnn,k=4", 30),
        ("zinc", None, 60),
        ("peptides", "peptides-struct,pathnn", 12),
        ("sr", "sr16622,exact", 2),
        ("sr", "network,distances=false,tanh", 9),
        ("brec", "protocol,ap,k=8", 40),
        ("brec", "protocol,ap,k=8,first=0-59", 6),
        ("brec", "wl", 1),
        ("counts", "zinc,ap", 1),
        ("runtime", "dd,pathnn,k=2", 3),
    ],
)
def test_only_selects(target: str, only: str | None, count: int) -> None:
    assert len(select(get_experiment(target).specs, only)) == count


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("bp", "'bp' is unknown: expected model pathnn, gin, gcn, mlp; dataset zinc; collection sp, sp.,"),
        ("seed=10", "seed=10 does not exist: expected one of 0, 1"),
        ("colour=red", "the field 'colour' is unknown: expected one of model"),
        ("ap,gin", "leaves no run"),
        ("config_hash=1", "the field 'config_hash' is unknown"),
    ],
)
def test_only_says_what_exists(only: str, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        select(get_experiment("zinc").specs, only)


def test_the_experiments_are_the_papers() -> None:
    assert {name: slots(get_experiment(name).specs) for name in ("zinc", "molhiv", "peptides")} == {
        "zinc": 60,
        "molhiv": 60,
        "peptides": 60,
    }
    tu = get_experiment("tu").specs
    for data, entries in (("nci1", 7), ("imdb-multi", 5)):
        assert slots(select(tu, f"{data},pathnn")) == entries * 70
    for name in ("zinc", "molhiv", "peptides", "tu", "synthetic"):
        specs = get_experiment(name).specs
        assert len({spec.folder for spec in specs}) == len(specs)
        released = [spec.config for spec in specs if spec.key["model"] == "pathnn-released"]
        assert all(config and "released" in (config.variant, config.plateau_direction) for config in released)
        assert all(
            spec.config and (spec.config.fold, spec.config.seed) == (spec.key["fold"], spec.key["seed"])
            for spec in specs
        )


@pytest.mark.parametrize("name", TARGETS)
def test_every_spec_can_be_sent_to_a_process(name: str) -> None:
    specs = get_experiment(name).specs
    assert len({tuple(spec.key.items()) for spec in specs}) == len(specs)
    assert pickle.loads(pickle.dumps(specs)) == specs


def test_the_winner_is_the_first_of_equal_grid_points(tmp_path: Path) -> None:
    tu, results = get_experiment("tu"), Results(tmp_path / "tu.jsonl")
    specs = select(tu.specs, "nci1,ap,k=2,fold=0")
    for spec in specs[:3]:
        results.add(made_up_row(spec, val=70.0), spec.key)
    assert tu.winner(specs[0], results) is None
    results.add(made_up_row(specs[3], val=70.0), specs[3].key)
    assert tu.winner(specs[0], results) == "hidden=32,dropout=0"


def test_a_run_waits_for_the_row_that_it_needs(tmp_path: Path) -> None:
    brec, results = get_experiment("brec"), Results(tmp_path / "brec.jsonl")
    specs = select(brec.specs, "exact,ap,distances=true")
    assert [spec.key["k"] for spec in brec.missing(specs, results)] == [1]
    results.add({**specs[0].key, "commit": None, "device": "cpu", "time": ""}, specs[0].key)
    assert [spec.key["k"] for spec in brec.missing(specs, results)] == [2]
    assert len(brec.left(specs, results)) == len(specs) - 1
