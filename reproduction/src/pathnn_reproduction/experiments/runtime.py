"""The running times of the appendix: seconds of preprocessing, of an epoch and of inference, the paper's and ours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import torch

from pathnn.device import resolve
from pathnn.paths.options import Collection
from pathnn.training.config import RunConfig
from pathnn.training.recipes import tu, zinc
from pathnn.training.runs import load_task
from pathnn_reproduction.bench.epoch import Training, seconds
from pathnn_reproduction.experiments import TARGETS
from pathnn_reproduction.experiments.baselines import baseline_run
from pathnn_reproduction.paper import TIMES
from pathnn_reproduction.results import Results, Row, measured_row
from pathnn_reproduction.spec import Experiment, RunSpec
from pathnn_reproduction.tables import Table
from pathnn_reproduction.worker import Settings

EPOCHS = 5
"""Epochs that a time is the mean of."""


def runtime() -> Experiment:
    """Return the table: a run per row, one at a time."""
    names = ("dataset", "model", "collection", "k")
    specs = tuple(RunSpec(target="runtime", key=dict(zip(names, row, strict=True)), run=runtime_run) for row in TIMES)
    return Experiment("runtime", TARGETS["runtime"], specs, runtime_tables, alone=True)


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


def runtime_texts(row: Row) -> list[str]:
    """Return a row of the table: dataset, model, K, then the paper's and our seconds for each time."""
    paper = TIMES[row["dataset"], row["model"], row["collection"], row["k"]]
    model = row["model"].upper() if row["collection"] is None else f"PathNN-{row['collection'].upper()}"
    paths = ("—", "—")
    if paper.preprocessing is not None:
        paths = (f"{paper.preprocessing:,.2f}", f"{row['preprocessing']:,.2f}")
    return [
        row["dataset"].upper(), model, str(row["k"]), *paths,
        f"{paper.epoch:,.2f}", f"{row['epoch']:.3f} ± {row['epoch_std']:.3f}",
        f"{paper.inference:,.2f}", f"{row['inference']:.3f} ± {row['inference_std']:.3f}",
    ]  # fmt: skip


def runtime_tables(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> list[Table]:
    """Return a table for each device that rows were measured on."""
    rows = [row for _, row in experiment.done(specs, results)]
    by_device = {row["device"]: [one for one in rows if one["device"] == row["device"]] for row in rows}
    return [
        Table(f"Seconds on {device}", RUNTIME, [runtime_texts(row) for row in found], found, 2)
        for device, found in by_device.items()
    ]
