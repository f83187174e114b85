"""The appendix's table "Running time": seconds of preprocessing, of an epoch and of inference, the paper's and ours."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from pathnn.paths.options import Collection
from pathnn.training.config import RunConfig
from pathnn.training.recipes import tu, zinc
from pathnn.training.runs import load_task
from pathnn_reproduction.bench.epoch import Training, seconds
from pathnn_reproduction.experiments.baselines import baseline_run


@dataclass(frozen=True)
class PaperTime:
    """A row as printed: an NVIDIA Tesla T4, seconds; `None` where it prints a dash."""

    preprocessing: float | None
    epoch: float
    inference: float


Row = tuple[str, str, Collection | None, int]
"""Dataset, model, collection, and K (or the number of layers)."""


PAPER: dict[Row, PaperTime] = {
    ("dd", "gin", None, 1): PaperTime(None, 0.36, 0.03),
    ("dd", "gin", None, 2): PaperTime(None, 0.47, 0.03),
    ("dd", "pathnn", "sp", 1): PaperTime(None, 0.56, 0.05),
    ("dd", "pathnn", "sp", 2): PaperTime(76.53, 1.22, 0.11),
    ("dd", "pathnn", "sp+", 2): PaperTime(139.17, 1.57, 0.13),
    ("dd", "pathnn", "ap", 2): PaperTime(98.98, 3.33, 0.23),
    ("zinc", "gin", None, 1): PaperTime(None, 0.90, 0.13),
    ("zinc", "gin", None, 4): PaperTime(None, 1.97, 0.18),
    ("zinc", "pathnn", "sp", 1): PaperTime(None, 1.65, 0.23),
    ("zinc", "pathnn", "sp", 4): PaperTime(21.28, 3.56, 0.26),
    ("zinc", "pathnn", "sp+", 4): PaperTime(29.09, 3.66, 0.25),
    ("zinc", "pathnn", "ap", 4): PaperTime(25.93, 4.38, 0.32),
}
"""The table's rows (not those of DSS-GIN and KP-GIN, which are not here); at K = 1 all collections are the same."""


@dataclass(frozen=True)
class MeasuredTime:
    """Ours: seconds to extract the paths of all graphs, of an epoch, and of predicting the test graphs."""

    dataset: str
    model: str
    collection: Collection | None
    k: int
    preprocessing: float
    epoch: float
    epoch_std: float
    inference: float
    inference_std: float
    epochs: int

    def as_dict(self) -> dict[str, Any]:
        """With the paper's numbers beside ours, as plain values."""
        paper = PAPER[self.dataset, self.model, self.collection, self.k]
        return {**asdict(self), "paper": asdict(paper)}


def run_of(row: Row, device: str = "auto") -> RunConfig:
    """The run that a row of the table is about: the same batches for all models of a dataset.

    >>> run_of(("dd", "pathnn", "ap", 2)).batch_size, run_of(("zinc", "gin", None, 4)).options["num_layers"]
    (32, 4)
    """
    dataset, model, collection, k = row
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
    for row in PAPER:
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
