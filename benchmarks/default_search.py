"""Cross-validate settings of `pathnn train` on the training parts of datasets, to choose the defaults for molecules.

    python benchmarks/default_search.py TABLES WORK benchmarks/results/defaults.jsonl [SETTING...]

TABLES is the folder that `chemprop_scores.write_tables` fills; test molecules are left out of all tables. A line
of the results file is one setting on one dataset: the RMSE of all held-out molecules of three folds, and the CPU
seconds of all three networks, on one thread. Lines that the file already has are skipped. `molecules_gpu.py` compares
the default with its `CHANGES` on a GPU.
"""

from __future__ import annotations

import csv
import json
import sys
from math import log
from pathlib import Path
from statistics import fmean
from time import monotonic, process_time
from typing import Any
from unittest.mock import patch

import torch

from pathnn.evaluation import cross_validate
from pathnn.nn import readout
from pathnn.provenance import commit
from pathnn.training import RunConfig, load_task
from pathnn.training.recipes import fill_in

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
STANDARD = {**COSINE, "descriptors": "standard", "counts": 0.1, "options": MEAN}
PLUS = {**COSINE, "epochs": 20, "model": "pathnn+", "options": {"num_layers": 2, "readout": "mean"}}

SETTINGS: dict[str, dict[str, Any]] = {
    "sum": {**COSINE, "options": MODEL},
    "sum, lr 0.002": {**COSINE, "lr": 0.002, "options": MODEL},
    "mean": {**COSINE, "options": MEAN},
    "mean, lr 0.002": {**COSINE, "lr": 0.002, "options": MEAN},
    "mean, plateau": {**PLATEAU, "schedule": "plateau", "options": MEAN},
    "mean, rdkit descriptors": {**COSINE, "descriptors": "rdkit", "options": MEAN},
    "mean, standard descriptors": STANDARD,
    "mean, standard, 30 epochs": {**STANDARD, "epochs": 30},
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

REFERENCE = "mean, standard, 30 epochs"
"""The default before "kernel, last epoch", with which changes are compared."""

KERNEL = {"kernel": "ridge", "keep": "last"}
LR2, BATCH64 = {"lr": 0.002}, {"batch_size": 64, "lr": 0.002}
CHANGES: dict[str, dict[str, Any]] = {
    "last epoch": {"keep": "last"},
    "kernel, last epoch": KERNEL,
    "kernel, last epoch, counts 0.3": {**KERNEL, "counts": 0.3},
    "kernel, last of 15 epochs": {**KERNEL, "epochs": 15},
    "counts 0.3": {"counts": 0.3},
    "counts 0.6": {"counts": 0.6},
    "counts 0.3, dropout 0.1": {"counts": 0.3, "options": {"dropout": 0.1}},
    "counts 0.3, dropout 0.3": {"counts": 0.3, "options": {"dropout": 0.3}},
    "k 2, width 128": {"k": 2, "options": {"hidden_channels": 128}},
    "k 2, width 128, counts 0.3, dropout 0.3": {
        "k": 2,
        "counts": 0.3,
        "options": {"hidden_channels": 128, "dropout": 0.3},
    },
    "lr 0.002": LR2,
    "lr 0.002, dropout 0.1": {**LR2, "options": {"dropout": 0.1}},
    "lr 0.002, dropout 0.2": {**LR2, "options": {"dropout": 0.2}},
    "lr 0.003, dropout 0.2": {"lr": 0.003, "options": {"dropout": 0.2}},
    "lr 0.002, counts 0.2, dropout 0.2": {**LR2, "counts": 0.2, "options": {"dropout": 0.2}},
    "lr 0.002, counts 0.3, dropout 0.3": {**LR2, "counts": 0.3, "options": {"dropout": 0.3}},
    "lr 0.002, counts 0.2": {**LR2, "counts": 0.2},
    "lr 0.002, mse": {**LR2, "loss": "mse"},
    "lr 0.002, huber, dropout 0.2": {**LR2, "loss": "huber", "options": {"dropout": 0.2}},
    "lr 0.002, adamw 0.1": {**LR2, "optimizer": "adamw", "weight_decay": 0.1},
    "lr 0.002, adamw 0.1, counts 0.2": {**LR2, "optimizer": "adamw", "weight_decay": 0.1, "counts": 0.2},
    "lr 0.002, clip 1": {**LR2, "clip": 1.0},
    "batch 64, lr 0.002": BATCH64,
    "batch 64, lr 0.004, dropout 0.2": {"batch_size": 64, "lr": 0.004, "options": {"dropout": 0.2}},
    "lr 0.002, k 3": {**LR2, "k": 3},
    "lr 0.002, k 3, dropout 0.2": {**LR2, "k": 3, "options": {"dropout": 0.2}},
    "lr 0.002, sp": {**LR2, "collection": "sp"},
    "lr 0.002, 20 epochs": {**LR2, "epochs": 20},
    "dropout 0.1": {"options": {"dropout": 0.1}},
    "lr 0.003": {"lr": 0.003},
}
"""Changes of the default that take no more CPU time, the most promising ones first. `counts` is the scale of Morgan
counts."""

COSTLY: dict[str, dict[str, Any]] = {
    "lr 0.002, 50 epochs": {**LR2, "epochs": 50},
    "lr 0.002, width 96": {**LR2, "options": {"hidden_channels": 96}},
    "lr 0.002, batch 16": {**LR2, "batch_size": 16},
}
"""Changes that take more CPU time, to know what it would buy; they are never chosen."""

BASE = {**STANDARD, "epochs": 30, "lr": 0.001, "batch_size": 32, "k": 4, "collection": "ap", "kernel": None,
        "keep": "best"}  # fmt: skip
CANDIDATES = (REFERENCE, *CHANGES)
SETTINGS |= {
    name: {**BASE, **change, "options": {**MEAN, **change.get("options", {})}}
    for name, change in {REFERENCE: {}, **CHANGES, **COSTLY}.items()
}

SEARCHED = (
    "CHEMBL4203_Ki", "CHEMBL1862_Ki", "CHEMBL231_Ki", "CHEMBL237_EC50", "CHEMBL218_EC50", "CHEMBL2147_Ki", "rPPB",
    "ESOL", "Sol", "CHEMBL228_Ki",
)  # fmt: skip
"""The datasets on which the changes are compared."""

LEAST_GAIN, LEAST_SHARE = 0.01, 2 / 3
"""A setting replaces the default only if it lowers the error by this share, and on this share of the datasets."""


def write_training_part(table: Path, work: Path) -> Path:
    """Write the molecules that are not for test as a table of SMILES and targets."""
    with table.open(newline="") as file:
        rows = [(row["smiles"], row["y"]) for row in csv.DictReader(file) if row["split"] != "test"]
    out = work / table.name
    with out.open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "y"), *rows])
    return out


