"""The loss and the metric of a model on some graphs, by its task's own rules."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn
from torchmetrics import Metric

from pathnn.data.batch import GraphBatch
from pathnn.data.loader import PackedLoader
from pathnn.data.targets import TargetScale, loss_for
from pathnn.data.task import Task
from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget
from pathnn.training.errors import RunError
from pathnn.training.setup import Model, batch_indices


@dataclass(frozen=True)
class Evaluation:
    """What came out: `score` is the metric in the unit of the paper (percent for accuracy), NaN where it is not
    defined: the ROC curve of graphs that are all yes, or all no.
    """

    loss: float
    score: float
    graphs: int


def evaluate(
    model: Model,
    loader: PackedLoader,
    task: Task,
    *,
    scale: TargetScale | None = None,
    fabric: Fabric | None = None,
    forward: Forward | None = None,
) -> Evaluation:
    """Loss and score of `model` on the graphs of `loader`, the same in every process.

    The metric sees all graphs at once, so that it does not depend on the batch size. `forward` is as in `predict`.

    ```python
    task, config = load_dataset("csl"), RunConfig(data="csl", collection="sp", k=2)
    model = build_model(config, task)
    loaders = make_loaders(task, config, model, device="cpu")
    print(evaluate(model, loaders.test, loaders.task).score)     # of a network that has learned nothing
    ```
    """
    if loader.index.numel() == 0:
        raise RunError(f"{task.name}: there are no graphs to evaluate on.")
    scale = TargetScale() if scale is None else scale
    out = predict(model, loader, fabric=fabric, forward=forward)
    return measure(out, targets(task, loader.index), task, scale)


def measure(out: Tensor, y: Tensor, task: Task, scale: TargetScale, *, metric: Metric | None = None) -> Evaluation:
    """Loss and score of the network's outputs (in its own unit) against targets. `metric` is one that `task` has made,
    to be used again.
    """
    if task.loss is None or task.metric is None:
        raise RunError(f"{task.name} has no targets: expected a task with a loss and a metric.")
    y, decoded = y.to(out.device), scale.decode(out)
    loss = float(loss_for(task.loss, y)(out, as_targets(scale.encode(y), out)))
    if metric is None:
        metric = task.metric().to(out.device)
        metric.set_dtype(decoded.dtype)
    metric.reset()
    metric.update(*task.metric_inputs(decoded, y))
    return Evaluation(loss, float(metric.compute()) * task.scale, out.size(0))


def targets(task: Task, index: Tensor) -> Tensor:
    """The targets of some graphs."""
    y = task.graphs.y
    if y is None:
        raise RunError(f"{task.name} has no targets: for a CSV, name the column with --target.")
    return y[index.to(y.device)]


def as_targets(y: Tensor, out: Tensor) -> Tensor:
    """Targets as the loss of these outputs reads them: there, and of their type unless they are classes.

    >>> as_targets(torch.tensor([True, False]), torch.zeros(2)).dtype
    torch.float32
    """
    y = y.to(out.device)
    return y.to(out.dtype) if y.is_floating_point() or y.dtype == torch.bool else y


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
    x, edge_attr = features(model, batch.x, batch.edge_attr)
    out: Tensor = model(
        x,
        None if isinstance(model, PathNN) and batch.trie is not None else batch.edge_index,
        trie=batch.trie,
        batch=batch.batch,
        edge_attr=edge_attr,
        batch_size=batch.num_graphs,
        **({"budget": Budget(batch.max_entries)} if isinstance(model, PathNN) else {}),
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


def target_scores(out: Tensor, y: Tensor, task: Task) -> tuple[float, ...]:
    """The metric of each target by itself, over the graphs for which it is known; none for one target or for classes.

    `out` is in the targets' unit. NaN is not defined: nothing is known, or nothing is yes. The mean of the others is
    the metric of the task.
    """
    from pathnn.data.metrics import score_targets

    if task.score is None or task.out_channels < 2:
        return ()
    return tuple((score_targets(task.score, out, y.to(out.device)) * task.scale).tolist())
