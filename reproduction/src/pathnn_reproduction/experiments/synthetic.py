"""CSL, EXP-Class and EXP-Iso (table 1); EXP-Iso counts the pairs of graphs that untrained networks confuse."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from pathnn.data.loader import PackedLoader
from pathnn.data.task import Task
from pathnn.device import device_name, resolve
from pathnn.paths.options import COLLECTIONS
from pathnn.theory.isomorphism import confused_pairs
from pathnn.training import build_model, model_outputs
from pathnn.training.config import RunConfig
from pathnn.training.recipes import csl, exp
from pathnn_reproduction.experiments.baselines import baseline_run
from pathnn_reproduction.results import Row, provenance, trained_row
from pathnn_reproduction.spec import RunSpec, training_spec
from pathnn_reproduction.tables import accuracy_tables
from pathnn_reproduction.worker import Settings, loaded_commit, task_with_paths

tables = accuracy_tables

UNTRAINED: dict[str, Any] = {"precision": "64-true", "epochs": 1, "patience": None, "batch_size": 64}
"""Options of a config that only describes a network: nothing is trained."""


def synthetic() -> Iterator[RunSpec]:
    """Yield the runs of table 1."""
    for collection, fold in product(COLLECTIONS, range(5)):
        yield training_spec("synthetic", csl(collection, fold=fold))
    for fold in range(5):
        yield training_spec("synthetic", baseline_run("gin", "csl", fold=fold))
    for data in ("exp", "cexp"):
        for collection, fold in product(COLLECTIONS, range(4)):
            config = exp(collection, fold=fold, name=data)
            yield training_spec("synthetic", config)
            yield training_spec("synthetic", replace(config, variant="released"), released=True)
        for fold in range(4):
            yield training_spec("synthetic", baseline_run("gin", data, fold=fold))
    yield from _isomorphism()


def _isomorphism() -> Iterator[RunSpec]:
    """Yield EXP-Iso: the graphs of EXP, untrained networks without a head, five seeds."""
    headless = {"head": None, "out_channels": None}
    for collection, seed in product(COLLECTIONS, range(5)):
        config = replace(exp(collection, name="exp"), preset="exp-iso", options=headless, seed=seed, **UNTRAINED)
        yield training_spec("synthetic", config, dataset="exp-iso", run=count_confused_run)
    for seed in range(5):
        config = baseline_run("gin", "exp", seed=seed)
        options = {**config.options, **headless, "hidden_channels": 16}
        config = replace(config, options=options, **UNTRAINED)
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
    where = {"device": device_name(device), "commit": loaded_commit()}
    return trained_row(spec, config, {**provenance(), **result, **where})
