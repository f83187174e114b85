"""Measure the coverage and the width of 90 % intervals on random splits of the ADME and MoleculeACE datasets.

    python benchmarks/interval_coverage.py SHARED_DATA WORK benchmarks/results/intervals.jsonl [--epochs N]

A fifth of the molecules of each dataset, at random, is for test. `pathnn train --folds 5` trains on the others with its
defaults, and `pathnn predict --interval 0.9` predicts the test molecules. A line of the results file is one dataset; a
dataset that the file already has is skipped. `band` holds the coverage of a valid method with a probability of 99 %:
the number of test molecules inside is beta-binomial, since the number of calibration molecules is finite too.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from time import monotonic

import numpy as np
from chemprop_scores import write_tables
from scipy.stats import betabinom

from pathnn.provenance import commit

LEVEL = 0.9


def write_split(table: Path, work: Path, seed: int) -> Path:
    """Write a table with the columns smiles, y and part: copies of a SMILES are in one part."""
    with table.open(newline="") as file:
        rows = [(row["smiles"], row["y"]) for row in csv.DictReader(file)]
    names = sorted({smiles for smiles, _ in rows})
    random.Random(f"{table.stem} {seed}").shuffle(names)
    test = set(names[: round(len(names) / 5)])
    out = work / table.name
    with out.open("w", newline="") as file:
        parts = [(smiles, y, "test" if smiles in test else "train") for smiles, y in rows]
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


def measure(table: Path, work: Path, epochs: int | None) -> dict[str, object]:
    run, out, start = work / "runs" / table.stem, work / f"{table.stem}.predictions.csv", monotonic()
    command = [sys.executable, "-m", "pathnn.cli"]
    train = [*command, "train", str(table), "--target", "y", "--split-by", "part", "--folds", "5", "--out", str(run)]
    more = [] if epochs is None else ["--epochs", str(epochs)]
    again = ["--resume"] if (run / "ensemble.json").exists() else []
    subprocess.run([*train, *more, *again], check=True, stdout=subprocess.DEVNULL)
    predict = [*command, "predict", str(run), str(table), "--out", str(out), "--interval", str(LEVEL)]
    subprocess.run(predict, check=True, stdout=subprocess.DEVNULL)
    with out.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "test"]
    names = ("y", "y_lower", "y_upper", "predicted_y", "predicted_y_std")
    y, lower, upper, mean, std = np.array([[float(row[name]) for name in names] for row in rows]).T
    calibration = len(json.loads((run / "intervals.json").read_text())["scores"])
    share, width = covered(y, lower, upper)
    plain_share, plain_width = covered(y, mean - 1.64 * std, mean + 1.64 * std)
    low, high = band(calibration, len(y))
    return {
        "dataset": table.stem, "level": LEVEL, "calibration": calibration, "test": len(y), "coverage": share,
        "band": [low, high], "inside_band": low <= share <= high, "width": width, "std_coverage": plain_share,
        "std_width": plain_width, "rmse": float(np.sqrt(np.mean((y - mean) ** 2))), "epochs": epochs,
        "seconds": monotonic() - start, "commit": commit(),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="datasets; by default all but ESOL")
    parser.add_argument("--epochs", type=int, help="by default those of pathnn train")
    parser.add_argument("--seed", type=int, default=0, help="of the test parts")
    options = parser.parse_args()
    tables = [path for path in write_tables(options.data, options.work / "tables") if path.stem != "ESOL"]
    if unknown := {*options.only} - {path.stem for path in tables}:
        parser.error(f"unknown datasets {', '.join(sorted(unknown))}: expected {', '.join(p.stem for p in tables)}")
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    done = {json.loads(line)["dataset"] for line in lines}
    for table in sorted(tables, key=lambda path: path.stat().st_size):
        if table.stem in done or (options.only and table.stem not in options.only):
            continue
        row = measure(write_split(table, options.work, options.seed), options.work, options.epochs)
        with options.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
