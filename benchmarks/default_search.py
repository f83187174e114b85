"""Cross-validate settings of `pathnn train` on the training parts of datasets, to choose the defaults for molecules.

    python benchmarks/default_search.py TABLES WORK benchmarks/results/defaults.jsonl [SETTING...]

TABLES is the folder that `chemprop_scores.write_tables` fills; test molecules are left out of all tables. A line
of the results file is one setting on one dataset: the RMSE of all held-out molecules of three folds, and the CPU
seconds of all three networks, on one thread. Lines that the file already has are skipped.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import yaml

COSINE = {
    "descriptors": None,
    "epochs": 50,
    "patience": None,
    "plateau_factor": None,
    "schedule": "cosine",
    "warmup": 2,
    "metric": "rmse",
}
PLATEAU = {
    "descriptors": None,
    "epochs": 200,
    "patience": 50,
    "plateau_factor": 0.5,
    "plateau_patience": 15,
    "warmup": 0,
    "metric": "rmse",
}
MODEL = {"hidden_channels": 64, "phi": "mlp"}
MEAN = {**MODEL, "readout": "mean"}
STANDARD = {**COSINE, "descriptors": "standard", "options": MEAN}
PLUS = {**COSINE, "epochs": 20, "model": "pathnn+", "options": {"num_layers": 2, "readout": "mean"}}

SETTINGS = {
    "sum": {**COSINE, "options": MODEL},
    "sum, lr 0.002": {**COSINE, "lr": 0.002, "options": MODEL},
    "mean": {**COSINE, "options": MEAN},
    "mean, lr 0.002": {**COSINE, "lr": 0.002, "options": MEAN},
    "mean, plateau": {**PLATEAU, "schedule": "plateau", "options": MEAN},
    "mean, rdkit descriptors": {**COSINE, "descriptors": "rdkit", "options": MEAN},
    "mean, standard descriptors": STANDARD,
    "mean, standard, 30 epochs": {**STANDARD, "epochs": 30},  # the default
    "mean, standard, 30 epochs, lr 0.002": {**STANDARD, "epochs": 30, "lr": 0.002},
    "mean, standard, 30 epochs, dropout 0.2": {**STANDARD, "epochs": 30, "options": {**MEAN, "dropout": 0.2}},
    "mean, standard, dropout 0.2": {**STANDARD, "options": {**MEAN, "dropout": 0.2}},
    "mean, standard, mse": {**STANDARD, "loss": "mse"},
    "mean, standard, k 3": {**STANDARD, "k": 3},
    "mean, morgan descriptors": {**COSINE, "descriptors": "morgan", "options": MEAN},
    "mean, 20 epochs": {**COSINE, "epochs": 20, "options": MEAN},
    "pathnn+, 2 blocks, k 4, 20 epochs": {**PLUS, "k": 4},
    "pathnn+, 2 blocks, k 6, 20 epochs": {**PLUS, "k": 6},
}
DATASETS = ("CHEMBL4203_Ki", "rPPB", "ESOL")


def write_training_part(table: Path, work: Path) -> Path:
    """Write the molecules that are not for test as a table of SMILES and targets."""
    with table.open(newline="") as file:
        rows = [(row["smiles"], row["y"]) for row in csv.DictReader(file) if row["split"] != "test"]
    out = work / table.name
    with out.open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "y"), *rows])
    return out


def cross_validate(setting: str, data: Path, work: Path) -> dict[str, object]:
    config, out = work / "config.yaml", work / f"{data.stem}-{setting}".replace(" ", "-")
    config.write_text(yaml.safe_dump(SETTINGS[setting]))
    command = [sys.executable, "-m", "pathnn.cli", "train", str(data), "--target", "y", "--folds", "3", "--overwrite",
               "--config", str(config), "--out", str(out), "--device", "cpu"]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result = json.loads((out / "result.json").read_text())
    return {"setting": setting, "dataset": data.stem, "rmse": result["out_of_fold_score"], "cpu_seconds": seconds}


def main(tables: Path, work: Path, results: Path, *chosen: str) -> None:
    work.mkdir(parents=True, exist_ok=True)
    lines = results.read_text().splitlines() if results.exists() else []
    done = {(row["setting"], row["dataset"]) for row in map(json.loads, lines)}
    for setting in chosen or SETTINGS:
        for name in DATASETS:
            if (setting, name) not in done:
                row = cross_validate(setting, write_training_part(tables / f"{name}.csv", work), work)
                with results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)


if __name__ == "__main__":
    tables, work, results, *chosen = sys.argv[1:]
    main(Path(tables), Path(work), Path(results), *chosen)
