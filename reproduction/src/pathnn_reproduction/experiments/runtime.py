"""The appendix's table "Running time": seconds of preprocessing, of an epoch and of inference, the paper's and ours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import torch

from pathnn.paths.options import Collection
from pathnn.training.config import RunConfig
from pathnn.training.recipes import tu, zinc
from pathnn.training.runs import load_task
from pathnn_reproduction.bench.epoch import Training, seconds
from pathnn_reproduction.experiments.baselines import baseline_run
from pathnn_reproduction.paper import TIMES

Row = tuple[str, str, str | None, int]
"""Dataset, model, collection, and K (or the number of layers)."""


@dataclass(frozen=True)
class MeasuredTime:
    """Ours: seconds to extract the paths of all graphs, of an epoch, and of predicting the test graphs."""

    dataset: str
    model: str
    collection: str | None
    k: int
    preprocessing: float
    epoch: float
    epoch_std: float
    inference: float
    inference_std: float
    epochs: int

    def as_dict(self) -> dict[str, Any]:
        """With the paper's numbers beside ours, as plain values."""
        paper = TIMES[self.dataset, self.model, self.collection, self.k]
        return {**asdict(self), "paper": asdict(paper)}


def run_of(row: Row, device: str = "auto") -> RunConfig:
    """The run that a row of the table is about: the same batches for all models of a dataset.

    >>> run_of(("dd", "pathnn", "ap", 2)).batch_size, run_of(("zinc", "gin", None, 4)).options["num_layers"]
    (32, 4)
    """
    dataset, model, collection, k = row[0], row[1], cast("Collection | None", row[2]), row[3]
    values: Any = {"device": device}
    if collection is None:
        base = baseline_run(model, dataset)
        return replace(base, options={**base.options, "num_layers": k}, **values)
    if dataset == "zinc":
        return replace(zinc(collection), k=k, **values)
    return replace(tu(dataset, collection, k=k), batch_size=32, **values)


def measure(row: Row, *, device: str = "auto", epochs: int = 5) -> MeasuredTime:
    """The times of one row, here; after epochs that are not counted, in which kernels are compiled."""
    dataset, model, collection, k = row
    config = run_of(row, device)
    preprocessing = 0.0 if collection is None or k == 1 else _preprocessing(config)
    training = Training.start(config)
    for _ in range(2):
        training.epoch()
        training.evaluate("test")
    train, test = seconds(training.epoch, epochs), seconds(lambda: training.evaluate("test"), epochs)
    return MeasuredTime(
        dataset, model, collection, k, preprocessing, statistics.mean(train), _std(train), statistics.mean(test),
        _std(test), epochs,
    )  # fmt: skip


def runtime(
    *, device: str = "auto", epochs: int = 5, datasets: tuple[str, ...] = ("dd", "zinc")
) -> Iterator[MeasuredTime]:
    """The table, row by row."""
    for row in TIMES:
        if row[0] in datasets:
            yield measure(row, device=device, epochs=epochs)


def _preprocessing(config: RunConfig) -> float:
    """Seconds to extract the paths of the whole dataset on the CPU, with all its threads."""
    graphs = load_task(config).graphs
    graphs.subset(torch.arange(8)).with_paths(collection=config.collection, k=config.k)  # compiles
    start = time.perf_counter()
    graphs.with_paths(collection=config.collection, k=config.k)
    return time.perf_counter() - start


def _std(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
