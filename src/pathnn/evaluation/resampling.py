"""Draw bootstrap samples of graphs, and compute slow metrics on many samples at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

AT_ONCE = 4_000_000
"""How many numbers the samples that are computed at once have."""


def samples(count: int, *, resamples: int = 1000, seed: int = 0) -> Iterator[Array]:
    """Yield random numbers of graphs with replacement, `[some, count]`, until there are `resamples` rows."""
    random, size = np.random.default_rng(seed), max(1, AT_ONCE // max(count, 1))
    for start in range(0, resamples, size):
        yield random.integers(count, size=(min(size, resamples - start), count))


def sample_weights(index: Array) -> Array:
    """Count how often each graph is in each sample.

    >>> sample_weights(np.array([[0, 0, 2]]))
    array([[2., 0., 1.]])
    """
    rows, count = index.shape
    flat = (index + count * np.arange(rows)[:, None]).ravel()
    return np.bincount(flat, minlength=rows * count).reshape(rows, count).astype(np.float64)


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


WEIGHTED: dict[str, Callable[[Array, Array, Array], Array]] = {
    "roc-auc": _roc_auc,
    "ap": _average_precision,
}
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
    defined = ~np.isnan(each)
    total = defined.sum(axis=0)
    return np.where(total > 0, np.nansum(each, axis=0) / np.maximum(total, 1), math.nan)


def interval(values: Array) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile, without samples in which a metric is not defined.

    >>> interval(np.arange(1001.0))
    (25.0, 975.0)
    """
    defined = values[~np.isnan(values)]
    low, high = np.percentile(defined, [2.5, 97.5]).tolist() if defined.size else (math.nan, math.nan)
    return low, high
