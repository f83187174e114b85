"""The two sides of the GPU benchmark on the same batches: the Triton backend, one CUDA graph a step, and dense."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pathnn.data.batch import GraphBatch
from pathnn.data.datasets.registry import load_dataset
from pathnn.data.packed import PackedGraphs
from pathnn.nn import PathNN
from pathnn.paths.options import Collection
from pathnn.training.cuda_graphs.capture import CudaGraphForward, CudaGraphStep
from pathnn.training.cuda_graphs.padded_batch import PaddedShape

Step = Callable[[], None]


@dataclass(frozen=True)
class Workload:
    """A model of the paper and batches of its dataset; `graphs` of them are loaded."""

    dataset: str
    collection: Collection
    k: int
    batch_size: int
    graphs: int


WORKLOADS = {
    "zinc-ap": Workload("zinc", "ap", 4, 128, 4096),
    "zinc-sp": Workload("zinc", "sp", 4, 128, 4096),
    "dd-ap": Workload("dd", "ap", 2, 16, 512),
    "peptides-func-ap": Workload("peptides-func", "ap", 7, 128, 1024),
}


class Bench:
    """The resident dataset, the model and a few batches of a workload; `autocast` is for bfloat16."""

    autocast = False

    def __init__(self, workload: Workload, *, batches: int = 4) -> None:
        torch.manual_seed(0)
        task = load_dataset(workload.dataset)
        chosen = task.splits[0].train[: workload.graphs]
        self.graphs = task.graphs.subset(chosen).with_paths(collection=workload.collection, k=workload.k).to("cuda")
        width = None if self.graphs.edge_attr is not None or self.graphs.x is None else self.graphs.x.size(1)
        self.model = PathNN.from_paper(
            workload.dataset, collection=workload.collection, k=workload.k, in_channels=width
        ).cuda()
        assert task.loss is not None
        self.loss = task.loss()
        order = torch.randperm(len(self.graphs), generator=torch.Generator().manual_seed(0))
        self.batches = list(torch.split(order, workload.batch_size))[:batches]
        self.capacity = capacity_for(self.graphs, self.batches)

    def twin(self, backend: str) -> PathNN:
        """The model with the same weights and one of the backends."""
        model = copy.deepcopy(self.model)
        model.lstm.backend = backend
        model.lstm.flatten_parameters()
        return model


def capacity_for(graphs: PackedGraphs, batches: list[Tensor]) -> PaddedShape:
    """The smallest of a few typical shapes that holds all these batches."""
    from pathnn.training.cuda_graphs.padded_batch import graph_sizes

    sizes = graph_sizes(graphs)
    for margin in (1.0, 2.0, 3.0, 4.0, 6.0, 10.0):
        capacity = PaddedShape.typical(graphs, batches[0].numel(), margin=margin)
        if all(capacity.holds(sizes[index].sum(dim=0)) for index in batches):
            return capacity
    raise ValueError("no shape holds these batches: expected random batches of one size.")


def adam(model: PathNN) -> torch.optim.Optimizer:
    """The optimizer of both sides."""
    return torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)


def eager_steps(bench: Bench, backend: str, phase: str) -> list[Step]:
    """One function per batch, operation by operation, on batches that are ready."""
    model = bench.twin(backend).train(phase == "train")
    optimizer = adam(model)

    def forward(batch: GraphBatch) -> Tensor:
        assert batch.x is not None
        with torch.autocast("cuda", torch.bfloat16, enabled=bench.autocast):
            out: Tensor = model(
                batch.x, trie=batch.trie, batch=batch.batch, edge_attr=batch.edge_attr, batch_size=batch.num_graphs
            )
        return out.float()

    def train(batch: GraphBatch) -> None:
        optimizer.zero_grad()
        bench.loss(forward(batch), batch.y).backward()
        optimizer.step()

    def infer(batch: GraphBatch) -> None:
        with torch.inference_mode():
            forward(batch)

    run = train if phase == "train" else infer
    ready = [bench.graphs.select(index) for index in bench.batches]
    return [lambda batch=batch: run(batch) for batch in ready]  # type: ignore[misc]


def graphed_steps(bench: Bench, phase: str) -> list[Step]:
    """One function per batch: assembled and computed in one launch."""
    model = bench.twin("auto").train(phase == "train")
    if phase != "train":
        predict = CudaGraphForward(model, bench.graphs, capacity=bench.capacity, autocast=bench.autocast)
        return [lambda index=index: predict(index) for index in bench.batches]  # type: ignore[misc]
    step = CudaGraphStep(model, bench.graphs, bench.loss, capacity=bench.capacity, autocast=bench.autocast)
    optimizer = adam(model)

    def train(index: Tensor) -> None:
        step(index)
        optimizer.step()

    return [lambda index=index: train(index) for index in bench.batches]  # type: ignore[misc]
