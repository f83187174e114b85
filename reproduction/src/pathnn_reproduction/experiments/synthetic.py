"""CSL, EXP-Class and EXP-Iso (table 1); EXP-Iso counts the pairs of graphs that untrained networks confuse."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import torch

from pathnn.data.loader import PackedLoader
from pathnn.data.task import Task
from pathnn.paths.options import COLLECTIONS
from pathnn.provenance import versions
from pathnn.theory.isomorphism import confused_pairs
from pathnn.training import build_model, model_outputs
from pathnn.training.config import RunConfig
from pathnn.training.recipes import csl, exp
from pathnn_reproduction.experiments import TARGETS
from pathnn_reproduction.experiments.baselines import baseline_run
from pathnn_reproduction.spec import Experiment, RunSpec, as_released, baseline_spec, pathnn_spec

UNTRAINED: dict[str, Any] = {"precision": "64-true", "epochs": 1, "patience": None, "batch_size": 64}
"""Options of a config that only describes a network: nothing is trained."""


def synthetic() -> Experiment:
    """Plan table 1."""
    return Experiment("synthetic", TARGETS["synthetic"], tuple(_runs()))


def _runs() -> Iterator[RunSpec]:
    for collection, fold in product(COLLECTIONS, range(5)):
        yield pathnn_spec("synthetic", csl(collection, fold=fold))
    for fold in range(5):
        yield baseline_spec("synthetic", baseline_run("gin", "csl", fold=fold))
    for data in ("exp", "cexp"):
        for collection, fold in product(COLLECTIONS, range(4)):
            config = exp(collection, fold=fold, name=data)
            yield pathnn_spec("synthetic", config)
            yield as_released(pathnn_spec("synthetic", replace(config, variant="released")))
        for fold in range(4):
            yield baseline_spec("synthetic", baseline_run("gin", data, fold=fold))
    yield from _isomorphism()


def _isomorphism() -> Iterator[RunSpec]:
    """EXP-Iso: the EXP file, untrained networks without a head, five seeds."""
    headless = {"head": None, "out_channels": None}
    for collection, seed in product(COLLECTIONS, range(5)):
        config = replace(exp(collection, name="exp"), preset="exp-iso", options=headless, seed=seed, **UNTRAINED)
        yield replace(pathnn_spec("synthetic", config), dataset="exp-iso", kind="isomorphism")
    for seed in range(5):
        config = baseline_run("gin", "exp", seed=seed)
        options = {**config.options, **headless, "hidden_channels": 16}
        config = replace(config, options=options, **UNTRAINED)
        yield replace(baseline_spec("synthetic", config), dataset="exp-iso", kind="isomorphism")


def count_confused(config: RunConfig, task: Task, device: torch.device | str) -> tuple[int, int]:
    """How many pairs of the task the untrained model of `config` confuses, in float64, and its parameters.

    The task's graphs have the paths that the model reads.
    """
    model = build_model(config, task).double().to(device)
    loader = PackedLoader(task.graphs, batch_size=config.batch_size, device=device)
    rows, pairs = model_outputs(model, loader), task.pair_index().to(device)
    return int(confused_pairs(rows, pairs).sum()), sum(p.numel() for p in model.parameters())


def isomorphism_result(config: RunConfig, task: Task, device: torch.device) -> dict[str, Any]:
    """The same in the form of a run's result, less the commit. Nothing is trained: validation repeats the test."""
    begin = time.perf_counter()
    confused, parameters = count_confused(config, task, device)
    return {
        "metric": "undistinguished pairs",
        "val_score": confused,
        "test_score": confused,
        "epochs": 0,
        "best_epoch": 0,
        "stopped": "untrained",
        "seconds": time.perf_counter() - begin,
        "parameters": parameters,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }
