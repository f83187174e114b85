"""Cross-validate: train a network for each fold, and predict the fold that it did not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pathnn.data.datasets.registry import is_dataset
from pathnn.data.fingerprints import DataFingerprint
from pathnn.data.targets import with_metric
from pathnn.data.task import Task
from pathnn.evaluation.held_out import out_of_fold
from pathnn.training.config import RunConfig
from pathnn.training.ensemble import Ensemble, Report, run_members, summary
from pathnn.training.errors import RunError
from pathnn.training.run_folder import EnsembleFolder, finite
from pathnn.training.runs import load_task
from pathnn.training.setup import choose_split, splits_of


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
    `out/out_of_fold.csv` has the prediction for every molecule from the network that did not see it, and
    `out/result.json` the result. The other arguments are those of `run`; with `resume`, finished folds are kept.

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
    whole = DataFingerprint.of(task, choose_split(task, replace(config, fold=folds)))
    configs = {fold: replace(config, fold=fold) for fold in range(folds)}

    def summarize(ensemble: Ensemble, task: Task, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
        found = out_of_fold(ensemble, task)
        found.write(out / "out_of_fold.csv")
        common = summary(ensemble, task, results)
        del common["fold"], common["seeds"]
        scores = {"out_of_fold": finite(found.scores), **common["scores"]}
        each = {"folds": list(configs), "seed": config.seed, "out_of_fold_score": found.score(found.metric)}
        return {**common, **each, "scores": scores}

    folder = EnsembleFolder(out, "fold")
    options: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "report": report}
    return run_members(configs, folder, task, summarize, shared={"data": whole.to_dict()}, **options)
