"""Predict the molecules that a run did not train on: cross-validate, and write predictions, baselines and a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Any

from pathnn.data.datasets.registry import is_dataset
from pathnn.data.fingerprints import DataFingerprint
from pathnn.data.task import Task, with_metric
from pathnn.device import resolve
from pathnn.evaluation.baselines import SETTINGS, fit_baselines
from pathnn.evaluation.predictions import Predictions, read_predictions
from pathnn.evaluation.report import write_report
from pathnn.inference.intervals import FILE as INTERVALS, Calibration
from pathnn.inference.predictor import load_runs
from pathnn.inference.similarity import TrainingMolecules
from pathnn.training.checkpoint import TaskSignature
from pathnn.training.config import RunConfig
from pathnn.training.ensemble import Ensemble, Report, combine, predict, predict_each, run_members, summary
from pathnn.training.errors import RunError, RunFolderError
from pathnn.training.run_folder import EnsembleFolder, finite, write_file
from pathnn.training.runs import load_task
from pathnn.training.scoring import result_scores, targets
from pathnn.training.setup import calibration_part, choose_split, learned_from, splits_of

TEST, OUT_OF_FOLD, BASELINES = "test_predictions.csv", "out_of_fold.csv", "baselines.csv"


def cross_validate(
    config: RunConfig,
    out: Path,
    folds: int,
    *,
    task: Task | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: Report | None = None,
) -> dict[str, Any]:
    """Train a network for each fold into folders in `out`, and return the result.

    Fold i is held out from the training of `out/fold-i`; the validation part that chooses the epoch is taken from the
    rest. A test part that a column names (`config.split_by`) is in no fold, and all networks together predict it.
    `out/out_of_fold.csv` has the prediction for every molecule from the network that did not see it,
    `out/intervals.json` the errors of these predictions, which calibrate intervals, and `out/result.json` the result.
    The other arguments are those of `run`; with `resume`, finished folds are kept.

    ```python
    config = RunConfig(data="molecules.csv", target="logS", collection="sp", k=2, epochs=2)
    result = cross_validate(config, Path("folds"), 5)
    print(result["test_mean"], result["test_std"], result["out_of_fold_score"])
    ```
    """
    if is_dataset(config.data):
        raise RunError(
            f"{config.data} has its own splits, which folds would replace: cross-validate your own data, or choose a "
            "split of the dataset (--fold)."
        )
    config = replace(config, folds=folds)
    task = load_task(config) if task is None else with_metric(task, config.metric)
    task = replace(task, splits=splits_of(task, config))
    shared = {"data": asdict(DataFingerprint.of(task, choose_split(task, replace(config, fold=folds))))}
    configs = {fold: replace(config, fold=fold) for fold in range(folds)}

    def summarize(ensemble: Ensemble, task: Task, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
        found = out_of_fold(ensemble, task)
        found.write(out / OUT_OF_FOLD)
        outputs = ensemble.signature.target_scale.encode(found.out)
        Calibration.of(ensemble, outputs[None], found.y, found.folds).save(out)
        common = summary(ensemble, task, results)
        del common["fold"], common["seeds"]
        scores = result_scores({"out_of_fold": found})
        each = {"folds": list(configs), "seed": config.seed, "out_of_fold_score": found.score(found.metric)}
        return {**common, **each, **{key: {**part, **common.get(key, {})} for key, part in scores.items()}}

    options: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "report": report}
    return run_members(configs, EnsembleFolder(out, "fold"), task, summarize, shared=shared, **options)


def write_evaluation(
    folder: Path, task: Task, *, baselines: bool = False, step: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Write what a finished run on molecules has besides its networks: its predictions, baselines and report.

    Also its training molecules, and what calibrates its intervals (`config.calibration`). Returns the scores of the
    baselines by name. Baselines that the folder has are kept. `step` is called after each trained baseline. Without a
    test part, there are no predictions, baselines and report.

    ```python
    config = RunConfig(data="molecules.csv", target="logS", collection="sp", k=2, epochs=2)
    task = load_task(config)
    run(config, Path("run"), task=task)
    write_evaluation(Path("run"), task)                          # run/report.html
    ```
    """
    ensemble, names = load_runs(folder), task.graphs.names
    config, signature, device = ensemble.config, ensemble.signature, resolve(ensemble.config.device)
    assert names is not None
    task = replace(task, splits=splits_of(task, config))
    whole = choose_split(task, config)
    TrainingMolecules.of([names[i] for i in learned_from(whole, config).tolist()], config.clean).save(folder)
    if config.calibration is not None:
        part = calibration_part(task, config)
        outputs = predict_each(ensemble, task, part, device=device)
        Calibration.of(ensemble, outputs, targets(task, part)).save(folder)
    splits, coverage = task.splits[: config.folds], None
    if whole.test.numel():
        outputs, splits = predict_each(ensemble, task, whole.test, device=device), (whole,)
        out = signature.target_scale.decode(combine(outputs, signature.target))
        Predictions.of(task, whole.test, out, signature=signature).write(folder / TEST)
        if (folder / INTERVALS).exists():
            coverage = Calibration.load(folder, ensemble).coverage(outputs, targets(task, whole.test))
    elif config.folds is None:
        return {}
    found = read_held_out(folder, signature)
    if baselines and not (folder / "baselines.json").exists():
        start, seed = monotonic(), config.seed
        trained = fit_baselines(task, splits, seed=seed, clean=config.clean, signature=signature, step=step)
        found.write(folder / BASELINES, trained)
        document = {
            "trained_on": "the training and the validation part",
            "seed": seed,
            "seconds": monotonic() - start,
            "settings": SETTINGS,
            "scores": {name: finite(dict(one.scores)) for name, one in trained.items()},
        }
        write_file(folder / "baselines.json", json.dumps(document, indent=1) + "\n")
    simple = read_baselines(folder, signature)
    write_report(folder, task, ensemble, splits, found, simple, coverage)
    return {name: one.scores for name, one in simple.items()}


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
