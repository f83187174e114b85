"""Capture a training step or a prediction as a CUDA graph, which replays all its kernels in one launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from pathnn.data.packed import PackedGraphs
from pathnn.nn import Baseline, DeepPathNN, PathNN
from pathnn.nn.backends import base
from pathnn.nn.backends.base import Budget
from pathnn.nn.cuda_graphs.capture import capture_cuda_graph
from pathnn.nn.cuda_graphs.padded_copies import PaddedCopies, PaddedShape, find_slot
from pathnn.nn.cuda_graphs.padded_modules import can_be_padded, padded_copy, reads_edges, reads_paths
from pathnn.nn.path_lstm import PathLSTM
from pathnn.nn.path_nn import PathModel
from pathnn.training.cuda_graphs.padded_batch import PaddedBatches, PaddedEdges, PaddedRows
from pathnn.training.scoring import features
from pathnn.training.setup import Model


class _Captured:
    """A model on padded batches of a dataset (`capacity` is their shape), or on padded copies, and its CUDA graph."""

    def __init__(
        self,
        model: Model,
        graphs: PackedGraphs | PaddedCopies,
        *,
        capacity: PaddedShape | None = None,
        autocast: bool = False,
        pool: Any = None,
    ) -> None:
        self.model, self._autocast, self._pool = model, autocast, pool
        self.batches: PaddedRows | PaddedCopies
        if isinstance(graphs, PaddedCopies):
            self.batches = graphs
        else:
            assert capacity is not None
            self.batches = (
                PaddedBatches(graphs, capacity, with_edges=reads_edges(model))
                if reads_paths(model)
                else PaddedEdges(graphs, capacity)
            )
        self._graph: torch.cuda.CUDAGraph | None = None

    def fits(self, batch: Any) -> bool:
        """Return whether a batch fits the padded shape."""
        return self.batches.fits(batch)

    def _load(self, batch: Any) -> None:
        if not self.fits(batch):
            raise ValueError(
                f"a batch of {len(batch)} graphs exceeds {self.batches.capacity}. Check fits(batch) first, "
                "and compute such batches without a CUDA graph."
            )
        self.batches.load(batch)

    def _forward(self, model: Model, budget: Budget) -> tuple[Tensor, Tensor | None]:
        """Return the outputs of `model` for the loaded graphs without the padding, and their targets."""
        rows = self.batches.assemble()
        x, edge_attr = features(model, rows.x, rows.edge_attr)
        size = self.batches.capacity.graphs
        structure: dict[str, Any] = {"trie": self.batches.trie, "batch": self.batches.batch, "batch_size": size + 1}
        structure |= {"budget": budget} if isinstance(model, PathModel) else {}
        structure |= {"random_walk_pe": rows.random_walk_pe} if isinstance(model, DeepPathNN) else {}
        structure |= {"graph_attr": rows.graph_attr} if model.config.graph_channels else {}
        # Without cached weights: a CUDA graph would read the values from its capture.
        with torch.autocast("cuda", torch.bfloat16, enabled=self._autocast, cache_enabled=False):
            out: Tensor = model(x, self.batches.edge_index, edge_attr=edge_attr, **structure)
        return out[:size].float(), rows.y


class CudaGraphStep(_Captured):
    """Compute the batch, outputs, loss and gradients of a training step in one launch (not the optimizer step).

    Gradients equal those of the step without padding up to rounding (dropout draws other random numbers). The capture
    runs the model a few times, then restores its statistics and the random generator. Without `recompute`, the backward
    pass takes up to twice the memory. CUDA graphs that share a `pool` may never run at the same time, and one may
    overwrite the gradients of another.
    """

    def __init__(
        self,
        model: Model,
        graphs: PackedGraphs | PaddedCopies,
        loss: Callable[[Tensor, Tensor], Tensor],
        *,
        recompute: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(model, graphs, **options)
        self._recompute, self._loss_function = recompute, loss
        self._loss: Tensor | None = None
        self._grads: list[tuple[nn.Parameter, Tensor]] = []

    def __call__(self, batch: Any) -> Tensor:
        """Compute the step for a batch; return the loss. Gradients are in `p.grad` until the next step."""
        self.prepare(batch)
        assert self._graph is not None
        assert self._loss is not None
        self._graph.replay()
        for parameter, grad in self._grads:
            parameter.grad = grad
        return self._loss.clone()

    def prepare(self, batch: Any) -> None:
        """Load a batch, which must fit; capture the step if it has not been captured yet."""
        self._load(batch)
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
    """Compute the outputs of a model in evaluation mode for a batch of graphs, in one launch."""

    def __init__(self, model: Model, graphs: PackedGraphs, **options: Any) -> None:
        super().__init__(model, graphs, **options)
        paths = isinstance(model, PathModel)
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


def capture(
    model: nn.Module, optimizer: Optimizer, loss: Callable[[Tensor, Tensor], Tensor], *, recompute: bool = True
) -> Callable[[Any], Tensor]:
    """Return the training step of a loop: a function of a PyG batch, which trains on it and returns the loss.

    On an NVIDIA GPU, outputs, loss and gradients of a `PathNN`, a `DeepPathNN` or a baseline are computed as CUDA
    graphs, one for each of a few padded shapes. Everything else, and batches that fit no shape, is computed operation
    by operation: the same step. Batches are moved to the device of the model.

    Args:
        model: called as `model(batch)`.
        optimizer: of the parameters of the model; the step calls it.
        loss: from the outputs and `batch.y` to a scalar.
        recompute: whether the backward pass recomputes gates; otherwise it takes up to twice the memory.

    >>> from torch_geometric.data import Data
    >>> from torch_geometric.loader import DataLoader
    >>> pair = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.ones(1, 1))
    >>> model = PathNN(3, 8, 1, collection="ap", k=1)
    >>> step = capture(model, torch.optim.Adam(model.parameters()), nn.L1Loss())
    >>> losses = [step(batch) for batch in DataLoader([pair] * 8, batch_size=4)]
    >>> losses[0].shape
    torch.Size([])
    """
    return _CapturedSteps(model, optimizer, loss, recompute=recompute)


class _CapturedSteps:
    def __init__(self, model: Any, optimizer: Optimizer, loss: Callable[[Tensor, Tensor], Tensor], *, recompute: bool):
        self.model, self.optimizer, self.loss = model, optimizer, loss
        on_gpu = base.on_triton(next(model.parameters()))
        self._captures = on_gpu and isinstance(model, PathNN | DeepPathNN | Baseline) and can_be_padded(model)
        self._recompute, self._pool = recompute, torch.cuda.graph_pool_handle() if self._captures else None
        self._steps: list[CudaGraphStep] = []

    def __call__(self, batch: Any) -> Tensor:
        model = self.model
        device = next(model.parameters()).device
        batch = batch.to(device, non_blocking=True)
        if batch.y is None:
            raise ValueError("the batch has no targets: expected them in batch.y.")
        if not model.training:
            model.train()
        value = None
        if self._captures and not torch.is_autocast_enabled(device.type):
            value = self._replay(batch)
        if value is None:
            self.optimizer.zero_grad()
            value = self.loss(model(batch), batch.y)
            value.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return value.detach()

    def _replay(self, batch: Any) -> Tensor | None:
        """Compute loss and gradients as a CUDA graph; return None for a batch that cannot be one."""
        model = self.model
        inputs: dict[str, Any] = {**model._inputs_of(batch), "y": batch.y}
        x, nodes = inputs["x"], inputs["batch"]
        if isinstance(model, DeepPathNN) and model.config.walk_length:
            walks = model._walks(inputs["random_walk_pe"], inputs["edge_index"], x.size(0))
            inputs["random_walk_pe"] = walks.to(x.device, torch.float32)
        if not reads_paths(model):
            inputs["trie"] = None
        else:
            given, find = inputs["trie"], model._paths if isinstance(model, DeepPathNN) else model._trie
            trie = find(x, inputs["edge_index"] if given is None else None, given, nodes, inputs["edge_attr"])
            limit = next(part.max_entries for part in model.modules() if isinstance(part, PathLSTM))
            if trie.k != model.config.k or not trie.edge.numel() or (limit is not None and trie.num_entries > limit):
                return None
            inputs["trie"] = trie
        if nodes is None:
            inputs |= {"batch": x.new_zeros(x.size(0), dtype=torch.int64), "batch_size": 1}
        if inputs["batch_size"] is None or batch.y.shape[:1] != (inputs["batch_size"],):
            return None
        options: Any = {"recompute": self._recompute, "pool": self._pool}

        def make(shape: PaddedShape) -> CudaGraphStep:
            copies = PaddedCopies(inputs, shape, with_edges=reads_edges(model))
            return CudaGraphStep(model, copies, self.loss, **options)

        step = find_slot(self._steps, inputs, make)
        return None if step is None else step(inputs)
