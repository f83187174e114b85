"""Steps of several networks at once, each on a batch of its own, as CUDA graphs.

A batch of 32 small graphs leaves most of a GPU idle, and takes as many launches as a large one. Here every launch works
for all networks: see `pathnn.nn.stacked`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs
from pathnn.nn.backends.triton.kernels.blocks import cover
from pathnn.nn.stack import Stack
from pathnn.nn.stacked import stacked_twin
from pathnn.training.cuda_graphs.capture import capture_cuda_graph, padded_batches, predict_padded
from pathnn.training.cuda_graphs.padded_batch import PaddedShape
from pathnn.training.setup import Model

BLOCK = 128
"""Rows of one network come in multiples of this: no block of a product has rows of two."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""From outputs and targets to a loss for each graph."""


class StackedAdam:
    """Adam for every network of a stack; the same numbers as `torch.optim.Adam` for each."""

    def __init__(self, stack: Stack, *, weight_decay: float) -> None:
        self.stack, self.weight_decay = stack, weight_decay
        self.betas, self.eps = (0.9, 0.999), 1e-8
        self.mean, self.square = torch.zeros_like(stack.flat.detach()), torch.zeros_like(stack.flat.detach())
        self.steps = [0] * stack.models

    def paces(self, takes_part: Tensor, lrs: Sequence[float]) -> Tensor:
        """Step sizes for the next steps, of which each network takes those of `takes_part`, `[steps, models]`: what
        `kernels.adam` reads, `[steps, models, 3]`, on the CPU. The networks' steps are counted on.

        `lrs` are the networks' learning rates.
        """
        number = takes_part.long().cumsum(dim=0) + torch.tensor(self.steps)
        self.steps = number[-1].tolist()
        first, second = (1.0 - beta ** number.clamp(min=1).double() for beta in self.betas)
        sizes = torch.tensor(lrs, dtype=torch.float64) / first
        return torch.stack([sizes, second.sqrt(), takes_part.double()], dim=2).float()

    def step(self, grad: Tensor, pace: Tensor) -> None:
        """Change the weights of the networks that take part."""
        from pathnn.nn.backends.triton.kernels.adam import adam_step

        weight, rests = self.stack.flat.detach(), [1.0 - beta for beta in self.betas]
        adam_step[(cover(weight.numel(), 1024),)](
            weight, grad, self.mean, self.square, self.stack.owner, pace, weight.numel(),
            *rests, self.eps, self.weight_decay, BLOCK=1024,
        )  # fmt: skip


