"""The appendix's mean numbers of paths per graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathnn.data import load_dataset, summarize_paths
from pathnn_reproduction.paper import COUNTS


@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_the_nine_zinc_numbers_of_the_appendix(collection: str, mirror: Path) -> None:
    task = load_dataset("zinc")
    summary = summarize_paths(task, collection, 4)
    for length in (2, 3, 4):
        assert round(summary.mean_paths[length], 1) == COUNTS["zinc"]["means"][f"{collection} {length}"]
    assert summary.graphs == 12000
    assert summary.total_paths == round(sum(summary.mean_paths.values()) * 12000)
    assert summary.entries >= summary.total_paths


@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_the_dd_numbers_of_the_appendix(collection: str, mirror: Path) -> None:
    summary = summarize_paths(load_dataset("dd"), collection, 2)
    assert summary.mean_paths[2] == pytest.approx(COUNTS["dd"]["means"][f"{collection} 2"], abs=1)
