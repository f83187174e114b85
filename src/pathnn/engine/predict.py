"""Outputs of a model for many graphs, in one process or several."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from pathnn.data.batch import GraphBatch
from pathnn.data.loader import PackedLoader
from pathnn.engine.build import Model
from pathnn.engine.loaders import batch_indices
from pathnn.nn import PathNN

Forward = Callable[[Tensor], Tensor]
"""From the numbers of some graphs to the outputs for them."""


class Step(nn.Module):
    """A model as a function of a batch, handed over as one thing: Fabric would look for tensors inside it."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Handle) -> Tensor:
        """The outputs of the graphs of a batch."""
        return apply(self.model, batch.content)


class Handle:
    """Something that is passed on as it is."""

    def __init__(self, content: GraphBatch) -> None:
        self.content = content


def apply(model: Model, batch: GraphBatch) -> Tensor:
    """The outputs of `model` for the graphs of a batch, `[num_graphs, out_channels]`."""
    if isinstance(model, PathNN):
        model.lstm.max_entries = batch.max_entries
    x, edge_attr = features(model, batch.x, batch.edge_attr)
    out: Tensor = model(
        x,
        None if isinstance(model, PathNN) and batch.trie is not None else batch.edge_index,
        trie=batch.trie,
        batch=batch.batch,
        edge_attr=edge_attr,
        batch_size=batch.num_graphs,
    )
    return out


def features(model: Model, x: Tensor | None, edge_attr: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Features as `model` reads them: real numbers in its type, and edges only if it reads them."""
    if x is None:
        raise ValueError("the graphs have no vertex features: give them an x.")
    dtype = next(model.parameters()).dtype
    reads_edges = model.config.edge_channels is not None and edge_attr is not None
    return _cast(x, dtype), _cast(edge_attr, dtype) if reads_edges and edge_attr is not None else None


def predict(
    model: Model, loader: PackedLoader, *, fabric: Fabric | None = None, forward: Forward | None = None
) -> Tensor:
    """The model's outputs for the graphs of `loader`, in its order: `[graphs, out_channels]`, float32 or
    more. `forward` takes the place of calling the model on a batch of the loader.

    With several processes each works on its share of the batches, and each gets all outputs. The model is
    called as it is, not as DDP wraps it: that would wait for the others at every batch, of which each process
    may have another number.

    ```python
    graphs = load_dataset("csl").graphs.with_paths(collection="sp", k=2)
    model = PathNN(1, 32, 10, collection="sp", k=2)
    out = predict(model, PackedLoader(graphs, batch_size=32))
    ```
    """
    rank, world_size = (0, 1) if fabric is None else (fabric.global_rank, fabric.world_size)
    model.eval()
    batches = batch_indices(loader, 0)
    rows = torch.split(torch.arange(loader.index.numel()), [batch.numel() for batch in batches])
    width = model.config.out_channels or model.config.hidden_channels
    dtype = torch.promote_types(next(model.parameters()).dtype, torch.float32)
    outputs = torch.zeros(loader.index.numel(), width, dtype=dtype, device=loader.device)
    if forward is None:

        def forward(index: Tensor) -> Tensor:
            return apply(model, loader.batch(index))

    with torch.inference_mode(), nullcontext() if fabric is None else fabric.autocast():
        for i in range(rank, len(batches), world_size):
            outputs[rows[i].to(loader.device)] = forward(batches[i]).to(dtype)
    if fabric is not None and world_size > 1:
        # Every row is filled in one process and 0 in the others: the sum is exact.
        outputs = fabric.all_reduce(outputs, reduce_op="sum")
    return outputs.clone()  # a tensor made in inference mode cannot be used in training


def _cast(values: Tensor, dtype: torch.dtype) -> Tensor:
    return values.to(dtype) if values.is_floating_point() else values
