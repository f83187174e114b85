"""Predictions next to their targets: as a CSV, their scores, and bootstrap samples of the scores."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.metrics import OF_KIND, MetricInfo, score_targets
from pathnn.data.task import TargetScale, Task
from pathnn.files import write_csv
from pathnn.inference.predictor import free_name, prediction_columns
from pathnn.training.checkpoint import TaskSignature
from pathnn.training.errors import CheckpointError
from pathnn.training.run_folder import writing

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for graphs of a user's file, and their targets.

    Attributes:
        signature: the kind and names of the targets.
        rows: the row of each graph in the file, counted from 1.
        smiles: the molecules; empty for other graphs.
        y: the targets, `[graphs, targets]`, or the classes, `[graphs]`.
        out: the predicted values or logits, `[graphs, outputs]`, float64.
        folds: the fold that held out each graph; empty for a test part.
    """

    signature: TaskSignature
    rows: tuple[int, ...]
    smiles: tuple[str, ...]
    y: Tensor
    out: Tensor
    folds: tuple[int, ...] = ()
    _resampled: dict[str, Array] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        task: Task, index: Tensor, out: Tensor, *, signature: TaskSignature | None = None, fold: int | None = None
    ) -> Predictions:
        """Return the predictions `out` (values or logits) for the graphs `index` of a task."""
        rows, names, y, graphs = task.rows(), task.graphs.names or (), task.graphs.y, index.tolist()
        assert y is not None
        return Predictions(
            signature or TaskSignature.of(task, TargetScale()),
            tuple(rows[i] for i in graphs),
            tuple(names[i] for i in graphs) if names else (),
            y[index.to(y.device)].cpu(),
            out.double().cpu(),
            () if fold is None else (fold,) * len(graphs),
        )

    @staticmethod
    def join(parts: Sequence[Predictions]) -> Predictions:
        """Return the predictions of several parts, in the order of their rows."""
        if len(parts) == 1:
            return parts[0]
        joined = [[x for one in parts for x in vars(one)[name]] for name in ("rows", "smiles", "folds")]
        order = sorted(range(len(joined[0])), key=joined[0].__getitem__)
        rows, smiles, folds = (tuple(values[i] for i in order) if values else () for values in joined)
        y, out = torch.cat([one.y for one in parts])[order], torch.cat([one.out for one in parts])[order]
        return Predictions(parts[0].signature, rows, smiles, y, out, folds)

    @cached_property
    def each_target(self) -> dict[str, Predictions]:
        """Return the predictions of each target by name, for the graphs where it is known; none of classes."""
        found: dict[str, Predictions] = {}
        for i, name in enumerate(self.target_columns() if self.signature.target != "class" else ()):
            y = self.y.reshape(self.out.shape)[:, i : i + 1]
            known = (~y[:, 0].isnan()).nonzero()[:, 0].tolist()
            signature = replace(self.signature, classes=[name], out_channels=1, target_mean=(), target_std=())
            rows, smiles, folds = (tuple(of[j] for j in known if of) for of in (self.rows, self.smiles, self.folds))
            found[name] = Predictions(signature, rows, smiles, y[known], self.out[known, i : i + 1], folds)
        return found

    @property
    def targets(self) -> dict[str, float]:
        """Return the score of each of several targets by name; none for one target."""
        return {name: one["_"].score(self.metric) for name, one in by_target({"_": self}).items()}

    @property
    def metrics(self) -> dict[str, MetricInfo]:
        """Return the metrics of the kind of target by name."""
        return OF_KIND[self.signature.target]

    @property
    def metric(self) -> str:
        """Return the name of the metric of training."""
        return self.signature.metric or next(iter(self.metrics))

    @property
    def scores(self) -> dict[str, float]:
        """Return all metrics by name, in their units; NaN if one is not defined."""
        return {name: self.score(name) for name in self.metrics}

    def score(self, metric: str, index: Array | None = None) -> float:
        """Return a metric by name, of all predictions or of some; several targets have the mean of theirs."""
        out, y, info = self.out, self.y, self.metrics[metric]
        if index is not None:
            out, y = out[index], y[index]
        if self.signature.target == "class":
            return float(info.score(out, y)) * info.scale
        return float(score_targets(info.score, out, y.reshape(out.shape)).nanmean()) * info.scale

    def resampled(self, metric: str) -> Array:
        """Return a metric on 1000 bootstrap samples of the graphs, the same for every model; NaN for too few graphs."""
        if len(self.rows) < LEAST:
            return np.full(1000, math.nan)
        if metric in self._resampled:
            return self._resampled[metric]
        scores: list[float] = []
        for index in samples(len(self.rows)):
            if metric in WEIGHTED:
                y = self.y.reshape(self.out.shape).double().numpy()
                weights = np.stack([np.bincount(row, minlength=index.shape[1]) for row in index]).astype(np.float64)
                found = weighted_scores(metric, self.out.numpy(), y, weights)
                scores += (found * self.metrics[metric].scale).tolist()
            else:
                scores += [self.score(metric, row) for row in index]
        self._resampled[metric] = np.array(scores)
        return self._resampled[metric]

    def columns(self, prefix: str = "") -> dict[str, list[Any]]:
        """Return the columns of the predictions, as `pathnn predict` names them."""
        found = prediction_columns(self.signature.target_scale.encode(self.out), self.signature)
        return {prefix + name: list(values) for name, values in found.items()}

    def write(self, path: Path, others: dict[str, Predictions] | None = None) -> None:
        """Write a CSV: rows, molecules, targets, predictions and folds; of `others`, only the predictions."""
        known: dict[str, list[Any]] = {"row": list(self.rows)}
        if self.smiles:
            known["smiles"] = list(self.smiles)
        known |= _unique(self.target_columns(), known)
        models = {"": self} if others is None else {f"{name}: ": one for name, one in others.items()}
        for prefix, one in models.items():
            known |= _unique(one.columns(prefix), known)
        if self.folds:
            known |= _unique({"fold": list(self.folds)}, known)
        with writing(path):
            write_csv(path, [*known], zip(*known.values(), strict=True))

    def target_columns(self) -> dict[str, list[Any]]:
        """Return the columns of the targets; empty text for an unknown one."""
        names = self.signature.classes
        if self.signature.target == "class":
            return {"target": [names[i] if names else i for i in self.y.tolist()]}
        columns = self.y.reshape(len(self.rows), -1).T.tolist()
        titles = names if len(names) == len(columns) else [f"target_{i}" for i in range(len(columns))]
        return {
            title: ["" if math.isnan(value) else value for value in column]
            for title, column in zip(titles, columns, strict=True)
        }


