"""Compare runs on the same test molecules: their scores, and differences with paired bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from pathnn.checks import check_choice
from pathnn.evaluation.held_out import read_baselines, read_held_out
from pathnn.evaluation.predictions import Difference, Predictions, by_target, interval, paired_difference
from pathnn.inference.predictor import free_name, load_runs
from pathnn.training.errors import MismatchError


@dataclass(frozen=True)
class ComparedModel:
    """A model of a comparison: its score with a 95 % interval, and its difference to the first model."""

    name: str
    score: float
    low: float
    high: float
    difference: Difference | None


@dataclass(frozen=True)
class Comparison:
    """The scores of models on the same molecules, and of several targets those of each by name (`targets`)."""

    metric: str
    maximize: bool
    molecules: int
    models: tuple[ComparedModel, ...]
    targets: Mapping[str, Comparison] = field(default_factory=dict)


def compare_runs(runs: Sequence[Path], *, metric: str | None = None) -> Comparison:
    """Compare the test scores of runs, and of the baselines that they hold, with the first run.

    A run is a folder of a single network, of several seeds, or of folds (`out_of_fold.csv`). All must have predicted
    the same molecules. `metric` is that of the first run by default.

    ```python
    found = compare_runs([Path("ap"), Path("sp")])
    for model in found.models:
        print(model.name, model.score, model.difference)
    ```
    """
    models: dict[str, Predictions] = {}
    for run in runs:
        signature = load_runs(run).signature
        found = read_held_out(run, signature)
        first = next(iter(models.values()), found)
        _check_same(str(runs[0]), first, str(run), found)
        models[free_name(str(run), models, " (again)")] = found
        for name, simple in read_baselines(run, signature).items():
            if not any(torch.equal(simple.out, one.out) for one in models.values()):
                own = name if name not in models else f"{name} ({run})"
                models[free_name(own, models, " (again)")] = simple
    first = next(iter(models.values()))
    metric = metric or first.metric
    check_choice("metric", metric, tuple(first.metrics))
    return _compare(models, metric)


def _compare(models: Mapping[str, Predictions], metric: str) -> Comparison:
    first, compared = next(iter(models.values())), []
    for name, one in models.items():
        low, high = interval(one.resampled(metric))
        difference = None if one is first else paired_difference(first, one, metric)
        compared.append(ComparedModel(name, one.score(metric), low, high, difference))
    info = first.metrics[metric]
    targets = {name: _compare(each, metric) for name, each in by_target(models).items()}
    return Comparison(info.name, info.maximize, len(first.rows), tuple(compared), targets)


def _check_same(one: str, first: Predictions, other: str, second: Predictions) -> None:
    """Raise `MismatchError` unless both predict the same targets of the same molecules."""
    mine, theirs = first.signature, second.signature
    if (mine.target, mine.classes) != (theirs.target, theirs.classes):
        raise MismatchError(
            f"{one} predicts {mine.target} ({', '.join(mine.classes)}), and {other} {theirs.target} "
            f"({', '.join(theirs.classes)}): expected runs with the same targets."
        )
    if (first.smiles, first.smiles or first.rows) != (second.smiles, second.smiles or second.rows):
        shared = len({*first.smiles} & {*second.smiles})
        raise MismatchError(
            f"{one} has {len(first.rows)} test molecules and {other} {len(second.rows)}, of which they share {shared}: "
            "scores can only be compared on the same molecules. Train both on one file with the same split "
            "(--split-by, --split-seed, --folds)."
        )
    if not torch.allclose(first.y, second.y, rtol=0, atol=0, equal_nan=True):
        raise MismatchError(f"the targets of {one} and {other} differ: expected runs on the same data.")
