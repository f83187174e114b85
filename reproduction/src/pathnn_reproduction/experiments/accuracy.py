"""The accuracy tables: ZINC12K, ogbg-molhiv, Peptides, TUDatasets, and CSL and EXP (tables 5, 4, 3, 2 and 1).

EXP-Iso, a part of table 1, counts the pairs of graphs that untrained networks confuse.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from pathnn.data.loader import PackedLoader
from pathnn.data.task import Task
from pathnn.device import device_name, resolve
from pathnn.paths.options import COLLECTIONS, Collection
from pathnn.theory.isomorphism import confused_pairs
from pathnn.training import build_model, model_outputs, recipes
from pathnn.training.config import RunConfig
from pathnn_reproduction.experiments.baselines import BASELINES, baseline_run
from pathnn_reproduction.results import Row, provenance, trained_row
from pathnn_reproduction.spec import RunSpec, training_spec
from pathnn_reproduction.tables import accuracy_tables
from pathnn_reproduction.worker import Settings, task_with_paths

tables = accuracy_tables


def zinc() -> Iterator[RunSpec]:
    """Yield the runs of table 5: ten seeds."""
    return _seeds("zinc", recipes.zinc, 10)


def molhiv() -> Iterator[RunSpec]:
    """Yield the runs of table 4: ten seeds."""
    return _seeds("molhiv", recipes.molhiv, 10)


def peptides() -> Iterator[RunSpec]:
    """Yield the runs of table 3: four seeds; Peptides-func also with the released scheduler."""
    yield from _seeds("peptides", recipes.peptides_func, 4)
    for collection, seed in product(COLLECTIONS, range(4)):
        config = replace(recipes.peptides_func(collection, released=True), seed=seed)
        yield training_spec("peptides", config, model="pathnn-released")
    yield from _seeds("peptides", recipes.peptides_struct, 4)


def _seeds(target: str, make: Callable[[Collection], RunConfig], count: int) -> Iterator[RunSpec]:
    """Yield every collection, then every baseline, with `count` seeds each."""
    for collection, seed in product(COLLECTIONS, range(count)):
        yield training_spec(target, replace(make(collection), seed=seed))
    data = make("sp").data
    for model, seed in product(BASELINES, range(count)):
        yield training_spec(target, baseline_run(model, data, seed=seed))


TU_DATASETS = ("enzymes", "nci1", "proteins", "dd", "imdb-binary", "imdb-multi")

GRID = tuple(product((32, 64), (0.0, 0.5)))
"""Hidden sizes and dropout rates to choose from on each of ten folds."""

POINTS = (*product(GRID, [0]), *product(GRID, (1, 2, 3)))
"""Points of the grid with seeds: seed 0 chooses the point, the others are for the winner's runs."""


def tu() -> Iterator[RunSpec]:
    """Yield the runs of table 2: ten folds, a grid of four points for each fold, three runs of the winner."""
    for data in TU_DATASETS:
        for (collection, k), fold, ((hidden, dropout), seed) in product(tu_models(data), range(10), POINTS):
            config = recipes.tu(data, collection, k=k, fold=fold, hidden_channels=hidden, dropout=dropout)
            yield _grid_spec(replace(config, seed=seed), hidden, dropout)
    for data, model, fold, ((hidden, dropout), seed) in product(TU_DATASETS, BASELINES, range(10), POINTS):
        config = baseline_run(model, data, fold=fold, hidden_channels=hidden, dropout=dropout, seed=seed)
        yield _grid_spec(config, hidden, dropout)


def tu_models(data: str) -> list[tuple[Collection, int]]:
    """Return the PathNNs of table 2: at K = 1 all collections agree; IMDB has no shortest path of length 3.

    >>> tu_models("imdb-binary")
    [('sp', 1), ('sp', 2), ('sp+', 2), ('ap', 2), ('ap', 3)]
    """
    models: list[tuple[Collection, int]] = [("sp", 1), *((c, k) for k in (2, 3) for c in COLLECTIONS)]
    return [(c, k) for c, k in models if not (data.startswith("imdb") and k == 3 and c != "ap")]


def _grid_spec(config: RunConfig, hidden: int, dropout: float) -> RunSpec:
    return training_spec("tu", config, grid=f"hidden={hidden},dropout={dropout:g}", assess=config.seed > 0)


UNTRAINED: dict[str, Any] = {"precision": "64-true", "epochs": 1, "patience": None, "batch_size": 64}
"""Options of a config that only describes a network: nothing is trained."""


def synthetic() -> Iterator[RunSpec]:
    """Yield the runs of table 1, then EXP-Iso: the graphs of EXP, untrained networks without a head, five seeds."""
    for collection, fold in product(COLLECTIONS, range(5)):
        yield training_spec("synthetic", recipes.csl(collection, fold=fold))
    for fold in range(5):
        yield training_spec("synthetic", baseline_run("gin", "csl", fold=fold))
    for data in ("exp", "cexp"):
        for collection, fold in product(COLLECTIONS, range(4)):
            config = recipes.exp(collection, fold=fold, name=data)
            yield training_spec("synthetic", config)
            yield training_spec("synthetic", replace(config, variant="released"), model="pathnn-released")
        for fold in range(4):
            yield training_spec("synthetic", baseline_run("gin", data, fold=fold))
    headless = {"head": None, "out_channels": None}
    for collection, seed in product(COLLECTIONS, range(5)):
        config = recipes.exp(collection, name="exp")
        config = replace(config, preset="exp-iso", options=headless, seed=seed, **UNTRAINED)
        yield training_spec("synthetic", config, dataset="exp-iso", run=count_confused_run)
    for seed in range(5):
        config = baseline_run("gin", "exp", seed=seed)
        config = replace(config, options={**config.options, **headless, "hidden_channels": 16}, **UNTRAINED)
        yield training_spec("synthetic", config, dataset="exp-iso", run=count_confused_run)


def count_confused(config: RunConfig, task: Task, device: torch.device | str) -> tuple[int, int]:
    """Return how many pairs the untrained model of `config` confuses, in float64, and its number of parameters.

    The graphs of the task must have the paths that the model reads.
    """
    model = build_model(config, task).double().to(device)
    loader = PackedLoader(task.graphs, batch_size=config.batch_size, device=device)
    rows, pairs = model_outputs(model, loader), task.pair_index().to(device)
    return int(confused_pairs(rows, pairs).sum()), sum(p.numel() for p in model.parameters())


def count_confused_run(spec: RunSpec, settings: Settings) -> Row:
    """Count the confused pairs, as the row of a training run without epochs; `val` repeats `test`."""
    assert spec.config is not None
    config = replace(spec.config, device=settings.device)
    task, device = task_with_paths(config), resolve(config.device)
    begin = time.perf_counter()
    confused, parameters = count_confused(config, task, device)
    result = {"val_score": confused, "test_score": confused, "metric": "undistinguished pairs", "stopped": "untrained"}
    result |= {"epochs": 0, "best_epoch": 0, "seconds": time.perf_counter() - begin, "parameters": parameters}
    return trained_row(spec, config, {**provenance(), **result, "device": device_name(device)})
