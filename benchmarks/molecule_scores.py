"""Measure `pathnn train`, random forests and LightGBM on 22 datasets of molecules: scores and CPU seconds.

    python benchmarks/molecule_scores.py SHARED_DATA WORK benchmarks/results/molecules.csv [MODEL...]

The datasets and their splits are those of `chemprop_scores.py`. Models and datasets that the results file already has
are skipped. All commands run on one thread; CPU seconds are those of the whole command, start and reports included.
`pathnn bench --report` writes the page.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from chemprop_scores import append_rows, cpu_seconds, score_rows, write_tables

Rows = list[dict[str, str]]


def rows_of(table: Path, *splits: str) -> Rows:
    with table.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["split"] in splits]


def write_rows(path: Path, rows: Rows, *columns: str) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *([row[name] for name in columns] for row in rows)])


def pathnn(table: Path, folder: Path, **options: object) -> tuple[list[float], float, float]:
    """Train and predict with the command line; return predictions for the test molecules, and CPU seconds of both."""
    command = [sys.executable, "-m", "pathnn.cli"]
    known, test, out = folder / "known.csv", folder / "test.csv", folder / "out.csv"
    write_rows(known, rows_of(table, "train", "val"), "smiles", "y", "split")
    write_rows(test, rows_of(table, "test"), "smiles")
    chosen = {"target": "y", "metric": "rmse", "out": folder / "run", **options}
    chosen |= {} if "folds" in options else {"split-by": "split"}
    run = ["--overwrite", *(text for name, value in chosen.items() for text in (f"--{name}", str(value)))]
    train = cpu_seconds([*command, "train", str(known), *run, "--device", "cpu"])
    predict = cpu_seconds([*command, "predict", str(folder / "run"), str(test), "-o", str(out), "--device", "cpu"])
    with out.open(newline="") as file:
        return [float(row["predicted_y"]) for row in csv.DictReader(file)], train, predict


def alone(share: float, table: Path, folder: Path) -> tuple[list[float], None, None]:
    """Predict with one part of the model that `pathnn` has trained: its network (0) or its kernel (1)."""
    from pathnn.inference import Predictor

    predictor = Predictor(folder.parents[1] / "pathnn" / table.stem / "run")
    for member in predictor.trained.members:
        assert member.model.kernel is not None
        member.model.kernel.share.fill_(share)
    found = predictor([row["smiles"] for row in rows_of(table, "test")])
    return [float(value) for value in found["predicted_y"] if value is not None], None, None


def baseline(name: str, features: str, table: Path, _: Path) -> tuple[list[float], float, float]:
    """Train a model of `--baselines` on the training and the validation part."""
    import numpy as np

    from pathnn.data.readers.descriptors import morgan, rdkit_descriptors
    from pathnn.evaluation.baselines import _filled, _fit

    known, test = rows_of(table, "train", "val"), rows_of(table, "test")
    start = time.process_time()
    describe = morgan if features == "Morgan" else rdkit_descriptors
    train_x = describe([row["smiles"] for row in known]).astype(np.float32)
    trained = time.process_time() - start
    test_x = describe([row["smiles"] for row in test]).astype(np.float32)
    predicted = time.process_time() - start - trained
    x = np.concatenate([train_x, test_x])
    train_x, test_x = _filled(x, np.arange(len(known)), np.arange(len(known), len(x)))
    start = time.process_time()
    model = _fit(name, "regression", train_x, np.array([float(row["y"]) for row in known]), seed=0)
    trained += time.process_time() - start
    start = time.process_time()
    out = model.predict(test_x)
    return list(map(float, out)), trained, predicted + time.process_time() - start


MODELS: dict[str, Callable[[Path, Path], tuple[list[float], float | None, float | None]]] = {
    "random forest, Morgan": partial(baseline, "random forest", "Morgan"),
    "LightGBM, Morgan": partial(baseline, "LightGBM", "Morgan"),
    "LightGBM, descriptors": partial(baseline, "LightGBM", "descriptors"),
    "pathnn": pathnn,
    "pathnn, network alone": partial(alone, 0.0),
    "pathnn, kernel alone": partial(alone, 1.0),
    "pathnn --descriptors none": partial(pathnn, descriptors="none"),
    "pathnn --folds 5": partial(pathnn, folds=5),
}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def main(data: Path, work: Path, results: Path, *chosen: str) -> None:
    from pathnn.provenance import commit

    paths = write_tables(data, work)
    done = set()
    if results.exists():
        with results.open(newline="") as file:
            done = {(row["model"], row["dataset"]) for row in csv.DictReader(file)}
    for name in chosen or MODELS:
        for path in paths:
            if (name, path.stem) in done:
                continue
            folder = work / "runs" / name.replace(" ", "-") / path.stem
            folder.mkdir(parents=True, exist_ok=True)
            predicted, train, predict = MODELS[name](path, folder)
            rows: list[dict[str, object]] = [
                {"model": name, "dataset": path.stem, **scores, "train_cpu_seconds": _rounded(train),
                 "predict_cpu_seconds": _rounded(predict), "commit": commit()}
                for scores in score_rows(rows_of(path, "test"), predicted)
            ]  # fmt: skip
            append_rows(results, rows)


if __name__ == "__main__":
    data, work, results, *chosen = sys.argv[1:]
    main(Path(data), Path(work), Path(results), *chosen)
