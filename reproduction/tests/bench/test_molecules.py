"""The page on accuracy: means, marks and counts follow from the results files, and missing datasets are named."""

from __future__ import annotations

import csv
from pathlib import Path

from pathnn_reproduction.bench.molecules import first_or_near, mean, molecules_page, read_scores

FIELDS = ("dataset", "part", "molecules", "rmse", "pearson", "train_cpu_seconds", "predict_cpu_seconds")


def row(dataset: str, rmse: float, part: str = "all") -> dict[str, str]:
    values = (dataset, part, "200", str(rmse), "0.5", "10", "1")
    return dict(zip(FIELDS, values, strict=True))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_near_means_within_one_standard_error() -> None:
    errors = {"pathnn": (1.04, 1.06), "chemprop": (1.0, 1.0)}  # 1 / sqrt(2 * 200) is 5 %
    scores = read_scores(
        {"model": model, **row(dataset, error)}
        for model, each in errors.items()
        for dataset, error in zip(("ESOL", "Sol"), each, strict=True)
    )
    assert first_or_near(scores, errors, "pathnn", ["ESOL", "Sol"]) == 1
    assert first_or_near(scores, errors, "chemprop", ["ESOL", "Sol"]) == 2
    assert mean(scores, "pathnn", ["ESOL", "Sol"], "all") == 1.05


def test_datasets_without_all_models_are_named_and_left_out(tmp_path: Path) -> None:
    assert molecules_page(tmp_path) is None
    names = ("ESOL", "Sol", "HLM")
    write(tmp_path / "chemprop.csv", [{**row(name, 1.0), "chemprop": "2.3.1"} for name in names])
    write(tmp_path / "molecules.csv", [{"model": "pathnn", **row(name, 0.5), "commit": "abc"} for name in names[:2]])
    page = molecules_page(tmp_path)
    assert page is not None
    assert "yet: HLM." in page
    assert "| Sol | 200 | **0.500** | 1.000 |" in page
    assert "| HLM |" not in page
    assert "| MoleculeACE, cliffs |" not in page
    write(tmp_path / "molecules.csv", [{"model": "pathnn", **row("CHEMBL1", 0.5), "commit": "abc"}])
    assert molecules_page(tmp_path) is None  # no dataset has both