class StackedSteps:
    """All networks' steps and predictions for batches of one shape, recorded when first needed.

    Args:
        model: one of the networks, for its shape.
        stack, adam: the weights of all, and how they change.
        graphs: the dataset, on the GPU, with paths and targets.
        loss: a loss for each graph.
        capacity: of the batch of one network; rounded up to whole blocks.
        pool: memory of CUDA graphs that never run at the same time.
    """

    def __init__(
        self,
        model: Model,
        stack: Stack,
        adam: StackedAdam,
        graphs: PackedGraphs,
        loss: Loss,
        *,
        capacity: PaddedShape,
        pool: Any = None,
    ) -> None:
        self.stack, self.adam = stack, adam
        self.batches = padded_batches(model, graphs, capacity.rounded(BLOCK), stack.models)
        self._twin = stacked_twin(model, stack, self.batches.valid)
        self._loss, self._pool = loss, pool
        device = graphs.device
        self._pace = torch.zeros(stack.models, 3, device=device)
        self.total = torch.zeros(stack.models, dtype=torch.float64, device=device)
        self._step: torch.cuda.CUDAGraph | None = None
        self._forward: torch.cuda.CUDAGraph | None = None
        self._out: Tensor | None = None

    @property
    def recorded(self) -> bool:
        """Whether the training step has been recorded."""
        return self._step is not None

    @property
    def capacity(self) -> PaddedShape:
        """What the batch of one network holds."""
        return self.batches.capacity

    def step(self, plan: Tensor, pace: Tensor) -> None:
        """A training step for the batches of `plan` (see `plan_of`); the losses of all graphs are added to `total`."""
        self.prepare(plan, pace)
        assert self._step is not None
        self._step.replay()

    def prepare(self, plan: Tensor, pace: Tensor) -> None:
        """Put the batches of `plan` in place; record the step if that has not been done."""
        self.batches.layout.copy_(plan)
        self._pace.copy_(pace)
        if self._step is None:
            self._step = self._record_step()

    def predict(self, plan: Tensor) -> Tensor:
        """The outputs for the batches of `plan`, `[models, graphs, channels]`; overwritten by the next call."""
        self.batches.layout.copy_(plan)
        if self._forward is None:
            self._forward = self._record_forward()
        self._forward.replay()
        assert self._out is not None
        return self._out

    def run_step(self) -> None:
        """The step itself, operation by operation."""
        stack, models = self.stack, self.stack.models
        stack.refresh()
        stack.flat.grad = None
        out, y = predict_padded(self._twin, self.batches)
        assert y is not None
        each = self._loss(out, y).view(models, self.capacity.graphs, -1).mean(dim=2)
        count = self.batches.layout[:, -1, -1:]
        true = torch.arange(self.capacity.graphs, device=out.device) < count
        losses = torch.where(true, each, 0.0).sum(dim=1)
        (losses / count.squeeze(1).clamp(min=1)).sum().backward()  # type: ignore[no-untyped-call]
        stack.release()
        self.adam.step(stack.grad, self._pace)
        self.total += losses.detach()

    def run_forward(self) -> Tensor:
        """The predictions themselves, operation by operation."""
        with torch.no_grad():
            self.stack.refresh()
            out, _ = predict_padded(self._twin, self.batches)
        return out.view(self.stack.models, self.capacity.graphs, -1)

    def _record_step(self) -> torch.cuda.CUDAGraph:
        self._twin.train()
        changed = [self.stack.flat.detach(), self.adam.mean, self.adam.square, self.total]
        changed += self.stack.statistics.values()
        before, random = [tensor.clone() for tensor in changed], torch.cuda.get_rng_state()
        graph = capture_cuda_graph(self.run_step, self._pool)
        for tensor, kept in zip(changed, before, strict=True):
            tensor.copy_(kept)
        torch.cuda.set_rng_state(random)
        return graph

    def _record_forward(self) -> torch.cuda.CUDAGraph:
        self._twin.eval()

        def run() -> None:
            self._out = self.run_forward()

        return capture_cuda_graph(run, self._pool)


def plan_of(batches: Sequence[Sequence[Tensor]], sizes: Tensor, graphs: int) -> Tensor:
    """What to take in each step: `[steps, models, graphs + 1, columns]`, int32, on the CPU, from the batches of each
    network. A network with fewer batches than others has none in the last steps.

    See `pathnn.nn.backends.triton.kernels.gather`; the number of graphs of a batch is the last number of its plan.

    >>> plan = plan_of([[torch.tensor([1, 0])], [torch.tensor([1])]], torch.tensor([[3, 2, 2], [4, 5, 5]]), 2)
    >>> plan[0, 0].tolist()
    [[0, 0, 0, 1], [4, 5, 5, 0], [7, 7, 7, 2]]
    >>> plan[0, 1].tolist()
    [[0, 0, 0, 1], [4, 5, 5, 0], [4, 5, 5, 1]]
    """
    steps = max(len(own) for own in batches)
    index = torch.full((steps, len(batches), graphs), -1)
    for model, own in enumerate(batches):
        for step, batch in enumerate(own):
            index[step, model, : batch.numel()] = batch
    there, index = index >= 0, index.clamp(min=0)
    plan = torch.zeros(steps, len(batches), graphs + 1, sizes.size(1) + 1, dtype=torch.int32)
    plan[:, :, 1:, :-1] = (sizes[index] * there.unsqueeze(3)).cumsum(dim=2)
    plan[:, :, :-1, -1] = index
    plan[:, :, -1, -1] = there.sum(dim=2)
    return plan
