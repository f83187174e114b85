"""Capture a training step or a prediction as a CUDA graph, which replays all its kernels in one launch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from pathnn.data.packed import PackedGraphs
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget
from pathnn.training.cuda_graphs.padded_batch import PaddedBatches, PaddedEdges, PaddedRows, PaddedShape
from pathnn.training.cuda_graphs.padded_modules import padded_copy
from pathnn.training.scoring import features
from pathnn.training.setup import Model

WARM_UP = 3
"""Runs before the capture, in which kernels are compiled and libraries create their handles."""


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """Return the one stream of a GPU for captures: torch reuses the memory of a pool only on the same stream."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def capture_cuda_graph(run: Callable[[], None], pool: Any = None) -> torch.cuda.CUDAGraph:
    """Capture the kernels that `run` launches.

    `run` is called a few times before the capture, on a side stream: the caller restores what these calls change.

    ```python
    graph = capture_cuda_graph(lambda: out.copy_(model(x)))
    x.copy_(batch)
    graph.replay()                             # `out` now has the output for the batch
    ```

    CUDA graphs that never run at the same time can share the memory `pool`, if each result is read before the next one
    runs. Capture the largest first: the others reuse its memory, and all take little more than the largest alone.
    """
    side = _side_stream(torch.cuda.current_device())
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=side):  # libraries keep their memory per stream
        run()
    return graph


class _Captured:
    """A model on padded batches of some graphs, and the CUDA graph that is captured with the first batch."""

    def __init__(
        self, model: Model, graphs: PackedGraphs, *, capacity: PaddedShape, autocast: bool = False, pool: Any = None
    ) -> None:
        self.model, self._autocast, self._pool = model, autocast, pool
        batches = PaddedBatches if isinstance(model, PathNN) else PaddedEdges
        self.batches: PaddedRows = batches(graphs, capacity)
        self._graph: torch.cuda.CUDAGraph | None = None

    def fits(self, index: Tensor) -> bool:
        """Return whether the batch of these graphs fits the padded shape."""
        return self.batches.fits(index)

    def _load(self, index: Tensor) -> None:
        if not self.fits(index):
            raise ValueError(
                f"a batch of {index.numel()} graphs exceeds {self.batches.capacity}. Check fits(index) first, "
                "and compute such batches without a CUDA graph."
            )
        self.batches.load(index)

    def _forward(self, model: Model, budget: Budget) -> tuple[Tensor, Tensor | None]:
        """Return the outputs of `model` for the loaded graphs without the padding, and their targets."""
        x, edge_attr, y = self.batches.assemble()
        x, edge_attr = features(model, x, edge_attr)
        size = self.batches.capacity.graphs
        structure: dict[str, Any] = {"trie": self.batches.trie, "batch": self.batches.batch, "batch_size": size + 1}
        structure |= {"budget": budget} if isinstance(model, PathNN) else {}
        # Without cached weights: a CUDA graph would read the values from its capture.
        with torch.autocast("cuda", torch.bfloat16, enabled=self._autocast, cache_enabled=False):
            out: Tensor = model(x, self.batches.edge_index, edge_attr=edge_attr, **structure)
        return out[:size].float(), y


class CudaGraphStep(_Captured):
    """Compute the batch, outputs, loss and gradients of a training step in one launch (not the optimizer step).

    ```python
    step = CudaGraphStep(model, graphs, nn.L1Loss(), capacity=PaddedShape.shapes(graph_sizes(graphs), 128)[-1])
    for index in batches:                      # graph numbers, on the CPU
        loss = step(index)                     # gradients are in p.grad, as after loss.backward()
        optimizer.step()
    ```

    The step uses the parameters of the model and updates its running statistics. Gradients equal those of the step
    without padding up to rounding (dropout draws other random numbers). The capture runs the model a few times on the
    first batch, and then restores its running statistics and the state of the random generator.

    Args:
        model: on the GPU, in float32, for which `can_be_padded` is true.
        graphs: on the GPU, with targets, and with paths for a PathNN.
        loss: from the predictions and the targets of the batch to a scalar.
        recompute: whether the backward pass recomputes gates; otherwise it takes up to twice the memory.
        options: `capacity`, the shape of the padded batch; `autocast`, whether to compute in bfloat16; and `pool`,
            memory shared with CUDA graphs that never run at the same time (`torch.cuda.graph_pool_handle()`): one may
            then overwrite the gradients of another.
    """

    def __init__(
        self,
        model: Model,
        graphs: PackedGraphs,
        loss: Callable[[Tensor, Tensor], Tensor],
        *,
        recompute: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(model, graphs, **options)
        self._recompute, self._loss_function = recompute, loss
        self._loss: Tensor | None = None
        self._grads: list[tuple[nn.Parameter, Tensor]] = []

    def __call__(self, index: Tensor) -> Tensor:
        """Compute the step for the graphs `index`; return the loss. Gradients are in `p.grad` until the next step."""
        self.prepare(index)
        assert self._graph is not None
        assert self._loss is not None
        self._graph.replay()
        for parameter, grad in self._grads:
            parameter.grad = grad
        return self._loss.clone()

    def prepare(self, index: Tensor) -> None:
        """Load the batch of these graphs, which must fit; capture the step if it has not been captured yet."""
        self._load(index)
        if self._graph is None:
            self._capture()

    def _capture(self) -> None:
        self.model.train()
        padded = padded_copy(self.model, self.batches.valid)
        random = torch.cuda.get_rng_state()
        buffers = [(buffer, buffer.clone()) for buffer in self.model.buffers()]

        def run() -> None:
            self.model.zero_grad(set_to_none=True)
            out, y = self._forward(padded, Budget(recompute=self._recompute))
            assert y is not None
            loss = self._loss_function(out, y)
            loss.backward()  # type: ignore[no-untyped-call]
            self._loss = loss.detach()

        self._graph = capture_cuda_graph(run, self._pool)
        self._grads = [(p, p.grad) for p in self.model.parameters() if p.grad is not None]
        for buffer, before in buffers:
            buffer.copy_(before)
        torch.cuda.set_rng_state(random)


class CudaGraphForward(_Captured):
    """Compute the outputs of a model in evaluation mode for a batch of graphs, in one launch.

    ```python
    predict = CudaGraphForward(model, graphs, capacity=PaddedShape.shapes(graph_sizes(graphs), 128)[-1])
    out = predict(index)                       # [len(index), out_channels]
    ```
    """

    def __init__(self, model: Model, graphs: PackedGraphs, **options: Any) -> None:
        super().__init__(model, graphs, **options)
        paths = isinstance(model, PathNN)
        self._padded = model if paths else padded_copy(model, self.batches.valid).eval()
        self._out: Tensor | None = None

    @torch.inference_mode()
    def __call__(self, index: Tensor) -> Tensor:
        """Return the outputs for the graphs `index`, `[len(index), out_channels]`."""
        self._load(index)
        self.model.eval()
        if self._graph is None:
            self._graph = capture_cuda_graph(self._predict, self._pool)
        self._graph.replay()
        assert self._out is not None
        return self._out.clone()

    def _predict(self) -> None:
        self._out = self._forward(self._padded, Budget())[0]
