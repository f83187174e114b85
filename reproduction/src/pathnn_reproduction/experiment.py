"""An experiment: a list of independent runs, and which of them are to be done now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pathnn_reproduction.ledger import Ledger, Line
from pathnn_reproduction.planned import RunSpec


@dataclass(frozen=True)
class Experiment:
    """A target of `pathnn reproduce`.

    Attributes:
        name: the target.
        title: what it repeats.
        runs: every run that may be needed; those that assess a grid point are done for the winner alone.
        maximize: whether a larger validation score is better.
    """

    name: str
    title: str
    runs: tuple[RunSpec, ...]
    maximize: bool

    @cached_property
    def _grids(self) -> dict[tuple[object, ...], list[RunSpec]]:
        """By cell and fold, the runs that choose the grid point."""
        grids: dict[tuple[object, ...], list[RunSpec]] = defaultdict(list)
        for run in self.runs:
            if not run.assess:
                grids[(run.cell, run.fold)].append(run)
        return grids

    def winner(self, run: RunSpec, ledger: Ledger) -> str | None:
        """The grid point that won the fold of `run`, by the best validation score; None while one is missing.

        Ties go to the first in the order of the grid.
        """
        found = [(choice.grid, ledger.find(choice)) for choice in self._grids[(run.cell, run.fold)]]
        if any(line is None for _, line in found):
            return None
        sign = 1 if self.maximize else -1
        scores = {grid: sign * line["val"] for grid, line in found if line is not None}
        return max(scores, key=lambda grid: scores[grid])

    def wanted(self, runs: Iterable[RunSpec], ledger: Ledger) -> list[RunSpec]:
        """Of some runs, those that the protocol asks for now: all but those that wait for a grid, or have lost."""
        return [run for run in runs if not run.assess or self.winner(run, ledger) == run.grid]

    def missing(self, runs: Iterable[RunSpec], ledger: Ledger) -> list[RunSpec]:
        """Of some runs, those that are wanted and not done."""
        return [run for run in self.wanted(runs, ledger) if ledger.find(run) is None]

    def done(self, runs: Iterable[RunSpec], ledger: Ledger) -> list[tuple[RunSpec, Line]]:
        """Of some runs, those that are wanted and done, with their results."""
        found = [(run, ledger.find(run)) for run in self.wanted(runs, ledger)]
        return [(run, line) for run, line in found if line is not None]


def slots(runs: Sequence[RunSpec]) -> int:
    """How many trainings the protocol asks for."""
    return len({run.slot for run in runs})
