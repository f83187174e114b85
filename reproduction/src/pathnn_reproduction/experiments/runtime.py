"""The running times of the appendix: seconds of preprocessing, of an epoch and of inference, the paper's and ours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import torch

from pathnn.device import resolve
from pathnn.paths.options import Collection
from pathnn.training.config import RunConfig
from pathnn.training.recipes import tu, zinc
from pathnn.training.runs import load_task
from pathnn_reproduction.bench.epoch import Training
from pathnn_reproduction.bench.timing import seconds
from pathnn_reproduction.experiments.baselines import baseline_run
from pathnn_reproduction.paper import TIMES
from pathnn_reproduction.results import Results, Row, measured_row
from pathnn_reproduction.spec import Experiment, RunSpec
from pathnn_reproduction.tables import Table
from pathnn_reproduction.worker import Settings

EPOCHS = 5
"""Epochs that a time is the mean of."""

NAMES = ("dataset", "model", "collection", "k")
NOT_OURS = tuple(row for row in TIMES if row[1] not in ("pathnn", "gin"))
"""Rows of the paper's table with methods that we do not run."""


def runtime() -> Iterator[RunSpec]:
    """Yield the runs of the table: one per row."""
    keys = (dict(zip(NAMES, row, strict=True)) for row in TIMES if row not in NOT_OURS)
    return (RunSpec(target="runtime", key=key, run=runtime_run) for key in keys)


def run_of(key: Any, device: Any = "auto") -> RunConfig:
    """Return the run that a row is about: the same batches for all models of a dataset.

    >>> run_of({"dataset": "dd", "model": "pathnn", "collection": "ap", "k": 2}).batch_size
    32
    """
    dataset, collection, k = key["dataset"], cast("Collection | None", key["collection"]), key["k"]
    if collection is None:
        base = baseline_run(key["model"], dataset)
        return replace(base, options={**base.options, "num_layers": k}, device=device)
    if dataset == "zinc":
        return replace(zinc(collection), k=k, device=device)
    return replace(tu(dataset, collection, k=k), batch_size=32, device=device)


def runtime_run(spec: RunSpec, settings: Settings) -> Row:
    """Measure a row, after epochs that do not count, in which kernels are compiled."""
    begin = time.perf_counter()
    config = run_of(spec.key, settings.device)
    preprocessing = 0.0 if spec.key["collection"] is None or config.k == 1 else _preprocessing(config)
    training = Training.start(config)
    for _ in range(2):
        training.epoch()
        training.evaluate("test")
    train, test = seconds(training.epoch, EPOCHS), seconds(lambda: training.evaluate("test"), EPOCHS)
    times = {
        "preprocessing": preprocessing, "epoch": statistics.mean(train), "epoch_std": statistics.stdev(train),
        "inference": statistics.mean(test), "inference_std": statistics.stdev(test), "epochs": EPOCHS,
    }  # fmt: skip
    result = {**times, "seconds": time.perf_counter() - begin}
    return measured_row(spec, result, device=str(resolve(settings.device)))


def _preprocessing(config: RunConfig) -> float:
    """Return the seconds to extract the paths of the whole dataset on the CPU, with all its threads."""
    graphs = load_task(config).graphs
    graphs.subset(torch.arange(8)).with_paths(collection=config.collection, k=config.k)  # compiles
    start = time.perf_counter()
    graphs.with_paths(collection=config.collection, k=config.k)
    return time.perf_counter() - start


RUNTIME = ("dataset", "model", "K", "paths: paper", "ours", "epoch: paper", "ours", "inference: paper", "ours")


def runtime_texts(rows: Sequence[Row]) -> list[list[str]]:
    """Return the table: dataset, model, K, then the paper's and our seconds for each time."""
    found = {tuple(row[name] for name in NAMES): row for row in rows}
    lines = []
    for key, paper in TIMES.items():
        dataset, model, collection, k = key
        ours = dict.fromkeys(("preprocessing", "epoch", "inference"), "—" if key in NOT_OURS else "not measured")
        if key in found:
            row = found[key]
            ours = {name: f"{row[name]:.3f} ± {row[f'{name}_std']:.3f}" for name in ("epoch", "inference")}
            ours["preprocessing"] = f"{row['preprocessing']:,.2f}"
        paths = ("—", "—")
        if paper.preprocessing is not None:
            paths = (f"{paper.preprocessing:,.2f}", ours["preprocessing"])
        name = {"gin": "GIN"}.get(model, model) if collection is None else f"PathNN-{collection.upper()}"
        times = (f"{paper.epoch:,.2f}", ours["epoch"], f"{paper.inference:,.2f}", ours["inference"])
        lines.append([dataset.upper(), name, str(k), *paths, *times])
    return lines


def tables(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> list[Table]:
    """Return a table for each device that rows were measured on."""
    rows = [row for _, row in experiment.done(specs, results)]
    by_device = {row["device"]: [one for one in rows if one["device"] == row["device"]] for row in rows}
    return [
        Table(f"Seconds on {device}", RUNTIME, runtime_texts(found), found, 2) for device, found in by_device.items()
    ]
