"""Measure a training step and an inference on the CPU: the trie backends against the dense formulation.

Same weights, same batches of the paper's sizes, tries ready: real graphs if the dataset is available, else random ones
of its shape. Times are medians of interleaved rounds. Memory is how far the process rises above where it was before the
step, in a process of its own. For `zinc-ap` a user's own loop is measured as well (`bench.user_loop`).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pathnn.data import DatasetNotFoundError, GraphBatch, PackedGraphs, load_dataset
from pathnn.data.datasets.registry import fetch
from pathnn.nn import PathNN
from pathnn.paths.options import Collection
from pathnn_reproduction.bench import timing, user_loop
from pathnn_reproduction.bench.extract import peak_bytes
from pathnn_reproduction.bench.shapes import graph_set
from pathnn_reproduction.bench.user_loop import twin

WORKLOADS: dict[str, tuple[str, Collection, int]] = {  # dataset, collection, graphs of a batch
    "zinc-ap": ("zinc", "ap", 128),
    "zinc-sp": ("zinc", "sp", 128),
    "dd-ap": ("dd", "ap", 16),
}
BACKENDS = ("dense", "auto")
PHASES = ("train", "inference")


USER_WORKLOAD = "zinc-ap"
"""The workload whose step is also measured in a user's own loop."""

Save = Callable[[dict[str, Any]], None]
Loss = Callable[[Tensor, Any], Tensor]


def run(
    workloads: Sequence[str] = ("zinc-ap", "dd-ap"),
    *,
    threads: int = 2,
    rounds: int = 5,
    save: Save = lambda _: None,
) -> dict[str, Any]:
    """Return `{"workloads": rows, "user_loop": rows}`; `save` gets the result so far after each part.

    A row of `workloads`, one for each workload and phase, is `{workload, phase, dense_ms, ours_ms, ratio, dense_mib,
    ours_mib}`; rows of `user_loop` are those of `pathnn_reproduction.bench.user_loop.run`.
    """
    prepare_datasets([WORKLOADS[name][0] for name in workloads], required=False)
    rows: list[dict[str, Any]] = []
    result: dict[str, Any] = {"workloads": rows}
    with timing.threads(threads):
        for name in workloads:
            rows += [_measure(name, phase, threads, rounds) for phase in PHASES]
            save(result)
        if USER_WORKLOAD in workloads:
            result["user_loop"] = user_loop.run(rounds=rounds)
            save(result)
    return result


def prepare_datasets(names: Iterable[str], *, required: bool) -> None:
    """Fetch and build datasets before anything is measured; name all `required` ones that are missing."""
    missing: dict[str, DatasetNotFoundError] = {}
    for name in dict.fromkeys(names):
        try:
            fetch(name)
        except DatasetNotFoundError as error:
            missing[name] = error
    if missing and required:
        raise DatasetNotFoundError(
            f"nothing was measured: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not available. "
            f"{'; '.join(map(str, missing.values()))} Or leave these workloads out (--workload)."
        )


def load(workload: str) -> tuple[PathNN, GraphBatch, bool]:
    """Return the paper's model for a workload, a batch, and whether its graphs are real."""
    torch.manual_seed(0)
    dataset, collection, size = WORKLOADS[workload]
    model = PathNN.from_paper(dataset, collection=collection)
    graphs, real = _graphs(dataset, size, model)
    return model, graphs.with_paths(collection=collection, k=model.config.k).select(torch.arange(size)), real


def _graphs(dataset: str, size: int, model: PathNN) -> tuple[PackedGraphs, bool]:
    try:
        graphs = load_dataset(dataset).graphs
        chosen = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))[:size]
        return graphs.subset(chosen), True
    except DatasetNotFoundError:
        shape = graph_set(dataset, size)
    width, edges = model.config.in_channels, model.config.edge_channels
    n = shape.num_nodes
    x = torch.rand(n, width) if isinstance(width, int) else torch.randint(width[0], (n, 1))
    attributes = torch.randint(edges[0], (shape.num_edges, 1)) if isinstance(edges, tuple) else None
    labels = torch.rand(size, 1) if model.config.out_channels == 1 else torch.randint(2, (size,))
    return replace(shape, x=x, edge_attr=attributes, y=labels), False


def step_of(model: nn.Module, phase: str, loss: Loss, *, autocast: bool = False) -> Callable[..., None]:
    """Return a function of a batch and of `trie=` or `edge_index=` that trains with Adam (fused on a GPU) or predicts.

    With `autocast` it computes in bfloat16 on a GPU.
    """
    model.train(phase == "train")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=next(model.parameters()).is_cuda)

    def forward(batch: GraphBatch, **structure: Any) -> Tensor:
        own = {"batch": batch.batch, "edge_attr": batch.edge_attr, "batch_size": batch.num_graphs}
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            out: Tensor = model(batch.x, **structure, **own)
        return out.float()

    def train(batch: GraphBatch, **structure: Any) -> None:
        optimizer.zero_grad()
        torch.autograd.backward(loss(forward(batch, **structure), batch.y))
        optimizer.step()

    def infer(batch: GraphBatch, **structure: Any) -> None:
        with torch.inference_mode():
            forward(batch, **structure)

    return train if phase == "train" else infer


def _ready_step(model: PathNN, backend: str, batch: GraphBatch, phase: str) -> Callable[[], None]:
    """Return a step on one batch, with the loss of its labels."""
    assert batch.y is not None
    loss = nn.functional.l1_loss if batch.y.is_floating_point() else nn.functional.cross_entropy
    return partial(step_of(twin(model, backend), phase, loss), batch, trie=batch.trie)


def _measure(workload: str, phase: str, threads: int, rounds: int) -> dict[str, Any]:
    model, batch, real = load(workload)
    steps = {backend: _ready_step(model, backend, batch, phase) for backend in BACKENDS}
    dense, ours = timing.medians(steps, rounds).values()
    dense_mib, ours_mib = (_in_process(workload, phase, backend, threads) for backend in BACKENDS)
    return {
        "workload": f"{workload}, {'real' if real else 'random'} graphs, {threads} threads",
        "phase": phase,
        "dense_ms": dense,
        "ours_ms": ours,
        "ratio": dense / ours,
        "dense_mib": dense_mib,
        "ours_mib": ours_mib,
    }


def _in_process(workload: str, phase: str, backend: str, threads: int) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(_peak_mib, (workload, phase, backend, threads)))


def _peak_mib(workload: str, phase: str, backend: str, threads: int) -> float:
    """Return the peak of the first step, after one of a small batch that loads and compiles all code."""
    torch.set_num_threads(threads)
    model, batch, _ = load(workload)
    two = _graphs(WORKLOADS[workload][0], 2, model)[0].with_paths(collection=model.config.collection, k=model.config.k)
    _ready_step(model, backend, two.select(torch.arange(2)), phase)()
    _, peak = peak_bytes(_ready_step(model, backend, batch, phase))
    return peak / 2**20