def by_target(models: Mapping[str, Predictions]) -> dict[str, dict[str, Predictions]]:
    """Return the predictions of each model for each of several targets, by target and model; none for one target."""
    names = [*next(iter(models.values())).each_target]
    return {name: {key: one.each_target[name] for key, one in models.items()} for name in names if len(names) > 1}


def _unique(columns: dict[str, list[Any]], taken: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {free_name(name, taken): values for name, values in columns.items()}


def read_predictions(path: Path, signature: TaskSignature) -> dict[str, Predictions]:
    """Read a CSV that `Predictions.write` wrote: the predictions of each model, "" for those of one model."""
    try:
        header, *rows = list(csv.reader(io.StringIO(path.read_text())))
        columns = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
        numbers = tuple(int(row) for row in columns["row"])
        first = 2 if header[1] == "smiles" else 1
        targets = 1 if signature.target == "class" else signature.out_channels
        columns_of_one = list(prediction_columns(torch.zeros(1, signature.out_channels), signature))
        widths, plain = len(columns_of_one), columns_of_one[0].rstrip("_")
        folds = tuple(map(int, columns[header[-1]])) if header[-1].rstrip("_") == "fold" else ()
        y = _read_targets([columns[name] for name in header[first : first + targets]], signature)
        smiles = columns["smiles"] if first == 2 else ()
        known, found = Predictions(signature, numbers, smiles, y, torch.zeros(0), folds), {}
        for start in range(first + targets, len(header) - bool(folds), widths):
            names = header[start : start + widths]
            model = names[0].rstrip("_").removesuffix(plain).removesuffix(": ")
            out = _read_outputs([columns[name] for name in names], signature)
            found[model] = replace(known, out=out, _resampled={})
        return found
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}): train again, or restore the file.") from error


def _read_targets(columns: Sequence[Sequence[str]], signature: TaskSignature) -> Tensor:
    if signature.target == "class":
        number = {name: i for i, name in enumerate(signature.classes)}
        return torch.tensor([number[value] if number else int(value) for value in columns[0]])
    values = [[float(value) if value else math.nan for value in column] for column in columns]
    return torch.tensor(values, dtype=torch.float64).T


