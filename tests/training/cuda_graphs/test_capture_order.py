"""The largest shape is captured first: the CUDA graphs of the others then reuse its memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.nn.cuda_graphs.padded_copies import PaddedShape
from pathnn.training import build_model, fabric_for, make_loaders
from pathnn.training.cuda_graphs import run_steps as graphed
from pathnn.training.cuda_graphs.padded_batch import graph_sizes
from pathnn.training.cuda_graphs.run_steps import CudaGraphStepper
from pathnn.training.loop import TrainState


class StubStep:
    """A stub of `CudaGraphStep` that records the order of captures."""

    def __init__(self, *parts: Any, capacity: PaddedShape, **options: Any) -> None:
        self.capacity, self.captured = capacity, False

    order: list[int]

    def prepare(self, *batch: Tensor) -> None:
        if not self.captured:
            self.order.append(sum(self.capacity.levels))
        self.captured = True

    def __call__(self, *batch: Tensor) -> Tensor:
        self.prepare(*batch)
        return torch.zeros(())


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(StubStep, "order", found, raising=False)
    monkeypatch.setattr(graphed, "CudaGraphStep", StubStep)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(Tensor, "pin_memory", lambda self: self)
    return found


def test_the_largest_shape_is_captured_first(order: list[int]):
    task, config = tiny_task(200), tiny_config(batch_size=8)
    model = build_model(config, task)
    loaders = make_loaders(task, config, model, device="cpu")
    state = TrainState.start(model, config, fabric_for(config), maximize=False)
    steps = CudaGraphStepper(state, loaders, config)
    shapes = PaddedShape.shapes(graph_sizes(loaders.train.graphs)[loaders.train.index], 8)
    for epoch in range(4):
        for index in loaders.train.indices(epoch):
            if index.numel() == 8:
                steps.train_step(index, 1.0)
    assert sorted(order) == sorted(sum(shape.levels) for shape in shapes)
    assert len(order) >= 3
    assert order[0] == max(order)
