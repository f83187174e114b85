"""Train usual models on fingerprints and descriptors of the same molecules, and score them on the same test part."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.readers.descriptors import rdkit_descriptors
from pathnn.data.readers.molecules import BITS, RADIUS, Clean, clean_smiles, morgan
from pathnn.data.task import Split, Task
from pathnn.evaluation.predictions import Array, Predictions, logits
from pathnn.training.checkpoint import TaskSignature
from pathnn.training.errors import RunError

FOREST: dict[str, Any] = {"n_estimators": 500, "min_samples_leaf": 1, "n_jobs": -1}

BOOSTING: dict[str, Any] = {
    "n_estimators": 500, "learning_rate": 0.05, "n_jobs": -1, "verbose": -1, "deterministic": True,
    "force_row_wise": True,
}  # fmt: skip

SETTINGS: dict[str, Any] = {
    "random forest": FOREST,
    "LightGBM": BOOSTING,
    "Morgan": {"radius": RADIUS, "size": BITS, "counts": True},
    "descriptors": "all of rdkit.Chem.Descriptors; a missing value is the median of the training part",
}
"""All settings of the baselines. Other options are the defaults of scikit-learn and LightGBM."""

MODELS = ("random forest", "LightGBM")

TRIVIAL = "mean of the training targets"


def fit_baselines(
    task: Task,
    splits: Split | Sequence[Split],
    *,
    seed: int = 0,
    clean: Clean | None = None,
    signature: TaskSignature | None = None,
    step: Callable[[], None] | None = None,
) -> dict[str, Predictions]:
    """Train a random forest and LightGBM on Morgan counts and on descriptors; return predictions for the test part.

    They are trained on the training and the validation part, since they choose no epoch. Of several splits (folds),
    each has its own models, and the predictions are joined. Each of several targets has its own models. `clean` is how
    the molecules of the task were cleaned. `step` is called after each model. Needs the extra `chem`.

    ```python
    task = load_data("molecules.csv", targets="logS")
    for name, found in fit_baselines(task, task.splits[0]).items():
        print(name, found.scores["mae"])
    ```
    """
    names, y = task.graphs.names, task.graphs.y
    if names is None or y is None or task.target == "none":
        raise RunError(f"{task.name} has no molecules with targets: expected a task of a table of SMILES.")
    smiles = [clean_smiles(name, clean) or name for name in names]
    features = {"Morgan": morgan(smiles).astype(np.float32), "descriptors": rdkit_descriptors(smiles)}
    targets = y.cpu().numpy() if task.target == "class" else y.cpu().numpy().reshape(len(names), -1)
    found: dict[str, Predictions] = {}
    for model in MODELS:
        for kind, x in features.items():
            parts = []
            for fold, split in _numbered(splits):
                known = torch.cat([split.train, split.val]).sort().values.numpy()
                out = _outputs(task, model, *_filled(x, known, split.test.numpy()), targets[known], seed)
                parts.append(Predictions.of(task, split.test, out, signature=signature, fold=fold))
                if step is not None:
                    step()
            found[f"{model}, {kind}"] = Predictions.join(parts)
    return found


def trivial_predictions(
    task: Task, splits: Split | Sequence[Split], *, signature: TaskSignature | None = None
) -> Predictions:
    """Predict the mean of the targets of the training part, or the frequencies of classes, for each test part."""
    y, parts = task.graphs.y, []
    assert y is not None
    for fold, split in _numbered(splits):
        known = y[split.train.to(y.device)].cpu()
        if task.target == "class":
            out = torch.bincount(known, minlength=task.out_channels).double().add(1e-6).log()
        else:
            mean = known.double().reshape(known.size(0), -1).nanmean(dim=0)
            out = mean if task.target == "regression" else logits(mean)
        out = out.expand(split.test.numel(), -1)
        parts.append(Predictions.of(task, split.test, out, signature=signature, fold=fold))
    return Predictions.join(parts)


def _numbered(splits: Split | Sequence[Split]) -> Iterator[tuple[int | None, Split]]:
    """Yield the number of the fold, or None for a single split, and the split."""
    each = [splits] if isinstance(splits, Split) else splits
    yield from [(None, each[0])] if len(each) == 1 else enumerate(each)


def _filled(x: Array, known: Array, test: Array) -> tuple[Array, Array]:
    """Return the features of the training and the test part, with the medians of the training part for NaN."""
    if not np.isnan(x).any():
        return x[known], x[test]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a descriptor that no molecule has
        median = np.nan_to_num(np.nanmedian(x[known], axis=0))
    filled = np.where(np.isnan(x), median, x)
    return filled[known], filled[test]


def _outputs(task: Task, model: str, train: Array, test: Array, y: Array, seed: int) -> Tensor:
    """Return values or logits for the test part."""
    if task.target == "class":
        probability = torch.zeros(len(test), task.out_channels, dtype=torch.float64)
        fitted = _fit(model, task.target, train, y, seed)
        probability[:, fitted.classes_.astype(int)] = torch.from_numpy(np.asarray(fitted.predict_proba(test)))
        return probability.clamp(min=1e-12).log()
    columns = []
    for column in y.T:
        known = ~np.isnan(column)
        if task.target != "regression" and np.unique(column[known]).size < 2:  # nothing to learn
            columns.append(np.full(len(test), column[known].mean() if known.any() else 0.5))
            continue
        fitted = _fit(model, task.target, train[known], column[known], seed)
        columns.append(fitted.predict(test) if task.target == "regression" else fitted.predict_proba(test)[:, 1])
    out = torch.from_numpy(np.stack(columns, axis=1).astype(np.float64))
    return out if task.target == "regression" else logits(out)


def _fit(model: str, kind: str, x: Array, y: Array, seed: int) -> Any:
    if model == "LightGBM":
        from lightgbm import LGBMClassifier as Classifier, LGBMRegressor as Regressor
    else:
        from sklearn.ensemble import RandomForestClassifier as Classifier, RandomForestRegressor as Regressor
    make = Regressor if kind == "regression" else Classifier
    return make(**SETTINGS[model], random_state=seed).fit(x, y)
