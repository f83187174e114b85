"""What the results page says about the seeds and the paths of Peptides-func."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from pathnn import count_paths
from pathnn.data import load_dataset
from pathnn.paths.options import Collection
from pathnn_reproduction.ledger import Ledger
from pathnn_reproduction.published import TABLES
from pathnn_reproduction.report_notes import NOTES

RESULTS = Path(__file__).resolve().parents[2] / "results" / "peptides.jsonl"
CURVES = RESULTS.parent / "curves" / "peptides.jsonl"
FIRST = 0.001
"""The learning rate before it is halved."""


def curves() -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Epoch by epoch, as far as they were watched."""
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in map(json.loads, CURVES.read_text().splitlines()):
        runs.setdefault((line["collection"], line["seed"]), []).append(line)
    return runs


def test_one_seed_of_sp_is_apart_in_test_and_not_in_validation() -> None:
    cell = {
        line["seed"]: line for line in Ledger.open(RESULTS) if (line["model"], line["collection"]) == ("pathnn", "sp")
    }
    apart, others = cell.pop(2), list(cell.values())
    assert len(others) == 3
    mean, paper = fmean(line["test"] for line in others), TABLES["peptides-func"].rows["pathnn", "sp", 8]
    assert paper.mean is not None
    assert paper.std is not None
    assert f"a mean of\n{mean:.2f}, still {(paper.mean - mean) / paper.std:.1f} of the paper's" in NOTES["peptides"]
    assert 2.5 < min(line["test"] for line in others) - apart["test"] < 3.5
    assert sum(abs(line["val"] - apart["val"]) < 0.2 for line in others) == 2
    assert apart["best_epoch"] < min(line["best_epoch"] for line in others)


def test_sp_plus_has_hardly_more_paths_than_sp(mirror: Path) -> None:
    graphs = load_dataset("peptides-func").graphs
    collections: tuple[Collection, ...] = ("sp", "sp+")
    single, all_shortest = (
        int(count_paths(graphs.union(), graphs.num_nodes, collection=name, k=8).sum()) for name in collections
    )
    assert f"has {all_shortest / single - 1:.1%} more".replace("%", " %") in NOTES["peptides"]


def test_the_seed_apart_was_best_before_the_first_halving() -> None:
    (line,) = (x for x in Ledger.open(RESULTS) if (x["model"], x["collection"], x["seed"]) == ("pathnn", "sp", 2))
    epochs = curves()["sp", 2]
    assert {epoch["lr"] for epoch in epochs} == {FIRST}
    assert (epochs[-1]["epoch"], epochs[-1]["val_score"]) == (line["best_epoch"], line["val"])


def test_watched_epochs_are_of_the_runs_in_the_table_but_for_two_that_were_lost() -> None:
    reported = {(x["collection"], x["seed"]): x for x in Ledger.open(RESULTS) if x["model"] == "pathnn"}
    checked = set()
    for key, epochs in curves().items():
        for epoch in epochs:
            if epoch["epoch"] == reported[key]["best_epoch"] and key != ("ap", 2):
                assert (epoch["val_score"], epoch["test_score"]) == (reported[key]["val"], reported[key]["test"])
                checked.add(key)
    assert checked == {("ap", 0), ("ap", 1), ("sp", 2), ("sp+", 0), ("sp+", 3)}


def test_scores_jump_before_the_halving_and_rise_with_it() -> None:
    runs = curves()
    late = [[e for e in run if e["lr"] == FIRST and e["epoch"] > 40] for run in runs.values()]
    jumps = [abs(b["val_score"] - a["val_score"]) for run in late for a, b in pairwise(run)]
    assert sorted(jumps)[-len(jumps) // 10] > 2, "one step in ten at least"
    gaps = [e["val_score"] - e["test_score"] for run in late for e in run if e["test_score"] is not None]
    assert 3.5 < max(gaps) < 4.5
    rises, halved = [], []
    for key, run in runs.items():
        before = [e for e in run if e["lr"] == FIRST and e["best"]]
        after = [e for e in run if e["lr"] < FIRST and e["best"]]
        if after:
            halved.append(key[0])
            rises.append([after[0][name] - before[-1][name] for name in ("val_score", "test_score")])
    assert sorted(halved) == ["ap", "ap", "sp+", "sp+"]
    assert all(0 <= val < 1.5 and 0.9 < test < 3.2 for val, test in rises)
