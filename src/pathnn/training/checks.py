"""Check that a task can be trained on: finite numbers, and targets that can be learned."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pathnn.data.metrics import score_targets
from pathnn.data.task import Split, Task
from pathnn.training.errors import NotFiniteError, RunError

COARSE = 0.01
"""Rounding may change targets by at most this share of their standard deviation."""


def check_finite(task: Task) -> None:
    """Raise `NotFiniteError`, which names a graph, if a feature is NaN or infinite."""
    graphs = task.graphs
    for name, values, ptr in (
        ("vertex features", graphs.x, graphs.node_ptr),
        ("edge features", graphs.edge_attr, graphs.edge_ptr),
    ):
        row = _first(values, lambda rows: ~rows.isfinite().all(dim=1))
        if row is not None:
            graph = int(torch.searchsorted(ptr, torch.tensor(row), right=True)) - 1
            raise NotFiniteError(
                f"the {name} of graph {graph} of {task.name}, counted from 0, have a NaN or an infinity: expected "
                "finite numbers. Fix or leave out that graph."
            )


def check_finite_targets(task: Task) -> None:
    """Raise `NotFiniteError`, which names a graph, if a target is NaN or infinite.

    If `task.has_missing_targets`, some targets of a graph may be NaN, but not all.
    """
    y = task.graphs.y
    infinite = _first(y, lambda rows: rows.isinf().any(dim=1))
    if infinite is not None:
        raise NotFiniteError(
            f"the targets of graph {infinite} of {task.name}, counted from 0, have an infinity: expected finite "
            "numbers. Fix or leave out that graph."
        )
    unknown = _first(y, lambda rows: rows.isnan().all(dim=1) if task.has_missing_targets else rows.isnan().any(dim=1))
    if unknown is not None:
        raise NotFiniteError(
            f"the targets of graph {unknown} of {task.name}, counted from 0, are NaN: expected a number"
            f"{' for one of them at least' if task.has_missing_targets else ''}. Leave out that graph."
        )


def check_precision(task: Task, index: Tensor, dtype: torch.dtype) -> None:
    """Raise `RunError` if numbers of type `dtype` are too coarse for the targets of the graphs `index`.

    They are if rounding changes the targets of a regression by more than `COARSE` of their standard deviation.
    """
    y = task.graphs.y
    if task.target != "regression" or y is None:
        return
    given, read = torch.finfo(y.dtype), torch.finfo(dtype)
    number = given if given.eps > read.eps else read
    for i, column in enumerate(y[index.to(y.device)].double().cpu().unbind(dim=1)):
        values = column[~column.isnan()]
        if values.numel() == 0 or values.min() == values.max():
            continue
        deviation = float(values.std(correction=0))
        rounding = max(number.eps / 2 * float(values.abs().max()), number.tiny)
        if rounding > COARSE * deviation:
            name = repr(task.classes[i]) if task.classes else f"number {i}"
            raise RunError(
                f"the target {name} of {task.name} varies by {deviation:.3g} around {float(values.mean()):.10g}, and "
                f"{number.dtype} rounds it by {rounding:.3g}: too coarse to learn from. {_finer(given, read)}"
            )


def _finer(given: torch.finfo, read: torch.finfo) -> str:
    if given.eps > read.eps:
        return "Give the targets as float64, or subtract a constant from them."
    if read.dtype == "float32":
        return "Standardize it (in a config file: standardize: true), or subtract a constant from it."
    return "Subtract a constant from it, or give it in another unit."


def _first(values: Tensor | None, wrong: Callable[[Tensor], Tensor]) -> int | None:
    """Return the first row of floating-point numbers that is wrong, or None."""
    if values is None or not values.is_floating_point() or bool(values.isfinite().all()):
        return None
    found = wrong(values.reshape(values.size(0), -1)).nonzero()
    return int(found[0]) if found.numel() else None


def check_answers(task: Task, split: Split) -> None:
    """Raise `RunError` if a split has nothing to learn, or no best epoch.

    That is so if a binary target is the same in all training or validation graphs, if one of several targets is not
    known for any training graph, or if the metric is not defined for any target of the validation graphs.
    """
    y = task.graphs.y
    if y is None:
        return
    if task.has_missing_targets:
        _check_known(task, y[split.train.to(y.device)])
    if task.target == "multilabel" and task.score is not None:
        truth = y[split.val.to(y.device)]
        if bool(score_targets(task.score, torch.zeros_like(truth), truth).isnan().all()):
            raise RunError(
                f"{task.metric_name} is not defined for any target of the {split.val.numel()} validation graphs of "
                f"{task.name}: expected both 0 and 1 in one of them. Give more data, or another split (--split-seed)."
            )
    if task.target != "binary":
        return
    for part, index in (("training", split.train), ("validation", split.val)):
        if torch.unique(y[index.to(y.device)]).numel() < 2:
            raise RunError(
                f"the {index.numel()} {part} graphs of {task.name} all have the target {float(y[index[0]].item()):g}: "
                "expected both 0 and 1. Give more data, or another split (--split-seed)."
            )


def _check_known(task: Task, y: Tensor) -> None:
    never = y.isnan().all(dim=0).nonzero().flatten().tolist()
    if never:
        name = repr(task.classes[never[0]]) if task.classes else f"number {never[0]}"
        raise RunError(
            f"the target {name} of {task.name} is not known for any of the {y.size(0)} training graphs, so it "
            "cannot be learned. Leave it out, give more data, or another split (--split-seed)."
        )


def check_targets(task: Task) -> None:
    """Raise `RunError` if all targets are the same, or if no two graphs share a class."""
    y = task.graphs.y
    if y is None or len(task.graphs) < 2:
        return
    if task.target == "class" and torch.unique(y).numel() == len(task.graphs):
        raise RunError(f"{task.name} has {len(y)} classes for as many graphs: expected a target that graphs share.")
    first = y.nan_to_num(-torch.inf).amax(dim=0) if task.has_missing_targets else y[:1]
    if task.target != "class" and bool(((y == first) | (y.isnan() & task.has_missing_targets)).all()):
        raise RunError(f"all targets of {task.name} are the same: there is nothing to learn. Name another --target.")
