"""Measure a step and an epoch in a user's own loop, next to `pathnn train`, dense and PyG's GINE.

ZINC (graphs of its shape where it is not available), the paper's PathNN, PyG's GINE with as many parameters, and Adam.
A step takes a batch that PyG has collated and that lies on the device; an epoch includes PyG's `DataLoader`. The step
of `pathnn train` is its epoch divided by the number of steps, so it includes assembling the batches.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import nn
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from pathnn.data.datasets.registry import Built, get_spec
from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Split, Task
from pathnn.nn import PathNN
from pathnn.paths.options import Collection
from pathnn.paths.trie import PathTrie
from pathnn.training.recipes import zinc
from pathnn.training.setup import build_model
from pathnn.transforms import AddPaths
from pathnn_reproduction.bench.batch import zinc_graphs
from pathnn_reproduction.bench.epoch import Training
from pathnn_reproduction.bench.timing import medians
from pathnn_reproduction.experiments.baselines import baseline_run

DENSE, TRIE, EDGE_INDEX, OWN, GINE = "dense", "trie", "edge_index", "pathnn train", "gine"
"""Ways to train: `nn.LSTM` over every path (its tries ready), our plain call both ways, our own loop, PyG's GINE."""


def run(
    collection: Collection = "ap",
    *,
    device: Literal["cpu", "cuda"] = "cpu",
    graphs: int = 1280,
    batch_size: int = 128,
    batches: int = 2,
    rounds: int = 5,
    epochs: int = 3,
) -> list[dict[str, Any]]:
    """Return a row `{workload, phase, way, ms, graphs, parameters}` for each way to do a step or an epoch.

    Times are medians of interleaved rounds; a step is the mean over a pass over some batches, which are waited for at
    its end.

    ```python
    rows = run("ap", graphs=640)
    ```
    """
    packed, origin = zinc_graphs(graphs)
    config = replace(zinc(collection), device=device, batch_size=batch_size)
    task = _task(packed)
    path_nn, gine = build_model(config, task).to(device), build_model(baseline_run("gin", "zinc"), task).to(device)
    assert isinstance(path_nn, PathNN)
    models: dict[str, nn.Module] = {TRIE: path_nn, EDGE_INDEX: copy.deepcopy(path_nn), GINE: gine}
    plain = list(packed)
    with_paths = [AddPaths(collection, config.k)(data) for data in plain]
    starts = range(0, len(plain), batch_size)[:batches]
    collated = [_collate(with_paths[start : start + batch_size], device) for start in starts]
    step_models = {DENSE: twin(path_nn, "dense"), **models}
    passes = {way: _pass(user_step(model, way), collated) for way, model in step_models.items()}
    per_step = {way: ms / len(collated) for way, ms in medians(passes, rounds).items()}

    own = Training.start(config, task=task)
    own.epoch()  # records CUDA graphs
    data = {TRIE: with_paths, EDGE_INDEX: plain, GINE: plain}
    whole = {way: _epoch(user_step(models[way], way), data[way], batch_size, device) for way in data}
    per_epoch = medians({**whole, OWN: own.epoch}, epochs)
    per_step[OWN] = per_epoch[OWN] / len(own.loaders.train.indices(0))

    parameters = {way: sum(p.numel() for p in models.get(way, path_nn).parameters()) for way in per_step}
    return [
        {"workload": f"zinc-{collection}, {origin}", "phase": phase, "way": way, "ms": ms, "graphs": number,
         "parameters": parameters[way]}
        for phase, times, number in (("step", per_step, batch_size), ("epoch", per_epoch, len(packed)))
        for way, ms in times.items()
    ]  # fmt: skip


def twin(model: PathNN, backend: str) -> PathNN:
    """Return a copy of a model with another backend."""
    found = copy.deepcopy(model)
    found.lstm.backend = backend
    found.lstm.flatten_parameters()  # as nn.LSTM has them: a copy's are not
    return found


def user_step(model: nn.Module, way: str) -> Callable[[Batch], None]:
    """Return a training step as a user writes it; the ways of a PathNN differ in the arguments of its call."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        if way == DENSE:
            structure: dict[str, Any] = {"trie": batch.ready}
        else:
            structure = {"trie": PathTrie.from_data(batch)} if way == TRIE else {"edge_index": batch.edge_index}
        out = model(batch.x, **structure, batch=batch.batch, edge_attr=batch.edge_attr)
        torch.autograd.backward(nn.functional.l1_loss(out, batch.y))
        optimizer.step()

    return step


def _collate(data: Sequence[Any], device: str) -> Batch:
    """Return a batch on the device, with its trie as `ready`."""
    batch = Batch.from_data_list(list(data)).to(device)
    batch.ready = PathTrie.from_data(batch)
    return batch


def _pass(step: Callable[[Batch], None], batches: Sequence[Batch]) -> Callable[[], None]:
    def work() -> None:
        for batch in batches:
            step(batch)

    return work


def _epoch(step: Callable[[Batch], None], data: list[Any], batch_size: int, device: str) -> Callable[[], None]:
    def work() -> None:
        for batch in DataLoader(data, batch_size=batch_size, shuffle=True):
            step(batch.to(device))

    return work


def _task(graphs: PackedGraphs) -> Task:
    """Return ZINC's task on some graphs, with all of them in the training split."""
    everything, few = torch.arange(len(graphs)), torch.arange(2)
    return get_spec("zinc").task(Built(graphs, (Split(everything, few, few),)))
