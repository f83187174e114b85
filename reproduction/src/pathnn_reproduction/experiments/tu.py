"""TUDatasets (table 2): ten folds, a grid of four points for each fold, three runs of the winner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from pathnn.paths.options import COLLECTIONS, Collection
from pathnn.training import recipes
from pathnn_reproduction.experiments.baselines import BASELINES, baseline_run
from pathnn_reproduction.spec import RunSpec, training_spec
from pathnn_reproduction.tables import accuracy_tables

tables = accuracy_tables

DATASETS = ("enzymes", "nci1", "proteins", "dd", "imdb-binary", "imdb-multi")

GRID = tuple(product((32, 64), (0.0, 0.5)))
"""Hidden sizes and dropout rates to choose from on each fold."""

FOLDS, ASSESSED = 10, (1, 2, 3)
"""Number of folds, and the seeds of the winner's runs; the runs of the grid have seed 0."""


def models_of(data: str) -> list[tuple[Collection, int]]:
    """Return the PathNNs of the table: at K = 1 all collections agree; IMDB has no shortest path of length 3.

    >>> models_of("imdb-binary")
    [('sp', 1), ('sp', 2), ('sp+', 2), ('ap', 2), ('ap', 3)]
    """
    models: list[tuple[Collection, int]] = [("sp", 1), *((c, k) for k in (2, 3) for c in COLLECTIONS)]
    return [(c, k) for c, k in models if not (data.startswith("imdb") and k == 3 and c != "ap")]


def tu() -> Iterator[RunSpec]:
    """Yield the runs of table 2."""
    for data in DATASETS:
        for (collection, k), fold in product(models_of(data), range(FOLDS)):
            for (hidden, dropout), seed in _grid():
                config = recipes.tu(data, collection, k=k, fold=fold, hidden_channels=hidden, dropout=dropout)
                yield training_spec("tu", replace(config, seed=seed), grid=_name(hidden, dropout), assess=seed > 0)
    for data, model, fold in product(DATASETS, BASELINES, range(FOLDS)):
        for (hidden, dropout), seed in _grid():
            config = baseline_run(model, data, fold=fold, hidden_channels=hidden, dropout=dropout, seed=seed)
            yield training_spec("tu", config, grid=_name(hidden, dropout), assess=seed > 0)


def _grid() -> Iterator[tuple[tuple[int, float], int]]:
    """Yield every point with seed 0, then every point with the seeds of the assessment."""
    yield from ((point, 0) for point in GRID)
    yield from product(GRID, ASSESSED)


def _name(hidden: int, dropout: float) -> str:
    return f"hidden={hidden},dropout={dropout:g}"
