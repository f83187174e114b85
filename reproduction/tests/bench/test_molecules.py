"""The page on accuracy: means, marks and counts follow from the results files, and missing datasets are named."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from pathnn_reproduction.bench.molecules import (
    first_or_near,
    intervals_section,
    mean,
    molecules_page,
    read_scores,
    settings_section,
    tune_section,
)

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


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_folds_are_a_row_once_they_have_all_datasets_of_the_default(tmp_path: Path) -> None:
    write(tmp_path / "chemprop.csv", [{**row(name, 1.0), "chemprop": "2.3.1"} for name in ("ESOL", "Sol")])
    ours = [{"model": "pathnn", **row(name, 0.9), "commit": "abc"} for name in ("ESOL", "Sol")]
    blank = {"train_cpu_seconds": "", "predict_cpu_seconds": "", "commit": "abc"}
    folds = [{"model": "pathnn --folds 5", **row(name, 0.5), **blank} for name in ("ESOL", "Sol")]
    write(tmp_path / "molecules.csv", [*ours, folds[0]])
    page = molecules_page(tmp_path)
    assert page is not None
    assert "folds 5" not in page
    assert "Not timed" not in page
    write(tmp_path / "molecules.csv", [*ours, *folds])
    page = molecules_page(tmp_path)
    assert page is not None
    assert "| ESOL | 200 | 0.900 | **0.500** | 1.000 |" in page
    assert "| pathnn | 2 | 2 | 2 |" in page  # compared with chemprop, not with its own folds
    assert "| chemprop | 0 |" in page
    assert "Not timed: pathnn --folds 5." in page
    assert "| pathnn --folds 5 | 0 |" not in page


def test_intervals_are_averaged_over_random_splits(tmp_path: Path) -> None:
    assert intervals_section(tmp_path, {}) == ""
    common = {"calibration": 1800, "test": 200, "band": [0.84, 0.95], "std_coverage": 0.6, "std_width": 0.5,
              "device": "a GPU", "commit": "abc"}  # fmt: skip
    found = [("Sol", "random", 0.92, 1.0), ("HLM", "random", 0.8, 2.0), ("Sol", "published", 0.7, 1.0)]
    write_lines(
        tmp_path / "intervals.jsonl",
        [{**common, "dataset": name, "split": split, "coverage": share, "width": width, "inside_band": share > 0.84}
         for name, split, share, width in found],
    )  # fmt: skip
    rmse = {"pathnn": {"Sol": 0.5, "HLM": 0.7, "RLM": 0.1}, "pathnn --folds 5": {"Sol": 0.4}}
    scores = {(model, name, "all"): {"rmse": str(x)} for model, each in rmse.items() for name, x in each.items()}
    text = intervals_section(tmp_path, scores)
    assert "a mean RMSE of 0.400 on the published test parts of 1 of these datasets" in text
    assert "molecules, has 0.500." in text
    assert "**Not measured yet: RLM.**" in text
    assert "The mean coverage is 86.0 %, and 1 of 2 datasets" in text
    assert "| Sol | 1,800 | 200 | 0.920 | 0.840 to 0.950 | 1.00 | 0.50 | 0.600 | 0.700 |" in text
    assert "| mean |  |  | 0.860 |  | 1.50 | 0.50 | 0.600 |  |" in text  # HLM has no published split


def test_settings_are_compared_with_the_reference_on_the_same_datasets(tmp_path: Path) -> None:
    assert settings_section(tmp_path) == ""
    errors = {"plain": {"Sol": 1.0, "ESOL": 2.0}, "better": {"Sol": 0.9, "ESOL": 1.8}, "part": {"Sol": 0.1}}
    origin = {"reference": "plain", "device": "a GPU", "commit": "abc"}
    rows = [{"setting": name, "dataset": dataset, "rmse": error, **origin}
            for name, each in reversed(errors.items()) for dataset, error in each.items()]  # fmt: skip
    write_lines(tmp_path / "defaults.jsonl", [{"setting": "older", "dataset": "Sol", "rmse": 0.1}, *rows])
    text = settings_section(tmp_path)
    assert "| better | -10.5 % | 2 of 2 |\n| plain | +0.0 % | 0 of 2 |\n| part | -230.3 % | 1 of 1 |" in text
    assert "older" not in text


def test_a_search_shows_what_it_found(tmp_path: Path) -> None:
    assert tune_section(tmp_path) == ""
    found = {"dataset": "ESOL", "trials": 30, "pruned": 12, "default": 0.51, "best": 0.44, "validation": 105,
             "seconds": 99.6, "device": "a GPU", "epochs": 30, "metric": "MAE"}  # fmt: skip
    write_lines(tmp_path / "tune.jsonl", [found])
    assert "| ESOL | 30 | 12 | 0.510 | 0.440 | 105 | 100 | a GPU |" in tune_section(tmp_path)
