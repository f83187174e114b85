"""A run's steps as CUDA graphs, where they can be: one launch a step instead of hundreds.

Batches are padded to a few shapes; a batch that fits none of them, and a run for which this is not made (several
processes, some baselines, a dataset that is not on the GPU), is worked on operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pathnn.data.loader import PackedLoader
from pathnn.nn import PathNN
from pathnn.nn.backends import base
from pathnn.paths.ragged import RaggedTries
from pathnn.training.config import RunConfig
from pathnn.training.cuda_graphs.capture import CudaGraphForward, CudaGraphStep, padding_problem
from pathnn.training.cuda_graphs.padded_batch import PaddedShape, graph_sizes
from pathnn.training.cuda_graphs.padded_edges import with_room
from pathnn.training.scoring import Forward, apply, as_targets
from pathnn.training.setup import Loaders, Model, batch_indices
from pathnn.training.state import TrainState


class CudaGraphSteps:
    """The graphs of a run, recorded when they are first needed."""

    def __init__(self, model: Model, loaders: Loaders, config: RunConfig) -> None:
        task = loaders.task
        self._paths = isinstance(model, PathNN)
        assert task.loss is not None
        self._model, self._loaders = model, loaders
        encode = loaders.scale.encoder(loaders.train.device)
        self._loss = partial(_loss, task.loss(), encode)
        self._options: dict[str, Any] = {
            "autocast": config.precision == "bf16-mixed",
            "pool": torch.cuda.graph_pool_handle(),
        }
        self._sizes = graph_sizes(loaders.train.graphs, paths=self._paths)
        self._shapes: dict[int, list[PaddedShape]] = {}
        self._steps: dict[PaddedShape, CudaGraphStep] = {}
        self._forwards: dict[str, Forward] = {}

    def step(self, index: Tensor) -> Tensor | None:
        """The loss of a training step, its gradients in `p.grad`; None if the batch fits no graph."""
        number = index.numel()
        if number not in self._shapes:
            self._shapes[number] = self._find_shapes(number)
        totals = self._sizes[index].sum(dim=0)
        shapes = [shape for shape in self._shapes[number] if shape.holds(totals)]
        if not shapes:
            return None
        smallest, largest = shapes[0], shapes[-1]
        if largest not in self._steps:
            self._step_of(largest).prepare(index)  # before smaller ones, which then find room in its memory
        return self._step_of(smallest)(index)

    def forward(self, part: str) -> Forward:
        """The outputs for a batch of the validation or the test graphs."""
        if part not in self._forwards:
            loader = self._loaders.val if part == "val" else self._loaders.test
            self._forwards[part] = self._make_forward(loader)
        return self._forwards[part]

    def _step_of(self, capacity: PaddedShape) -> CudaGraphStep:
        if capacity not in self._steps:
            self._steps[capacity] = CudaGraphStep(
                self._model,
                self._loaders.train.graphs,
                self._loss,
                capacity=capacity,
                recompute=not fits_memory(capacity, self._loaders.train, times=2),
                **self._options,
            )
        return self._steps[capacity]

    def _find_shapes(self, number: int) -> list[PaddedShape]:
        loader = self._loaders.train
        shapes = [self._room(shape) for shape in PaddedShape.shapes(self._sizes[loader.index], number)]
        return [shape for shape in shapes if fits_memory(shape, loader)]

    def _room(self, capacity: PaddedShape) -> PaddedShape:
        return capacity if self._paths else with_room(capacity)

    def _make_forward(self, loader: PackedLoader) -> Forward:
        model, sizes = self._model, graph_sizes(loader.graphs, paths=self._paths)
        forwards: dict[int, CudaGraphForward] = {}
        batches = batch_indices(loader, 0)
        for number in {batch.numel() for batch in batches}:
            totals = torch.stack([sizes[batch].sum(dim=0) for batch in batches if batch.numel() == number])
            capacity = self._room(PaddedShape.holding(totals.amax(dim=0), number))
            if fits_memory(capacity, loader):
                forwards[number] = CudaGraphForward(model, loader.graphs, capacity=capacity, **self._options)

        def forward(index: Tensor) -> Tensor:
            graphed = forwards.get(index.numel())
            if graphed is not None and graphed.fits(index):
                return graphed(index)
            return apply(model, loader.batch(index))

        return forward


def _loss(function: nn.Module, encode: Callable[[Tensor], Tensor], out: Tensor, y: Tensor) -> Tensor:
    loss: Tensor = function(out, as_targets(encode(y), out))
    return loss


def make_cuda_graph_steps(state: TrainState, loaders: Loaders, config: RunConfig) -> CudaGraphSteps | None:
    """The graphs of a run, or None where it cannot have any."""
    model, fabric = state.model, state.fabric
    if fabric.device.type != "cuda" or fabric.world_size > 1 or config.precision not in GRAPHED_PRECISIONS:
        return None
    if not base.on_triton(next(model.parameters())) or padding_problem(model) is not None:
        return None
    if isinstance(model, PathNN) and model.lstm.backend not in ("auto", "triton"):
        return None
    graphs = loaders.train.graphs
    if loaders.task.loss is None or graphs.x is None:
        return None
    if graphs.device.type != "cuda" or (isinstance(model, PathNN) and not isinstance(graphs.tries, RaggedTries)):
        return None
    return CudaGraphSteps(model, loaders, config)


GRAPHED_PRECISIONS = ("32-true", "tf32", "bf16-mixed")


def fits_memory(capacity: PaddedShape, loader: PackedLoader, *, times: int = 1) -> bool:
    """Whether a padded batch (that takes so many times the memory) can be worked on at once; larger ones are cut into
    pieces, which no graph can do."""
    return loader.max_entries is None or times * sum(capacity.levels) <= loader.max_entries
