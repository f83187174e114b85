"""Write what a run on molecules has besides its model: predictions, baselines, training molecules and the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from pathnn.data.task import Task
from pathnn.evaluation.baselines import SETTINGS, fit_baselines
from pathnn.evaluation.held_out import (
    BASELINES,
    TEST,
    held_out_splits,
    predict_test_part,
    read_baselines,
    read_held_out,
)
from pathnn.evaluation.predictions import Predictions
from pathnn.evaluation.report import write_report
from pathnn.inference.predictor import load_runs
from pathnn.inference.similarity import TrainingMolecules
from pathnn.training.ensemble import Ensemble
from pathnn.training.run_folder import finite, write_file
from pathnn.training.setup import choose_split, splits_of


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
    ensemble, names = load_runs(folder), task.graphs.names
    assert names is not None
    task = replace(task, splits=splits_of(task, ensemble.config))
    whole = choose_split(task, ensemble.config)
    TrainingMolecules.of([names[i] for i in whole.train.tolist()], ensemble.config.clean).save(folder)
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
