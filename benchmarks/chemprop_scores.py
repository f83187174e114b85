"""Measure chemprop's defaults on the datasets of the chemist's benchmark: scores and CPU seconds, once per dataset.

Run it in an environment of its own, since chemprop is not a dependency of this project:

    python3 -m venv chemprop && chemprop/bin/pip install torch==2.13.0 chemprop==2.3.1
    chemprop/bin/python benchmarks/chemprop_scores.py SHARED_DATA WORK benchmarks/results/chemprop.csv

Datasets that the results file already has are skipped. `write_tables` writes one CSV per dataset with the columns
smiles, y, cliff and split; `pathnn train FILE --target y --split-by split` reads the same files.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path

FIELDS = ("dataset", "part", "molecules", "rmse", "pearson", "train_cpu_seconds", "predict_cpu_seconds", "chemprop")


def bucket(smiles: str) -> int:
    """Return a number from 0 to 9 that depends only on the text of a SMILES."""
    return int.from_bytes(hashlib.sha256(smiles.encode()).digest()[:4], "big") % 10


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def tables(data: Path) -> dict[str, list[tuple[str, str, str, str]]]:
    """Return (smiles, y, cliff, split) for each dataset.

    The test molecules of ADME and MoleculeACE are the published ones, and a tenth of the training molecules is for
    validation. ESOL has no published split: a tenth each is for test and validation.
    """
    found = {}
    for row in read(data / "molecules/esol.csv.gz"):
        split = {0: "test", 1: "val"}.get(bucket(row["smiles"]), "train")
        found.setdefault("ESOL", []).append((row["smiles"], row["logSolubility"], "", split))
    for path in sorted((data / "adme").glob("*.csv.gz")):
        for row in read(path):
            split = "test" if row["part"] == "test" else "val" if bucket(row["smiles"]) == 0 else "train"
            found.setdefault(path.name.removesuffix(".csv.gz"), []).append((row["smiles"], row["activity"], "", split))
    for path in sorted((data / "moleculeace").glob("*.csv.gz")):
        for row in read(path):
            split = "test" if row["split"] == "test" else "val" if bucket(row["smiles"]) == 0 else "train"
            found.setdefault(path.name.removesuffix(".csv.gz"), []).append(
                (row["smiles"], row["y"], row["cliff_mol"], split)
            )
    return found


def write_tables(data: Path, work: Path) -> list[Path]:
    """Write the tables; return their names, the smallest first."""
    work.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, rows in tables(data).items():
        paths.append(work / f"{name}.csv")
        with paths[-1].open("w", newline="") as file:
            csv.writer(file).writerows([("smiles", "y", "cliff", "split"), *rows])
    return sorted(paths, key=lambda path: path.stat().st_size)


def append_rows(results: Path, rows: list[dict[str, object]]) -> None:
    """Add rows to a results file, which gets a header if it is new; print the first."""
    new = not results.exists()
    with results.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)
    print(rows[0], flush=True)


def cpu_seconds(command: list[str]) -> float:
    """Run a command on one thread and return the CPU seconds that it took, those of its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def scores(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return RMSE and Pearson's r of (target, prediction)."""
    import numpy as np

    y, out = np.array(pairs).T
    return float(np.sqrt(np.mean((y - out) ** 2))), float(np.corrcoef(y, out)[0, 1])


def score_rows(rows: list[dict[str, str]], predicted: list[float]) -> list[dict[str, object]]:
    """Score the predictions of rows of a table: all, and where the table knows them, activity cliffs and others."""
    found: list[dict[str, object]] = []
    for part, flag in (("all", None), ("cliff", "1"), ("noncliff", "0")):
        pairs = [(float(row["y"]), p) for row, p in zip(rows, predicted, strict=True) if flag in (None, row["cliff"])]
        if pairs:
            rmse, pearson = scores(pairs)
            found.append({"part": part, "molecules": len(pairs), "rmse": round(rmse, 5), "pearson": round(pearson, 5)})
    return found


def measure(path: Path, work: Path) -> list[dict[str, object]]:
    from importlib.metadata import version

    binary, model = str(Path(sys.executable).parent / "chemprop"), work / "models" / path.stem
    train = [binary, "train", "-i", str(path), "-s", "smiles", "--target-columns", "y", "-t", "regression",
             "--splits-column", "split", "-o", str(model)]  # fmt: skip
    train_seconds = cpu_seconds(train)
    rows = [row for row in csv.DictReader(path.open()) if row["split"] == "test"]
    test, out = model / "test.csv", model / "out.csv"
    with test.open("w", newline="") as file:
        csv.writer(file).writerows([("smiles",), *[(row["smiles"],) for row in rows]])
    predict = [binary, "predict", "-i", str(test), "-s", "smiles", "--model-paths", str(model), "-o", str(out)]
    predict_seconds = cpu_seconds(predict)
    predicted = [float(row["y"]) for row in csv.DictReader(out.open())]
    seconds = {"train_cpu_seconds": round(train_seconds, 1), "predict_cpu_seconds": round(predict_seconds, 1)}
    own = {"dataset": path.stem, **seconds, "chemprop": version("chemprop")}
    return [{name: {**own, **part}[name] for name in FIELDS} for part in score_rows(rows, predicted)]


def main(data: Path, work: Path, results: Path) -> None:
    done = {row["dataset"] for row in csv.DictReader(results.open())} if results.exists() else set()
    for path in write_tables(data, work):
        if path.stem not in done:
            append_rows(results, measure(path, work))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
