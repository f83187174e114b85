"""Write the page that compares our defaults with chemprop, random forests and LightGBM on datasets of molecules.

`benchmarks/molecule_scores.py` and `benchmarks/chemprop_scores.py` measure the numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from math import log, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

from pathnn_reproduction.pages import fill, read_lines
from pathnn_reproduction.tables import markdown_table

OURS = ("pathnn", "pathnn --descriptors none", "pathnn --folds 5", "pathnn, network alone", "pathnn, kernel alone")
MODELS = (*OURS, "chemprop", "random forest, Morgan", "LightGBM, Morgan", "LightGBM, descriptors")
ADME = ("HLM", "MDR1_ER", "RLM", "Sol", "hPPB", "rPPB")

Scores = dict[tuple[str, str, str], Mapping[str, str]]
"""Rows of the results files by model, dataset and part ("all", "cliff", "noncliff")."""


def molecules_page(folder: Path) -> str | None:
    """Return the page as Markdown, or None if `folder` has no `molecules.csv` and `chemprop.csv`."""
    ours, other = _rows(folder / "molecules.csv"), _rows(folder / "chemprop.csv")
    if not (ours and other):
        return None
    scores = read_scores([*ours, *({"model": "chemprop", **row} for row in other)])
    every = sorted({dataset for _, dataset, _ in scores}, key=_order)
    measured = {name: [dataset for dataset in every if (name, dataset, "all") in scores] for name in MODELS}
    models = [name for name, own in measured.items() if own and (name not in OURS[1:] or own == measured[OURS[0]])]
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
    timed = [name for name in models if all(scores[name, dataset, "all"]["train_cpu_seconds"] for dataset in sets)]
    groups_timed = [*((names, "train") for names in (["ESOL"], adme, cliffs, sets)), (sets, "predict")]
    seconds = [
        [model, *(f"{sum(_value(scores, model, name, f'{what}_cpu_seconds') for name in names):,.0f}"
                  for names, what in groups_timed)] for model in timed
    ]  # fmt: skip
    near = [[model, str(first_or_near(scores, rivals(models, model), model, sets)),
             "" if model == "chemprop" else str(first_or_near(scores, ["chemprop", model], model, sets)),
             str(len(sets))] for model in models]  # fmt: skip
    columns = ("model", "adme_pearson", "cliff_rmse", "noncliff_rmse")
    published = [[*(row[name] for name in columns), "published"] for row in _rows(folder / "published.csv")]
    summary = ((adme, "all", "pearson"), (cliffs, "cliff", "rmse"), (cliffs, "noncliff", "rmse"))
    here = [[model, *[f"{mean(scores, model, names, part, field):.3f}" if names else ""
                      for names, part, field in summary], "measured here"] for model in models]  # fmt: skip
    return fill(
        "bench/molecules",
        published=markdown_table(("model", "ADME, Pearson's r", "MoleculeACE, cliffs, RMSE", "others, RMSE", ""),
                                 [*here, *published]),
        scores=markdown_table(("dataset", "test molecules", *models), [*table, *means]),
        seconds=markdown_table(("training, CPU seconds", "ESOL", "ADME", "MoleculeACE", "all", "prediction, all"),
                               seconds),
        near=markdown_table(("model", "first, or near the first", "of chemprop and itself", "datasets"), near),
        missing="" if not missing else f"\n**Not measured with all models yet: {', '.join(missing)}.**\n",
        chemprop=next(row["chemprop"] for (name, _, _), row in scores.items() if name == "chemprop"),
        variants="" if sum(name in OURS for name in models) < 2 else
        " Variants of\npathnn are compared with the other programs, not with each other.",
        untimed="" if timed == models else
        f"\nNot timed: {', '.join(name for name in models if name not in timed)}.\n",
        more=intervals_section(folder, scores) + settings_section(folder) + tune_section(folder),
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


def rivals(models: Iterable[str], model: str) -> list[str]:
    """Return the models that a model is compared with: itself and other programs, but no other variant of ours.

    >>> rivals(["pathnn", "pathnn --folds 5", "chemprop"], "pathnn --folds 5")
    ['pathnn --folds 5', 'chemprop']
    >>> rivals(["pathnn", "pathnn --folds 5", "chemprop"], "chemprop")
    ['pathnn', 'chemprop']
    """
    own = model if model in OURS else OURS[0]
    return [name for name in models if name == own or name not in OURS]


def intervals_section(folder: Path, scores: Scores) -> str:
    """Return the section on the coverage of intervals; without `intervals.jsonl`, nothing."""
    rows = {(row["dataset"], row["split"]): row for row in read_lines(folder / "intervals.jsonl")}
    names = sorted({dataset for dataset, split in rows if split == "random"}, key=_order)
    if not names:
        return ""
    random = [rows[name, "random"] for name in names]
    published = [rows[name, "published"] for name in names if (name, "published") in rows]
    table = [[row["dataset"], f"{row['calibration']:,}", str(row["test"]), f"{row['coverage']:.3f}",
              f"{row['band'][0]:.3f} to {row['band'][1]:.3f}", f"{row['width']:.2f}", f"{row['std_width']:.2f}",
              f"{row['std_coverage']:.3f}",
              f"{rows[row['dataset'], 'published']['coverage']:.3f}" if (row["dataset"], "published") in rows else ""]
             for row in random]  # fmt: skip
    fields = ("coverage", "width", "std_width", "std_coverage")
    coverage, width, std_width, std_coverage = (fmean(row[field] for row in random) for field in fields)
    last = f"{fmean(row['coverage'] for row in published):.3f}" if len(published) == len(names) else ""
    table += [["mean", "", "", f"{coverage:.3f}", "", f"{width:.2f}", f"{std_width:.2f}", f"{std_coverage:.3f}", last]]
    one, folds = ({name: scores.get((model, name, "all")) for name in names} for model in OURS[:3:2])
    pairs = {name: (a, b) for name in names if (a := one[name]) and (b := folds[name])}
    both = [name for name, (a, b) in pairs.items() if a.get("commit") == b.get("commit")]  # the defaults are the same
    missing = sorted({name for _, name, _ in scores} - {*names, "ESOL"}, key=_order)
    return fill(
        "bench/intervals",
        folds="" if not both else fill(
            "bench/intervals_folds", sets=len(both),
            one=f"{mean(scores, OURS[0], both, 'all'):.3f}", folds=f"{mean(scores, OURS[2], both, 'all'):.3f}",
        ),
        missing=f"\n**Not measured yet: {', '.join(missing)}.**\n" if missing else "",
        table=markdown_table(("dataset", "calibration molecules", "test molecules", "coverage", "99 % band", "width",
                              "width of ± 1.64 s", "its coverage", "coverage, published split"), table),
        inside=sum(row["inside_band"] for row in random), sets=len(names), coverage=f"{100 * coverage:.1f}",
        std_coverage=f"{100 * std_coverage:.1f}", origin=_origin(random),
    )  # fmt: skip


def settings_section(folder: Path) -> str:
    """Return the section on settings that were compared with a reference; without them, nothing."""
    lines = read_lines(folder / "defaults.jsonl")
    rows = [row for row in lines if "reference" in row]
    if not rows:
        return ""
    first = rows[0]["reference"]
    errors: dict[str, dict[str, float]] = {first: {}}
    for row in lines:
        if row["setting"] == first or "reference" in row:
            errors.setdefault(row["setting"], {})[row["dataset"]] = row["rmse"]
    table = []
    for setting, each in errors.items():
        change = [log(error / errors[first][name]) for name, error in each.items()]
        table.append((-len(change), fmean(change), setting, f"{sum(one < 0 for one in change)} of {len(change)}"))
    texts = [[setting, f"{100 * change:+.1f} %", better] for _, change, setting, better in sorted(table)]
    return fill("bench/settings", table=markdown_table(("setting", "RMSE, relative", "lower on"), texts), first=first,
                origin=_origin(rows), names=", ".join(sorted(errors[first], key=_order)))  # fmt: skip


def tune_section(folder: Path) -> str:
    """Return the section on what a search with `pathnn tune` finds and costs; without `tune.jsonl`, nothing."""
    rows = read_lines(folder / "tune.jsonl")
    if not rows:
        return ""
    table = [[row["dataset"], str(row["trials"]), str(row["pruned"]), f"{row['default']:.3f}", f"{row['best']:.3f}",
              str(row["validation"]), f"{row['seconds']:.0f}", row["device"]] for row in rows]  # fmt: skip
    head = ("dataset", "trials", "pruned", "defaults", "best", "validation molecules", "seconds", "device")
    return fill("bench/tune", table=markdown_table(head, table), epochs=rows[0]["epochs"], metric=rows[0]["metric"])


def _origin(rows: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(sorted({f"{row['device']} at {row['commit']}" for row in rows}))


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []


def _order(dataset: str) -> tuple[int, str]:
    return (2 if dataset.startswith("CHEMBL") else 1 if dataset in ADME else 0, dataset)


def _value(scores: Scores, model: str, dataset: str, field: str = "rmse", part: str = "all") -> float:
    return float(scores[model, dataset, part][field])


def _marked(values: list[float]) -> list[str]:
    """Return the values as text, the lowest in bold."""
    return [f"**{value:.3f}**" if value == min(values) else f"{value:.3f}" for value in values]
