"""The appendix's table "Average number of paths per graph": DD and ZINC12k, the paper's numbers and ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pathnn.data import Task, load_dataset
from pathnn.data.paths import count_per_graph
from pathnn.paths.options import COLLECTIONS, Collection, PathOptions
from pathnn_reproduction.paper import COUNTS

Agreement = Literal["rounded", "truncated", "no"]


@dataclass(frozen=True)
class MeanPaths:
    """One cell of the table: the mean number of paths of exactly `length` edges per graph."""

    dataset: str
    collection: Collection
    length: int
    paper: float
    ours: float
    decimals: int

    @property
    def agrees(self) -> Agreement:
        """Whether ours, rounded or cut off at the decimals that the paper prints, is the paper's number.

        >>> MeanPaths("dd", "ap", 2, paper=6581, ours=6581.6, decimals=0).agrees
        'truncated'
        >>> MeanPaths("zinc", "ap", 2, paper=69.2, ours=69.4, decimals=1).agrees
        'no'
        """
        if round(self.ours, self.decimals) == self.paper:
            return "rounded"
        unit = 10**self.decimals
        return "truncated" if math.floor(self.ours * unit) / unit == self.paper else "no"


def mean_paths(task: Task, collection: Collection, printed: Mapping[str, float], decimals: int) -> list[MeanPaths]:
    """Count the paths of one dataset and collection: every length that the paper reports ("ap 2" in `printed`)."""
    paper = {int(key.split()[1]): value for key, value in printed.items() if key.split()[0] == collection}
    if not paper:
        raise ValueError(f"the paper reports no number of {collection!r} paths of {task.name}.")
    counts = count_per_graph(task.graphs, PathOptions(collection, max(paper)))
    means = counts.double().mean(dim=0).tolist()
    return [
        MeanPaths(task.name, collection, length, paper[length], means[length - 1], decimals) for length in sorted(paper)
    ]


def counts() -> Iterator[list[MeanPaths]]:
    """Yield the table, one dataset and collection after the other; needs the datasets or the network."""
    for name, printed in COUNTS.items():
        task = load_dataset(name)
        for collection in COLLECTIONS:
            yield mean_paths(task, collection, printed["means"], printed["decimals"])


def table_steps() -> int:
    """Return how many items `counts` yields.

    >>> table_steps()
    6
    """
    return len(COUNTS) * len(COLLECTIONS)
