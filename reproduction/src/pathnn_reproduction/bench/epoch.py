"""Measure an epoch of training by `pathnn train` and an evaluation: ours and the dense formulation.

ZINC, AP, K = 4, batches of 128. On a GPU our steps are CUDA graphs; the dense formulation is worked on operation by
operation, as its implementations are.
"""

from __future__ import annotations

import gc
import statistics
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from pathnn.data.task import Task
from pathnn.nn import PathNN
from pathnn.training.config import RunConfig
from pathnn.training.loop import Stepper, TrainState, fabric_for, make_stepper, train_epoch
from pathnn.training.runs import load_task
from pathnn.training.scoring import evaluate
from pathnn.training.setup import Loaders, build_model, make_loaders
from pathnn_reproduction.bench.timing import seconds


@dataclass
class Training:
    """A model in training, and its data."""

    config: RunConfig
    loaders: Loaders
    state: TrainState
    stepper: Stepper

    @classmethod
    def start(
        cls, config: RunConfig, *, backend: str = "auto", graphs: int | None = None, task: Task | None = None
    ) -> Training:
        """Return a run before its first epoch; with `graphs`, on this many training graphs only."""
        task = load_task(config) if task is None else task
        model, fabric = build_model(config, task), fabric_for(config)
        if isinstance(model, PathNN):
            model.lstm.backend = backend
        loaders = make_loaders(task, config, model, device=fabric.device)
        if graphs is not None:
            loaders.train.index = loaders.train.index[:graphs]
        state = TrainState.start(model, config, fabric, maximize=task.maximize)
        return cls(config, loaders, state, make_stepper(state, loaders, config))

    def epoch(self) -> None:
        """Train on every graph once."""
        train_epoch(self.state, self.loaders, self.config, self.stepper)
        self.state.epoch += 1

    def evaluate(self, part: str = "val") -> None:
        """Predict and score the validation or the test graphs."""
        loader = self.loaders.val if part == "val" else self.loaders.test
        forward = partial(self.stepper.predict, loader)
        evaluate(self.state.model, loader, self.loaders.task, fabric=self.state.fabric, forward=forward)


def run(config: RunConfig, *, epochs: int = 5, graphs: int | None = None) -> list[dict[str, Any]]:
    """Return two rows, an epoch and an evaluation: `{workload, phase, dense_ms, ours_ms, ratio, ...}`."""
    name = f"{config.data}-{config.collection} epoch" + (", TF32" if config.precision == "tf32" else "")
    found = {
        backend: _measure(config, backend, epochs if backend == "auto" else 1, graphs) for backend in ("auto", "dense")
    }
    rows = []
    for phase in ("train", "inference"):
        ours, dense = found["auto"], found["dense"]
        rows.append({
            "workload": name, "phase": phase, "dense_ms": dense[phase], "ours_ms": ours[phase],
            "ratio": dense[phase] / ours[phase], "dense_mib": dense["mib"], "ours_mib": ours["mib"],
            "graphs": ours["graphs"], "steps": ours["steps"], "cuda_graphs": ours["cuda_graphs"],
        })  # fmt: skip
    return rows


def _measure(config: RunConfig, backend: str, epochs: int, graphs: int | None) -> dict[str, Any]:
    before = 0
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    training = Training.start(config, backend=backend, graphs=graphs)
    cuda_graphs = type(training.stepper) is not Stepper
    for _ in range(2 if cuda_graphs else 1):
        training.epoch()  # kernels are compiled and graphs recorded
    training.evaluate()
    cuda = training.state.fabric.device.type == "cuda"
    return {
        "train": 1e3 * statistics.median(seconds(training.epoch, epochs)),
        "inference": 1e3 * statistics.median(seconds(training.evaluate, epochs)),
        "mib": (torch.cuda.max_memory_allocated() - before) / 2**20 if cuda else None,
        "graphs": training.loaders.train.index.numel(),
        "steps": len(training.loaders.train.indices(0)),
        "cuda_graphs": cuda_graphs,
    }