def _read_outputs(columns: Sequence[Sequence[str]], signature: TaskSignature) -> Tensor:
    """Return values or logits from columns of predictions."""
    numbers = columns[1:] if signature.target == "class" else columns
    values = torch.tensor([[float(value) for value in column] for column in numbers], dtype=torch.float64).T
    if signature.target == "regression":
        return values
    return values.log() if signature.target == "class" else logits(values)


def logits(probability: Tensor) -> Tensor:
    """Return finite logits of probabilities in float64."""
    return probability.clamp(1e-12, 1 - 1e-12).logit()


LEAST = 10
"""Fewer graphs have no bootstrap samples: theirs are too alike, and their interval would be too short."""

AT_ONCE = 4_000_000
"""How many numbers the samples that are computed at once have."""


def samples(count: int, *, resamples: int = 1000, seed: int = 0) -> Iterator[Array]:
    """Yield random numbers of graphs with replacement, `[some, count]`, until there are `resamples` rows."""
    random, size = np.random.default_rng(seed), max(1, AT_ONCE // max(count, 1))
    for start in range(0, resamples, size):
        yield random.integers(count, size=(min(size, resamples - start), count))


def _roc_auc(out: Array, y: Array, weights: Array) -> Array:
    positive, negative = _by_threshold(out, y, weights)
    above = np.cumsum(positive, axis=1) - positive / 2  # positives with a larger output; half of the equal ones
    return (negative * above).sum(axis=1) / (positive.sum(axis=1) * negative.sum(axis=1))


def _average_precision(out: Array, y: Array, weights: Array) -> Array:
    positive, negative = _by_threshold(out, y, weights)
    true, total = np.cumsum(positive, axis=1), np.cumsum(positive + negative, axis=1)
    return (positive * true / np.maximum(total, 1)).sum(axis=1) / positive.sum(axis=1)


def _by_threshold(out: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """Return the weights of positives and negatives for each output, from large to small; equal outputs together."""
    order = np.argsort(-out, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(out[order]) != 0))
    sums = [np.add.reduceat(weights[:, order] * part, starts, axis=1) for part in (y[order] == 1, y[order] != 1)]
    return sums[0], sums[1]


WEIGHTED: dict[str, Callable[[Array, Array, Array], Array]] = {"roc-auc": _roc_auc, "ap": _average_precision}
"""Metrics of one label by name, as functions of outputs, targets and weights `[samples, graphs]`."""


def weighted_scores(metric: str, out: Array, y: Array, weights: Array) -> Array:
    """Return the mean over targets of a metric for each sample; NaN targets are unknown, as in `data.metrics`."""
    each = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for i in range(out.shape[1]):
            known = ~np.isnan(y[:, i])
            if known.any():
                each.append(WEIGHTED[metric](out[known, i], y[known, i], weights[:, known]))
    if not each:
        return np.full(len(weights), math.nan)
    total = (~np.isnan(each)).sum(axis=0)
    return np.where(total > 0, np.nansum(each, axis=0) / np.maximum(total, 1), math.nan)


def interval(values: Array) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile, without samples in which a metric is not defined."""
    defined = values[~np.isnan(values)]
    low, high = np.percentile(defined, [2.5, 97.5]).tolist() if defined.size else (math.nan, math.nan)
    return low, high


@dataclass(frozen=True)
class Difference:
    """The score of a second model minus that of a first one on the same molecules, and its 95 % interval.

    `better` is the share of the samples with a defined metric in which the second model is better; NaN for none.
    """

    value: float
    low: float
    high: float
    better: float

    @property
    def distinguishable(self) -> bool:
        """Return whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def paired_difference(first: Predictions, second: Predictions, metric: str) -> Difference:
    """Compare two models on the same molecules, with 1000 bootstrap samples of them."""
    samples = second.resampled(metric) - first.resampled(metric)
    maximize = first.metrics[metric].maximize
    low, high = interval(samples)
    defined = samples[~np.isnan(samples)]
    better = float(((defined > 0) if maximize else (defined < 0)).mean()) if defined.size else math.nan
    return Difference(second.score(metric) - first.score(metric), low, high, better)
