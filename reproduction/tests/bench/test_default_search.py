"""The choice of defaults and the random splits of `benchmarks/default_search.py` and `interval_coverage.py`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.usefixtures("benchmarks")
def test_a_setting_must_be_clearly_better_on_most_datasets() -> None:
    from default_search import CANDIDATES, COSTLY, REFERENCE, SEARCHED, choose

    def rows(setting: str, *errors: float) -> list[dict[str, Any]]:
        return [
            {"setting": setting, "dataset": name, "rmse": errors[i % len(errors)]} for i, name in enumerate(SEARCHED)
        ]

    default, (first, second, third, *_) = rows(REFERENCE, 1.0), CANDIDATES[1:]
    assert choose([]) == REFERENCE
    assert choose([*default, *rows(first, 0.995)]) == REFERENCE  # half a percent
    assert choose([*default, *rows(first, 1.01, 0.9)]) == REFERENCE  # half of the datasets
    assert choose([*default, *rows(first, 0.98), *rows(second, 0.97), *rows(third, 0.5)[1:]]) == second
    assert choose([*default, *rows(next(iter(COSTLY)), 0.5)]) == REFERENCE
    assert choose(rows(first, 0.5)) == REFERENCE  # nothing to compare with


@pytest.mark.usefixtures("benchmarks")
def test_copies_of_a_molecule_are_in_one_part_of_a_random_split(tmp_path: Path) -> None:
    from interval_coverage import write_split

    table = tmp_path / "Sol.csv"
    with table.open("w", newline="") as file:
        rows = [("C" * (1 + i // 2), i, "test" if i < 10 else "train") for i in range(100)]
        csv.writer(file).writerows([("smiles", "y", "split"), *rows])
    parts = {}
    for split in ("random", "published"):
        with write_split(table, tmp_path, split).open(newline="") as file:
            parts[split] = [(row["smiles"], row["part"]) for row in csv.DictReader(file)]
    assert len(set(parts["random"])) == 50
    assert sum(part == "test" for _, part in parts["random"]) == 20
    assert [part for _, part in parts["published"]] == ["test"] * 10 + ["train"] * 90
    assert parts["random"] != parts["published"]
