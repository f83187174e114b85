"""The accuracy tables of the paper as experiments: which runs each of them is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from pathnn.paths.options import COLLECTIONS, Collection
from pathnn.training.config import RunConfig
from pathnn.training.recipes import csl, exp, molhiv, peptides_func, tu, zinc
from pathnn_reproduction.experiment import Experiment
from pathnn_reproduction.experiments.baselines import BASELINES, baseline_run
from pathnn_reproduction.planned import RunSpec

TU_ORDER = ("enzymes", "nci1", "proteins", "dd", "imdb-binary", "imdb-multi")


GRID = tuple(product((32, 64), (0.0, 0.5)))
"""Hidden sizes and dropout rates that are tried on each fold of a TUDataset."""


FOLDS, ASSESSED = 10, (1, 2, 3)
"""Folds of a TUDataset, and the seeds of the winner's runs; the grid itself is run with seed 0."""


UNTRAINED: dict[str, Any] = {"precision": "64-true", "epochs": 1, "patience": None, "batch_size": 64}
"""Of a config that only describes a network: nothing is trained."""


@cache
def experiment(name: str) -> Experiment:
    """An experiment by its name.

    >>> experiment("zinc").title
    'ZINC12K (table 5)'
    >>> experiment("mnist")
    Traceback (most recent call last):
    ...
    ValueError: 'mnist' is no target: expected one of zinc, molhiv, peptides, tu, synthetic.
    """
    if name not in TARGETS:
        raise ValueError(f"{name!r} is no target: expected one of {', '.join(TARGETS)}.")
    title, runs, maximize = TARGETS[name]
    return Experiment(name, title, tuple(runs()), maximize)


def _seeds(target: str, make: Callable[[Collection], RunConfig], count: int) -> Iterator[RunSpec]:
    """A molecular table: every collection, then every baseline, with `count` seeds each."""
    for collection, seed in product(COLLECTIONS, range(count)):
        yield _pathnn(target, replace(make(collection), seed=seed))
    data = make("sp").data
    for model, seed in product(BASELINES, range(count)):
        yield _baseline(target, baseline_run(model, data, seed=seed))


def _zinc() -> Iterator[RunSpec]:
    return _seeds("zinc", zinc, 10)


def _molhiv() -> Iterator[RunSpec]:
    return _seeds("molhiv", molhiv, 10)


def _peptides() -> Iterator[RunSpec]:
    """Peptides-func alone: the targets of Peptides-struct could not be had."""
    yield from _seeds("peptides", peptides_func, 4)
    for collection, seed in product(COLLECTIONS, range(4)):
        yield _released(_pathnn("peptides", replace(peptides_func(collection, released=True), seed=seed)))


def tu_cells(data: str) -> list[tuple[Collection, int]]:
    """The PathNNs of the table: at K = 1 all collections are the same; IMDB has no shortest path of length 3.

    >>> tu_cells("imdb-binary")
    [('sp', 1), ('sp', 2), ('sp+', 2), ('ap', 2), ('ap', 3)]
    """
    cells: list[tuple[Collection, int]] = [("sp", 1), *((c, k) for k in (2, 3) for c in COLLECTIONS)]
    return [(c, k) for c, k in cells if not (data.startswith("imdb") and k == 3 and c != "ap")]


def _tu() -> Iterator[RunSpec]:
    for data in TU_ORDER:
        for (collection, k), fold in product(tu_cells(data), range(FOLDS)):
            for (hidden, dropout), seed in _grid():
                config = tu(data, collection, k=k, fold=fold, hidden_channels=hidden, dropout=dropout)
                yield _pathnn("tu", replace(config, seed=seed), grid=_grid_name(hidden, dropout), assess=seed > 0)
    for data, model, fold in product(TU_ORDER, BASELINES, range(FOLDS)):
        for (hidden, dropout), seed in _grid():
            config = baseline_run(model, data, fold=fold, hidden_channels=hidden, dropout=dropout, seed=seed)
            yield _baseline("tu", config, grid=_grid_name(hidden, dropout), assess=seed > 0)


def _grid() -> Iterator[tuple[tuple[int, float], int]]:
    """First every point with seed 0, then every point with the seeds of the assessment."""
    yield from ((point, 0) for point in GRID)
    yield from product(GRID, ASSESSED)


def _grid_name(hidden: int, dropout: float) -> str:
    return f"hidden={hidden},dropout={dropout:g}"


def _synthetic() -> Iterator[RunSpec]:
    for collection, fold in product(COLLECTIONS, range(5)):
        yield _pathnn("synthetic", csl(collection, fold=fold))
    for fold in range(5):
        yield _baseline("synthetic", baseline_run("gin", "csl", fold=fold))
    for data in ("exp", "cexp"):
        for collection, fold in product(COLLECTIONS, range(4)):
            config = exp(collection, fold=fold, name=data)
            yield _pathnn("synthetic", config)
            yield _released(_pathnn("synthetic", replace(config, variant="released")))
        for fold in range(4):
            yield _baseline("synthetic", baseline_run("gin", data, fold=fold))
    yield from _isomorphism()


def _isomorphism() -> Iterator[RunSpec]:
    """EXP-Iso: the EXP file, untrained networks without a head, five seeds."""
    headless = {"head": None, "out_channels": None}
    for collection, seed in product(COLLECTIONS, range(5)):
        config = replace(exp(collection, name="exp"), preset="exp-iso", options=headless, seed=seed, **UNTRAINED)
        yield replace(_pathnn("synthetic", config), dataset="exp-iso", kind="isomorphism")
    for seed in range(5):
        config = baseline_run("gin", "exp", seed=seed)
        options = {**config.options, **headless, "hidden_channels": 16}
        config = replace(config, options=options, **UNTRAINED)
        yield replace(_baseline("synthetic", config), dataset="exp-iso", kind="isomorphism")


def _pathnn(target: str, config: RunConfig, *, grid: str = "", assess: bool = False) -> RunSpec:
    return RunSpec(
        target=target, model="pathnn", dataset=config.data, collection=config.collection, k=config.k,
        fold=config.fold, seed=config.seed, grid=grid, assess=assess, config=config,
    )  # fmt: skip


def _released(run: RunSpec) -> RunSpec:
    """A run by the authors' code where that departs from the text, as a model of its own."""
    return replace(run, model="pathnn-released")


def _baseline(target: str, config: RunConfig, *, grid: str = "", assess: bool = False) -> RunSpec:
    return RunSpec(
        target=target, model=config.model, dataset=config.data, collection=None, k=None,
        fold=config.fold, seed=config.seed, grid=grid, assess=assess, config=config,
    )  # fmt: skip


TARGETS: dict[str, tuple[str, Callable[[], Iterator[RunSpec]], bool]] = {
    "zinc": ("ZINC12K (table 5)", _zinc, False),
    "molhiv": ("ogbg-molhiv (table 4)", _molhiv, True),
    "peptides": ("Peptides (table 3)", _peptides, True),
    "tu": ("TUDatasets (table 2)", _tu, True),
    "synthetic": ("CSL and EXP (table 1)", _synthetic, True),
}
"""By name: title, runs, and whether a larger validation score is better."""
