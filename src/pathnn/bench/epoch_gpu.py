"""An epoch of training on a GPU, as `pathnn train` does it: ZINC, AP, K = 4, batches of 128, shuffled, assembled on the
device; evaluation is timed beside."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pathnn.engine.build import build_model
from pathnn.engine.devices import make_fabric
from pathnn.engine.evaluate import evaluate
from pathnn.engine.graphed import Graphed
from pathnn.engine.loaders import make_loaders
from pathnn.engine.run import load_task
from pathnn.engine.state import TrainState
from pathnn.engine.train import train_epoch
from pathnn.experiments.paper import zinc


class Counted(Graphed):
    """Counts the steps that were CUDA graphs."""

    graphed = single = 0

    def step(self, index: Tensor) -> Tensor | None:
        """A step; see `Graphed`."""
        loss = super().step(index)
        self.graphed += loss is not None
        self.single += loss is None
        return loss


def measure_epochs(epochs: int = 5, *, tf32: bool = False) -> dict[str, Any]:
    """Seconds of an epoch (the median), how many of its steps were graphs, and the loss it ends with."""
    config = replace(zinc("ap"), device="cuda", precision="tf32" if tf32 else "32-true")
    task = load_task(config)
    model, fabric = build_model(config, task), make_fabric(config)
    loaders = make_loaders(task, config, model, device=fabric.device)
    state = TrainState.start(model, config, fabric, maximize=task.maximize)
    graphed = Counted(model, loaders, config)  # type: ignore[arg-type]
    losses: list[float] = []

    def epoch() -> None:
        losses.append(train_epoch(state, loaders, config, graphed))
        state.epoch += 1

    def evaluation() -> None:
        evaluate(model, loaders.val, loaders.task, fabric=fabric, forward=graphed.forward("val"))

    for warm_up in (epoch, epoch, evaluation):
        warm_up()
    graphed.graphed = graphed.single = 0
    seconds, beside = _seconds(epoch, epochs), _seconds(evaluation, epochs)
    steps = graphed.graphed + graphed.single
    return {
        "workload": "zinc-ap", "seconds": statistics.median(seconds), "all_seconds": seconds, "tf32": tf32,
        "evaluation_seconds": statistics.median(beside), "steps": steps // epochs,
        "graphed_share": graphed.graphed / steps, "loss": losses[-1],
    }  # fmt: skip


def _seconds(function: Callable[[], None], times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds
