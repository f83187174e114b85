"""What the results page says about EXP-Class, where runs were watched epoch by epoch."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from pathnn_reproduction.experiments.targets import experiment
from pathnn_reproduction.frozen_hash import config_hash, v1_options
from pathnn_reproduction.ledger import Ledger
from pathnn_reproduction.select import select

RESULTS = Path(__file__).resolve().parents[2] / "results" / "synthetic.jsonl"
CURVES = [json.loads(line) for line in (RESULTS.parent / "curves" / "synthetic.jsonl").read_text().splitlines()]


def key(run: dict[str, Any]) -> tuple[str, str, int]:
    return run["dataset"], run["collection"], run["fold"]


def reported(model: str) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The lines of EXP-Class."""
    return {key(x): x for x in Ledger.open(RESULTS) if x["model"] == model and x["dataset"] in ("exp", "cexp")}


def scores_when_perfect(run: dict[str, Any]) -> list[float]:
    """Test scores of the epochs with a perfect validation score."""
    return [test for val, test in zip(run["val_score"], run["test_score"], strict=True) if val == 100]


def misses() -> dict[tuple[str, str, int], dict[str, Any]]:
    return {key(run): run for run in CURVES if run["finished"] and scores_when_perfect(run)[-1] < 100}


def test_the_runs_are_those_of_the_plan() -> None:
    planned = select(experiment("synthetic").runs, "pathnn,exp,cexp")
    assert [run["config_hash"] for run in CURVES] == [config_hash(v1_options(run.config)) for run in planned]
    assert len(CURVES) == 24
    assert [len(run["val_score"]) for run in CURVES if run["finished"]] == [200] * 22


def test_six_miss_and_three_of_them_where_the_table_does() -> None:
    table = {name for name, line in reported("pathnn").items() if line["test"] < 99.99}
    assert len(misses()) == 6
    assert len(table & misses().keys()) == 3


def test_three_had_all_right_before_and_three_never() -> None:
    never = {name for name, run in misses().items() if 100 not in scores_when_perfect(run)}
    assert never == {("exp", "ap", 2), ("cexp", "ap", 2), ("exp", "sp", 3)}


def test_training_is_not_steady() -> None:
    fell = [run for run in CURVES if any(a > 99 and b < 90 for a, b in pairwise(run["val_score"]))]
    assert len(fell) == 19


def test_sp_on_the_first_split_of_exp_was_never_all_right_in_the_table() -> None:
    for model in ("pathnn", "pathnn-released"):
        assert reported(model)["exp", "sp", 0]["val"] < 99
    (again,) = (run for run in CURVES if key(run) == ("exp", "sp", 0))
    assert scores_when_perfect(again)[-1] == 100
