"""Runs become cells: mean and deviation of ours, beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from pathnn_reproduction.experiment import Experiment
from pathnn_reproduction.ledger import Ledger, Line
from pathnn_reproduction.planned import RunSpec
from pathnn_reproduction.published import PATHNNS, TABLES, Cell, PublishedTable, Score


@dataclass(frozen=True)
class Measured:
    """Ours in one cell.

    Attributes:
        mean, std: over seeds, or over folds where there are folds; `std` is None for one alone.
        count, planned: how many seeds or folds the mean is over, and how many the protocol asks for.
        unit: "seeds" or "folds".
        runs: trainings behind the number, those that chose the grid points included.
        seconds: of all these trainings together.
        devices: where they ran.
    """

    mean: float
    std: float | None
    count: int
    planned: int
    unit: str
    runs: int
    seconds: float
    parameters: int | None
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """A cell of a table: the paper's number, ours, or why one is missing."""

    dataset: str
    model: str
    collection: str | None
    k: int | None
    paper: Score
    ours: Measured | None

    def difference(self, *, maximize: bool) -> float | None:
        """How much better ours is, in the paper's standard deviations; None where that means nothing."""
        if self.ours is None or self.paper.mean is None or not self.paper.std:
            return None
        return (self.ours.mean - self.paper.mean) / self.paper.std * (1 if maximize else -1)


def compare(experiment: Experiment, ledger: Ledger) -> dict[str, list[Compared]]:
    """By dataset, the rows of the paper's table with ours, then baselines of ours that it does not have."""
    found: dict[str, list[Compared]] = {}
    for table in TABLES.values():
        if table.target == experiment.name:
            found[table.dataset] = [_compare(experiment, ledger, table, cell) for cell in _cells(experiment, table)]
    return found


def _cells(experiment: Experiment, table: PublishedTable) -> list[Cell]:
    """The rows: other methods, baselines of ours, PathNNs as in the text, PathNNs as released."""
    ours = dict.fromkeys((run.model, run.collection, run.k) for run in experiment.runs if run.dataset == table.dataset)
    everything = dict.fromkeys([*table.rows, *ours])
    return sorted(everything, key=lambda cell: PATHNNS.index(cell[0]) if cell[0] in PATHNNS else -1)


def _compare(experiment: Experiment, ledger: Ledger, table: PublishedTable, cell: Cell) -> Compared:
    runs = [run for run in experiment.runs if run.cell == (table.dataset, *cell)]
    paper = table.rows.get(cell, Score(note="not in the paper"))
    return Compared(table.dataset, *cell, paper, measure(experiment, runs, ledger))


def measure(experiment: Experiment, runs: Sequence[RunSpec], ledger: Ledger) -> Measured | None:
    """Ours in the cell of `runs`, None before the first run that counts.

    Where grid points are chosen, only the winners' runs count. A fold's score is the mean of its runs; a fold
    that lacks one does not count.
    """
    done = experiment.done(runs, ledger)
    chosen = any(run.assess for run in runs)
    several = len({run.fold for run in runs}) > 1
    seeds = {run.seed for run in runs if run.assess or not chosen}
    counting = [(run, line) for run, line in done if run.assess or not chosen]
    scores = [line["test"] for _, line in counting]
    if several:
        folds = sorted({run.fold for run, _ in counting})
        by_fold = [[line["test"] for run, line in counting if run.fold == fold] for fold in folds]
        scores = [fmean(tests) for tests in by_fold if len(tests) == len(seeds)]
    if not scores:
        return None
    return Measured(
        mean=fmean(scores),
        std=stdev(scores) if len(scores) > 1 else None,
        count=len(scores),
        planned=len({run.fold if several else run.seed for run in runs}),
        unit="folds" if several else "seeds",
        runs=len(done),
        seconds=sum(line["seconds"] for _, line in done),
        parameters=max((line["parameters"] for _, line in counting if line.get("parameters")), default=None),
        devices=tuple(sorted({line["device"] for _, line in done})),
    )


def best_line(experiment: Experiment, runs: Sequence[RunSpec], ledger: Ledger) -> tuple[RunSpec, Line] | None:
    """The finished run of the best validation score (the first of equal ones), None where there is none."""
    done = experiment.done(runs, ledger)
    sign = 1 if experiment.maximize else -1
    return max(done, key=lambda item: sign * item[1]["val"], default=None)


def plain_cell(cell: Compared, *, maximize: bool) -> dict[str, Any]:
    """A cell as plain values."""
    ours = cell.ours
    return {
        "dataset": cell.dataset, "model": cell.model, "collection": cell.collection, "k": cell.k,
        "paper": cell.paper.mean, "paper_std": cell.paper.std, "paper_note": cell.paper.note,
        "ours": None if ours is None else ours.mean, "ours_std": None if ours is None else ours.std,
        "count": 0 if ours is None else ours.count, "unit": None if ours is None else ours.unit,
        "runs": 0 if ours is None else ours.runs, "seconds": 0.0 if ours is None else ours.seconds,
        "difference": cell.difference(maximize=maximize),
    }  # fmt: skip
