"""Predict the molecules that a run did not train on, and write what compares and reports read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from pathnn.data.task import Split, Task
from pathnn.device import resolve
from pathnn.evaluation.baselines import SETTINGS, fit_baselines
from pathnn.evaluation.predictions import Predictions, read_predictions
from pathnn.inference.predictor import load_runs
from pathnn.inference.similarity import TrainingMolecules
from pathnn.training.checkpoint import TaskSignature
from pathnn.training.ensemble import Ensemble, combine, predict_each
from pathnn.training.errors import RunFolderError
from pathnn.training.run_folder import finite, write_file
from pathnn.training.scoring import predict
from pathnn.training.setup import choose_split, splits_of

TEST, OUT_OF_FOLD, BASELINES = "test_predictions.csv", "out_of_fold.csv", "baselines.csv"


def held_out_splits(ensemble: Ensemble, task: Task) -> Split | tuple[Split, ...]:
    """Return the split whose test part the networks did not see; the splits of all folds if there is none."""
    whole = choose_split(task, ensemble.config)
    folds = ensemble.config.folds
    return splits_of(task, ensemble.config)[:folds] if folds is not None and not whole.test.numel() else whole


def predict_test_part(ensemble: Ensemble, task: Task) -> Predictions:
    """Return the mean prediction of all networks for the test part."""
    test, signature = choose_split(task, ensemble.config).test, ensemble.signature
    outputs = predict_each(ensemble, task, test, device=resolve(ensemble.config.device))
    out = signature.target_scale.decode(combine(outputs, signature.target))
    return Predictions.of(task, test, out, signature=signature)


def out_of_fold(ensemble: Ensemble, task: Task) -> Predictions:
    """Return the prediction for each graph from the network of the fold that held it out."""
    parts, signature = [], ensemble.signature
    for member, split in zip(ensemble.members, splits_of(task, ensemble.config), strict=False):
        out = predict(member, task, split.test, device=resolve(ensemble.config.device))
        decoded = signature.target_scale.decode(out)
        parts.append(Predictions.of(task, split.test, decoded, signature=signature, fold=member.config.fold))
    return Predictions.join(parts)


def read_held_out(folder: Path, signature: TaskSignature) -> Predictions:
    """Read the predictions of a run for its test part, or of all folds for the molecules that they held out."""
    for name in (TEST, OUT_OF_FOLD):
        if (folder / name).exists():
            return read_predictions(folder / name, signature)[""]
    raise RunFolderError(
        f"{folder} has neither {TEST} nor {OUT_OF_FOLD}: expected a run with test molecules that pathnn train wrote "
        "for a table of molecules. Resume it with --resume, which writes the file."
    )


def read_baselines(folder: Path, signature: TaskSignature) -> dict[str, Predictions]:
    """Read the predictions of the baselines of a run; none if it has no baselines."""
    return read_predictions(folder / BASELINES, signature) if (folder / BASELINES).exists() else {}


def write_evaluation(
    folder: Path, task: Task, *, baselines: bool = False, step: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Write the predictions, baselines, training molecules and the report of a finished run on molecules.

    Returns the scores of the baselines by name. Baselines that the folder has are kept. `step` is called after each
    trained baseline. Without a test part, only the training molecules are written.

    ```python
    config = RunConfig(data="molecules.csv", target="logS", collection="sp", k=2, epochs=2)
    task = load_task(config)
    run(config, Path("run"), task=task)
    write_evaluation(Path("run"), task)                          # run/report.html
    ```
    """
    from pathnn.evaluation.report import write_report

    ensemble, names = load_runs(folder), task.graphs.names
    assert names is not None
    task = replace(task, splits=splits_of(task, ensemble.config))
    whole = choose_split(task, ensemble.config)
    TrainingMolecules.of([names[i] for i in whole.train.tolist()]).save(folder)
    if whole.test.numel():
        predict_test_part(ensemble, task).write(folder / TEST)
    elif ensemble.config.folds is None:
        return {}
    found = read_held_out(folder, ensemble.signature)
    if baselines and not (folder / "baselines.json").exists():
        _write_baselines(folder, task, ensemble, found, step)
    simple = read_baselines(folder, ensemble.signature)
    write_report(folder, task, ensemble, found, simple)
    return {name: one.scores for name, one in simple.items()}


def _write_baselines(
    folder: Path, task: Task, ensemble: Ensemble, found: Predictions, step: Callable[[], None] | None
) -> None:
    start = monotonic()
    splits = held_out_splits(ensemble, task)
    config, signature = ensemble.config, ensemble.signature
    simple = fit_baselines(task, splits, seed=config.seed, clean=config.clean, signature=signature, step=step)
    found.write(folder / BASELINES, simple)
    document = {
        "trained_on": "the training and the validation part",
        "seed": config.seed,
        "seconds": monotonic() - start,
        "settings": SETTINGS,
        "scores": {name: finite(dict(one.scores)) for name, one in simple.items()},
    }
    write_file(folder / "baselines.json", (json.dumps(document, indent=1) + "\n").encode())