def split_setting(setting: str) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Return the options of a run and of its model in a setting, and the scale of Morgan counts."""
    values = dict(SETTINGS[setting])
    return values, values.pop("options"), values.pop("counts", readout.COUNTS)


def measure(setting: str, data: Path, work: Path, device: str = "cpu") -> dict[str, object]:
    """Cross-validate a setting on the training part of a dataset."""
    values, options, counts = split_setting(setting)
    own, out = {"target": ["y"], "device": device, **values}, work / f"{data.stem}-{setting}".replace(" ", "-")
    start, cpu = monotonic(), process_time()
    task = load_task(RunConfig.from_dict({"data": str(data), **own}))
    with patch.object(readout, "COUNTS", counts):
        result = cross_validate(fill_in(str(data), task, own, options), out, 3, task=task, overwrite=True)
    reference = {"reference": REFERENCE} if setting in (*CANDIDATES, *COSTLY) else {}
    return {
        "setting": setting, "dataset": data.stem, **reference, "rmse": result["out_of_fold_score"],
        "cpu_seconds": process_time() - cpu if device == "cpu" else None, "seconds": monotonic() - start,
        "device": result["device"], "commit": commit(),
    }  # fmt: skip


def errors(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the RMSE of each candidate by dataset, of candidates that were measured on all `SEARCHED` datasets."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["dataset"] in SEARCHED and row["setting"] in (*CANDIDATES, *COSTLY):
            found.setdefault(row["setting"], {})[row["dataset"]] = row["rmse"]
    return {setting: each for setting, each in found.items() if len(each) == len(SEARCHED)}


def gain(own: dict[str, float], default: dict[str, float]) -> tuple[float, float]:
    """Return by how much a setting lowers the error (geometric mean), and on which share of the datasets.

    >>> gain({"a": 1.0, "b": 4.0}, {"a": 2.0, "b": 2.0})
    (0.0, 0.5)
    """
    change = [log(own[name] / value) for name, value in default.items()]
    return -fmean(change), fmean(one < 0 for one in change)


def choose(rows: list[dict[str, Any]]) -> str:
    """Return the best candidate, or the default if none is clearly better."""
    each = errors(rows)
    if REFERENCE not in each:
        return REFERENCE
    gains = {setting: gain(own, each[REFERENCE]) for setting, own in each.items() if setting in CANDIDATES}
    better = [name for name, (less, share) in gains.items() if less >= LEAST_GAIN and share >= LEAST_SHARE]
    return max(better, key=lambda name: gains[name][0], default=REFERENCE)


def main(tables: Path, work: Path, results: Path, *chosen: str) -> None:
    torch.set_num_threads(1)
    work.mkdir(parents=True, exist_ok=True)
    lines = results.read_text().splitlines() if results.exists() else []
    done = {(row["setting"], row["dataset"]) for row in map(json.loads, lines)}
    for setting in chosen or SETTINGS:
        for name in SEARCHED if setting in (*CANDIDATES, *COSTLY) else DATASETS:
            if (setting, name) not in done:
                row = measure(setting, write_training_part(tables / f"{name}.csv", work), work)
                with results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)


if __name__ == "__main__":
    tables, work, results, *chosen = sys.argv[1:]
    main(Path(tables), Path(work), Path(results), *chosen)
