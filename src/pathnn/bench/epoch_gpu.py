"""An epoch of training on a GPU: ZINC, AP, K = 4, batches of 128, shuffled, assembled on the device; no evaluation.

The last batch is smaller and has a CUDA graph of its own.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from torch import Tensor

from pathnn.bench.model_gpu import adam, set_tf32
from pathnn.data.datasets.registry import load_dataset
from pathnn.data.packed import PackedGraphs
from pathnn.data.sampler import SizeSampler, epoch_order
from pathnn.engine.graphs import GraphedStep
from pathnn.engine.graphs_batch import Capacity
from pathnn.nn import PathNN


class Training:
    """A model in training: batches that fit go through the CUDA graph, the others operation by operation."""

    def __init__(self, graphs: PackedGraphs, model: PathNN, loss: Any, *, batch_size: int = 128) -> None:
        self.graphs, self.model, self.loss = graphs, model, loss
        self.optimizer = adam(model)
        self.graphed_steps = {
            size: GraphedStep(model, graphs, loss, capacity=Capacity.typical(graphs, size, margin=4.0))
            for size in {batch_size, len(graphs) % batch_size} - {0}
        }
        self.sampler = SizeSampler(batch_size, drop_single=True)
        self.epoch = self.graphed = self.steps = 0

    def run_epoch(self) -> Tensor:
        """Train on every graph once; the mean loss of the batches, still on the GPU."""
        order = epoch_order(torch.arange(len(self.graphs)), shuffle=True, seed=0, epoch=self.epoch)
        self.epoch += 1
        losses = []
        for index in self.sampler.batches(order):
            step = self.graphed_steps[index.numel()]
            fits = step.fits(index)
            losses.append(step(index) if fits else self._eager(index))
            self.optimizer.step()
            self.graphed += fits
            self.steps += 1
        return torch.stack(losses).mean()

    def _eager(self, index: Tensor) -> Tensor:
        batch = self.graphs.select(index)
        assert batch.x is not None
        self.model.zero_grad()
        out = self.model(
            batch.x, trie=batch.trie, batch=batch.batch, edge_attr=batch.edge_attr, batch_size=batch.num_graphs
        )
        loss: Tensor = self.loss(out, batch.y)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


def measure_epochs(epochs: int = 5, *, tf32: bool = False) -> dict[str, Any]:
    """Seconds of an epoch (the median), how many of its steps were graphs, and the loss it ends with."""
    set_tf32(tf32)
    torch.manual_seed(0)
    task = load_dataset("zinc")
    assert task.loss is not None
    train = task.graphs.subset(task.splits[0].train)
    graphs = train.with_paths(collection="ap", k=4).to("cuda")
    training = Training(graphs, PathNN.from_paper("zinc", collection="ap").cuda(), task.loss())
    training.run_epoch()
    training.graphed = training.steps = 0
    seconds = []
    for _ in range(epochs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        loss = training.run_epoch()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    set_tf32(False)
    return {
        "workload": "zinc-ap", "seconds": statistics.median(seconds), "all_seconds": seconds, "tf32": tf32,
        "steps": training.steps // epochs, "graphed_share": training.graphed / training.steps, "loss": float(loss),
    }  # fmt: skip
