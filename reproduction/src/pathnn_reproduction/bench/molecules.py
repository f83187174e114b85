"""Write the page that compares our defaults with chemprop, random forests and LightGBM on datasets of molecules.

`benchmarks/molecule_scores.py` and `benchmarks/chemprop_scores.py` measure the numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from math import sqrt
from pathlib import Path
from statistics import fmean

from pathnn_reproduction.pages import fill
from pathnn_reproduction.tables import markdown_table

OURS = ("pathnn", "pathnn --descriptors none", "pathnn --folds 5")
MODELS = (*OURS, "chemprop", "random forest, Morgan", "LightGBM, Morgan", "LightGBM, descriptors")
ADME = ("HLM", "MDR1_ER", "RLM", "Sol", "hPPB", "rPPB")

Scores = dict[tuple[str, str, str], Mapping[str, str]]
"""Rows of the results files by model, dataset and part ("all", "cliff", "noncliff")."""


def molecules_page(folder: Path) -> str | None:
    """Return the page as Markdown, or None if `folder` has no `molecules.csv` and `chemprop.csv`."""
    ours, other = folder / "molecules.csv", folder / "chemprop.csv"
    if not (ours.exists() and other.exists()):
        return None
    scores = read_scores([*_rows(ours), *({"model": "chemprop", **row} for row in _rows(other))])
    models = [name for name in MODELS if any(name == model for model, _, _ in scores)]
    every = sorted({dataset for _, dataset, _ in scores}, key=_order)
    sets = [dataset for dataset in every if all((model, dataset, "all") in scores for model in models)]
    if not sets:
        return None
    cliffs = [dataset for dataset in sets if _order(dataset)[0] == 2]
    adme = [dataset for dataset in sets if dataset in ADME]
    missing = [dataset for dataset in every if dataset not in sets]
    groups = [("mean of ADME", adme, "all"), ("mean of MoleculeACE", cliffs, "all"),
              ("MoleculeACE, cliffs", cliffs, "cliff"), ("MoleculeACE, others", cliffs, "noncliff"),
              ("mean of all", sets, "all")]  # fmt: skip
    table = [[dataset, scores["chemprop", dataset, "all"]["molecules"],
              *_marked([_value(scores, model, dataset) for model in models])] for dataset in sets]  # fmt: skip
    means = [[title, "", *_marked([mean(scores, model, names, part) for model in models])]
             for title, names, part in groups if names]  # fmt: skip
    seconds = [[model, *(f"{_total(scores, model, names):,.0f}" for names in (["ESOL"], adme, cliffs, sets)),
                f"{sum(_value(scores, model, dataset, 'predict_cpu_seconds') for dataset in sets):,.0f}"]
               for model in models]  # fmt: skip
    near = [[model, str(first_or_near(scores, models, model, sets)),
             "" if model == "chemprop" else str(first_or_near(scores, ["chemprop", model], model, sets)),
             str(len(sets))] for model in models]  # fmt: skip
    file = folder / "published.csv"
    published = [[row["model"], row["adme_pearson"], row["cliff_rmse"], row["noncliff_rmse"], "published"]
                 for row in (_rows(file) if file.exists() else [])]  # fmt: skip
    summary = ((adme, "all", "pearson"), (cliffs, "cliff", "rmse"), (cliffs, "noncliff", "rmse"))
    measured = [[model, *[f"{mean(scores, model, names, part, field):.3f}" if names else ""
                          for names, part, field in summary], "measured here"] for model in models]  # fmt: skip
    return fill(
        "bench/molecules",
        published=markdown_table(("model", "ADME, Pearson's r", "MoleculeACE, cliffs, RMSE", "others, RMSE", ""),
                                 [*measured, *published]),
        scores=markdown_table(("dataset", "test molecules", *models), [*table, *means]),
        seconds=markdown_table(("training, CPU seconds", "ESOL", "ADME", "MoleculeACE", "all", "prediction, all"),
                               seconds),
        near=markdown_table(("model", "first, or near the first", "of chemprop and itself", "datasets"), near),
        missing="" if not missing else f"\n**Not measured with all models yet: {', '.join(missing)}.**\n",
        chemprop=next(row["chemprop"] for (name, _, _), row in scores.items() if name == "chemprop"),
        commits=", ".join(sorted({row["commit"] for (name, _, _), row in scores.items() if name in OURS})),
    )  # fmt: skip


def read_scores(rows: Iterable[Mapping[str, str]]) -> Scores:
    """Return the rows by model, dataset and part."""
    return {(row["model"], row["dataset"], row["part"]): row for row in rows}


def mean(scores: Scores, model: str, sets: Iterable[str], part: str, field: str = "rmse") -> float:
    """Return the mean RMSE, or another score, of a model over datasets."""
    return fmean(_value(scores, model, dataset, field, part) for dataset in sets)


def first_or_near(scores: Scores, models: Iterable[str], model: str, sets: Iterable[str]) -> int:
    """Count the datasets where no model is better by more than one standard error, RMSE / sqrt(2 n)."""
    count = 0
    for dataset in sets:
        best = min(_value(scores, other, dataset) for other in models)
        tests = int(scores[model, dataset, "all"]["molecules"])
        count += _value(scores, model, dataset) <= best * (1 + 1 / sqrt(2 * tests))
    return count


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _order(dataset: str) -> tuple[int, str]:
    return (2 if dataset.startswith("CHEMBL") else 1 if dataset in ADME else 0, dataset)


def _value(scores: Scores, model: str, dataset: str, field: str = "rmse", part: str = "all") -> float:
    return float(scores[model, dataset, part][field])


def _total(scores: Scores, model: str, sets: Iterable[str]) -> float:
    return sum(_value(scores, model, dataset, "train_cpu_seconds") for dataset in sets)


def _marked(values: list[float]) -> list[str]:
    """Return the values as text, the lowest in bold."""
    return [f"**{value:.3f}**" if value == min(values) else f"{value:.3f}" for value in values]
