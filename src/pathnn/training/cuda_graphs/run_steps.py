"""Compute the batches of a run as CUDA graphs: one launch per step instead of hundreds.

Batches are padded to a few shapes. A batch that fits none of them is computed operation by operation, and so is a run
that cannot use CUDA graphs: several processes, custom modules, or a dataset that is not on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pathnn.data.loader import PackedLoader
from pathnn.nn import DeepPathNN
from pathnn.nn.backends import base
from pathnn.nn.cuda_graphs.padded_copies import PaddedShape
from pathnn.nn.cuda_graphs.padded_modules import can_be_padded, reads_edges, reads_paths
from pathnn.paths.ragged import RaggedTries
from pathnn.training.config import RunConfig
from pathnn.training.cuda_graphs.capture import CudaGraphForward, CudaGraphStep
from pathnn.training.cuda_graphs.padded_batch import graph_sizes
from pathnn.training.loop import Stepper, TrainState
from pathnn.training.scoring import as_targets
from pathnn.training.setup import Loaders


class CudaGraphStepper(Stepper):
    """Compute batches as CUDA graphs, captured when first needed; other batches operation by operation."""

    def __init__(self, state: TrainState, loaders: Loaders, config: RunConfig) -> None:
        super().__init__(state, loaders)
        self._model, self._paths = state.model, reads_paths(state.model)
        self._blocks = len(state.model.blocks) if isinstance(state.model, DeepPathNN) else 1
        self._loss = partial(_loss, self.loss, loaders.scale.encoder(loaders.train.device))
        self._options: dict[str, Any] = {
            "autocast": config.precision == "bf16-mixed",
            "pool": torch.cuda.graph_pool_handle(),
        }
        self._sizes = graph_sizes(loaders.train.graphs, paths=self._paths)
        self._shapes: dict[int, list[PaddedShape]] = {}
        self._steps: dict[PaddedShape, CudaGraphStep] = {}
        self._forwards: dict[PackedLoader, dict[int, CudaGraphForward]] = {}

    def train_step(self, index: Tensor, share: float) -> Tensor:
        """Compute the gradients of a batch of training graphs, and return its loss times `share`, which is 1."""
        number = index.numel()
        if number not in self._shapes:
            self._shapes[number] = self._find_shapes(number)
        totals = self._sizes[index].sum(dim=0)
        shapes = [shape for shape in self._shapes[number] if shape.holds(totals)]
        if not shapes:
            return super().train_step(index, share)
        smallest, largest = shapes[0], shapes[-1]
        if largest not in self._steps:
            self._step_of(largest).prepare(index)  # before smaller ones, which then use its memory
        return self._step_of(smallest)(index)

    def predict(self, loader: PackedLoader, index: Tensor) -> Tensor:
        """Return the outputs for a batch of the graphs of a loader."""
        if loader not in self._forwards:
            self._forwards[loader] = self._make_forwards(loader)
        forward = self._forwards[loader].get(index.numel())
        return forward(index) if forward is not None and forward.fits(index) else super().predict(loader, index)

    def _step_of(self, capacity: PaddedShape) -> CudaGraphStep:
        if capacity not in self._steps:
            self._steps[capacity] = CudaGraphStep(
                self._model,
                self.loaders.train.graphs,
                self._loss,
                capacity=capacity,
                recompute=not fits_memory(capacity, self.loaders.train, times=2 * self._blocks),
                **self._options,
            )
        return self._steps[capacity]

    def _find_shapes(self, number: int) -> list[PaddedShape]:
        loader = self.loaders.train
        shapes = [self._room(shape) for shape in PaddedShape.shapes(self._sizes[loader.index], number)]
        return [shape for shape in shapes if fits_memory(shape, loader, times=self._blocks)]

    def _room(self, capacity: PaddedShape) -> PaddedShape:
        return capacity.with_room() if reads_edges(self._model) else capacity

    def _make_forwards(self, loader: PackedLoader) -> dict[int, CudaGraphForward]:
        """Return for each size of the loader's batches how to compute them, if the largest fits into memory."""
        sizes = graph_sizes(loader.graphs, paths=self._paths)
        forwards: dict[int, CudaGraphForward] = {}
        batches = loader.indices(0)
        for number in {batch.numel() for batch in batches}:
            totals = torch.stack([sizes[batch].sum(dim=0) for batch in batches if batch.numel() == number])
            capacity = self._room(PaddedShape.holding(totals.amax(dim=0), number))
            if fits_memory(capacity, loader):
                model = self.state.evaluated
                forwards[number] = CudaGraphForward(model, loader.graphs, capacity=capacity, **self._options)
        return forwards


def _loss(function: nn.Module, encode: Callable[[Tensor], Tensor], out: Tensor, y: Tensor) -> Tensor:
    loss: Tensor = function(out, as_targets(encode(y), out))
    return loss


def can_be_captured(state: TrainState, loaders: Loaders, config: RunConfig) -> bool:
    """Return whether the batches of a run can be computed as CUDA graphs."""
    model, fabric, graphs = state.model, state.fabric, loaders.train.graphs
    if fabric.device.type != "cuda" or fabric.world_size > 1 or config.precision not in PRECISIONS:
        return False
    if graphs.x is None or graphs.device.type != "cuda" or not base.on_triton(next(model.parameters())):
        return False
    if reads_paths(model) and not isinstance(graphs.tries, RaggedTries):
        return False
    return can_be_padded(model, graphs.edge_index)


PRECISIONS = ("32-true", "tf32", "bf16-mixed")


def fits_memory(capacity: PaddedShape, loader: PackedLoader, *, times: int = 1) -> bool:
    """Return whether `times` padded batches fit into memory; larger batches are cut, without a CUDA graph."""
    return loader.max_entries is None or times * sum(capacity.levels) <= loader.max_entries
