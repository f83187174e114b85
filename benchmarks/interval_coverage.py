"""Measure the coverage and the width of 90 % intervals on the ADME and MoleculeACE datasets, and scores of folds.

    python benchmarks/interval_coverage.py SHARED_DATA WORK benchmarks/results/intervals.jsonl [--epochs N]

Five networks with the defaults of `pathnn train --folds 5` predict the test molecules. With the split "random", a fifth
of the molecules, at random, is for test; with "published", the published test part. A line of the results file is one
dataset with one split; those that the file already has are skipped. `band` holds the coverage of a valid method with a
probability of 99 %: the number of test molecules inside is beta-binomial, since the number of calibration molecules is
finite too. It holds for random splits only.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from chemprop_scores import write_tables
from scipy.stats import betabinom

from pathnn.evaluation import cross_validate
from pathnn.inference.intervals import Calibration
from pathnn.inference.predictor import load_runs
from pathnn.provenance import commit
from pathnn.training import RunConfig, load_task, predict_each
from pathnn.training.recipes import add_descriptors, fill_in
from pathnn.training.scoring import targets

LEVEL = 0.9
SPLITS = ("random", "published")


def write_split(table: Path, work: Path, split: str, seed: int = 0) -> Path:
    """Write a table with the columns smiles, y and part; in a random split, copies of a SMILES are in one part."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["smiles"] for row in rows})
    random.Random(f"{table.stem} {seed}").shuffle(names)
    test = set(names[: round(len(names) / 5)])
    tested = [row["smiles"] in test if split == "random" else row["split"] == "test" for row in rows]
    out = work / split / table.name
    out.parent.mkdir(parents=True, exist_ok=True)
    parts = [(row["smiles"], row["y"], "test" if one else "train") for row, one in zip(rows, tested, strict=True)]
    with out.open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "y", "part"), *parts])
    return out


def band(calibration: int, test: int) -> tuple[float, float]:
    """Return the coverage that a valid method has with a probability of 99 %."""
    rank = math.ceil(round(LEVEL * (calibration + 1), 9))
    inside = betabinom(test, rank, calibration + 1 - rank)
    return float(inside.ppf(0.005)) / test, float(inside.ppf(0.995)) / test


def covered(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    """Return the share of targets inside intervals, and the mean width."""
    return float(((lower <= y) & (y <= upper)).mean()), float((upper - lower).mean())


def measure(
    table: Path, run: Path, options: Mapping[str, Any], model_options: Mapping[str, Any] | None = None
) -> tuple[dict[str, object], list[float]]:
    """Train five folds with the defaults and `options`; return a line of the results file, and the predictions."""
    start, chosen = monotonic(), add_descriptors(str(table), {"target": ["y"], "split_by": "part", **options})
    task = load_task(RunConfig.from_dict({"data": str(table), **chosen}))
    config = fill_in(str(table), task, chosen, model_options or {})
    device = cross_validate(config, run, 5, task=task, overwrite=True)["device"]
    ensemble, test = load_runs(run), task.splits[0].test
    outputs, y = predict_each(ensemble, task, test, device=config.device), targets(task, test).double().numpy()[:, 0]
    calibration = Calibration.load(run, ensemble)
    lower, upper = (bound[:, 0] for bound in calibration.bounds(outputs, LEVEL))
    each = ensemble.signature.target_scale.decode(outputs).double().cpu().numpy()[:, :, 0]
    mean, std = each.mean(axis=0), each.std(axis=0, ddof=1)
    share, width = covered(y, lower, upper)
    plain_share, plain_width = covered(y, mean - 1.64 * std, mean + 1.64 * std)
    low, high = band(len(calibration.scores), len(y))
    return {
        "dataset": table.stem, "split": table.parent.name, "level": LEVEL, "calibration": len(calibration.scores),
        "test": len(y), "coverage": share, "band": [low, high], "inside_band": low <= share <= high, "width": width,
        "std_coverage": plain_share, "std_width": plain_width, "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "epochs": config.epochs, "seconds": monotonic() - start, "device": device, "commit": commit(),
    }, mean.tolist()  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="datasets; by default all but ESOL")
    parser.add_argument("--splits", nargs="+", default=SPLITS, choices=SPLITS)
    parser.add_argument("--epochs", type=int, help="by default those of pathnn train")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0, help="of the random test parts")
    options = parser.parse_args()
    tables = [path for path in write_tables(options.data, options.work / "tables") if path.stem != "ESOL"]
    if unknown := {*options.only} - {path.stem for path in tables}:
        parser.error(f"unknown datasets {', '.join(sorted(unknown))}: expected {', '.join(p.stem for p in tables)}")
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    done = {(row["dataset"], row["split"]) for row in map(json.loads, lines)}
    own = {"device": options.device} | ({} if options.epochs is None else {"epochs": options.epochs})
    for split in options.splits:
        for table in tables:
            if (table.stem, split) in done or (options.only and table.stem not in options.only):
                continue
            path = write_split(table, options.work, split, options.seed)
            row, _ = measure(path, options.work / "runs" / split / table.stem, own)
            with options.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
