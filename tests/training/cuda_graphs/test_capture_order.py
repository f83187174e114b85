"""Of the shapes of batches the largest is recorded first: the CUDA graphs of others then find room in its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine_tasks import one_thread as one_thread
from engine_tasks import tiny_config, tiny_task
from pathnn.training import build_model, fabric_for, make_loaders, stacked_train
from pathnn.training.cuda_graphs import run_steps as graphed
from pathnn.training.cuda_graphs.padded_batch import PaddedShape, graph_sizes
from pathnn.training.cuda_graphs.run_steps import CudaGraphStepper
from pathnn.training.loop import EagerStepper, TrainState
from pathnn.training.run_folder import RunFolder
from pathnn.training.runs import prepare
from pathnn.training.setup import batch_indices


class StubStep:
    """In place of a step, or of the steps of several networks: says in which order they are recorded."""

    def __init__(self, *parts: Any, capacity: PaddedShape, **options: Any) -> None:
        self.capacity, self.recorded, self.total = capacity, False, torch.zeros(2)

    order: list[int]

    def prepare(self, *batch: Tensor) -> None:
        if not self.recorded:
            self.order.append(self.capacity.amount)
        self.recorded = True

    def __call__(self, *batch: Tensor) -> Tensor:
        self.prepare(*batch)
        return torch.zeros(())

    step = __call__


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(StubStep, "order", found, raising=False)
    monkeypatch.setattr(graphed, "CudaGraphStep", StubStep)
    monkeypatch.setattr(stacked_train, "StackedSteps", StubStep)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(Tensor, "pin_memory", lambda self: self)
    return found


def test_of_one_network(order: list[int]):
    task, config = tiny_task(200), tiny_config(batch_size=8)
    model = build_model(config, task)
    loaders = make_loaders(task, config, model, device="cpu")
    state = TrainState.start(model, config, fabric_for(config), maximize=False)
    steps = CudaGraphStepper(EagerStepper(state, loaders), config)
    shapes = PaddedShape.shapes(graph_sizes(loaders.train.graphs)[loaders.train.index], 8)
    for epoch in range(4):
        for index in batch_indices(loaders.train, epoch):
            if index.numel() == 8:
                steps.train_step(index, 1.0)
    assert sorted(order) == sorted(shape.amount for shape in shapes)
    assert len(order) >= 3
    assert order[0] == max(order)


def test_of_several_networks(order: list[int], tmp_path: Path):
    task = tiny_task(200)
    configs = [tiny_config(batch_size=8, seed=seed) for seed in range(2)]
    folders = [RunFolder(tmp_path / str(config.seed)) for config in configs]
    for folder in folders:
        folder.path.mkdir()
    pairs = zip(configs, folders, strict=True)
    runs = [prepare(config, task, folder, fabric_for(config), resume=False) for config, folder in pairs]
    trainer = stacked_train.StackedTrainer(runs)
    trainer.train_epoch([True, True])
    assert len(order) >= 3
    assert order == sorted(order, reverse=True)
