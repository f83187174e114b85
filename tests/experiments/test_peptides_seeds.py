"""What the results page says about the seeds and the paths of Peptides-func."""

from __future__ import annotations

from pathlib import Path

from pathnn import count_paths
from pathnn.collection import Collection
from pathnn.data import load_dataset
from pathnn.experiments.ledger import Ledger
from pathnn.experiments.report_notes import NOTES

RESULTS = Path(__file__).resolve().parents[2] / "results" / "peptides.jsonl"


def test_one_seed_of_sp_is_apart_in_test_and_not_in_validation() -> None:
    cell = {
        line["seed"]: line for line in Ledger.open(RESULTS) if (line["model"], line["collection"]) == ("pathnn", "sp")
    }
    apart, others = cell.pop(2), list(cell.values())
    assert len(others) == 3
    assert all(abs(line["test"] - 68.16) < 1 for line in others), "where the paper is"
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
