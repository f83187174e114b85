"""Predict the molecules that a run did not train on, and read such predictions."""

from __future__ import annotations

from pathlib import Path

from pathnn.data.task import Split, Task
from pathnn.device import resolve
from pathnn.evaluation.predictions import Predictions, read_predictions
from pathnn.training.checkpoint import TaskSignature
from pathnn.training.ensemble import Ensemble, combine, predict_each
from pathnn.training.errors import RunFolderError
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
