"""Compute the outputs, the loss and the metric of a model: during training, and of a trained model on new data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pathnn.data.loader import PackedLoader
from pathnn.data.metrics import OF_KIND, score_targets
from pathnn.data.packed import GraphBatch
from pathnn.data.readers.table import class_key
from pathnn.data.task import TargetScale, Task, loss_for, target_fields
from pathnn.nn import DeepPathNN, PathNN
from pathnn.nn.backends.base import Budget
from pathnn.nn.path_nn import PathModel
from pathnn.training.checkpoint import TaskSignature
from pathnn.training.errors import MismatchError, RunError
from pathnn.training.run_folder import finite
from pathnn.training.setup import Model, check_finite_targets

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Evaluation:
    """A loss and a score. `score` is the metric in the unit of the paper (percent for accuracy).

    It is NaN if it is not defined: the area under the ROC curve of graphs of a single class. `scores` has all metrics
    of the kind of target by name, and `targets` that of each of several targets; they are computed when first read from
    `inputs`: the outputs in the unit of the targets, the targets, and the task.
    """

    loss: float
    score: float
    graphs: int
    inputs: tuple[Tensor, Tensor, Task] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def scores(self) -> dict[str, float]:
        """Return the score of every metric by name, in its unit; NaN for one that is not defined."""
        return all_scores(*self.inputs) if self.inputs else {}

    @cached_property
    def targets(self) -> dict[str, float]:
        """Return the score of each of several targets by name; none for one target."""
        return target_scores(*self.inputs) if self.inputs else {}


def evaluate(
    model: Model,
    loader: PackedLoader,
    task: Task,
    *,
    scale: TargetScale | None = None,
    fabric: Fabric | None = None,
    forward: Forward | None = None,
) -> Evaluation:
    """Return loss and score of `model` on the graphs of `loader`, the same in every process.

    The metric gets all graphs at once, so it does not depend on the batch size. `forward` is that of `model_outputs`.

    ```python
    task, config = load_dataset("csl"), RunConfig(data="csl", collection="sp", k=2)
    model = build_model(config, task)
    loaders = make_loaders(task, config, model, device="cpu")
    print(evaluate(model, loaders.test, loaders.task).score)     # of an untrained network
    ```
    """
    if loader.index.numel() == 0:
        raise RunError(f"{task.name}: there are no graphs to evaluate on.")
    scale = TargetScale() if scale is None else scale
    out = model_outputs(model, loader, fabric=fabric, forward=forward)
    return measure(out, targets(task, loader.index), task, scale)


def measure(out: Tensor, y: Tensor, task: Task, scale: TargetScale) -> Evaluation:
    """Return loss and score of a network's outputs (in its own unit) for some targets."""
    if task.loss is None or task.metric is None:
        raise RunError(f"{task.name} has no targets: expected a task with a loss and a metric.")
    y, decoded = y.to(out.device), scale.decode(out)
    loss = float(loss_for(task.loss, y).to(out)(out, as_targets(scale.encode(y), out)))
    metric = task.metric().to(out.device)
    metric.set_dtype(decoded.dtype)
    metric.update(*task.metric_inputs(decoded, y))
    score = float(metric.compute()) * task.scale
    return Evaluation(loss, score, out.size(0), (decoded, y, task))


def all_scores(out: Tensor, y: Tensor, task: Task) -> dict[str, float]:
    """Return all metrics by name for outputs in the unit of the targets; several targets have the mean of theirs."""
    out, y, scores = out.cpu(), y.cpu(), {}
    for name, info in OF_KIND.get(task.target, {}).items():
        if task.target == "class":
            found = info.score(out, y)
        else:
            own = task.score if task.score is not None and info.name == task.metric_name else info.score
            found = score_targets(own, out, y.reshape(out.shape)).nanmean()
        scores[name] = float(found) * info.scale
    return scores


def targets(task: Task, index: Tensor) -> Tensor:
    """Return the targets of some graphs."""
    y = task.graphs.y
    if y is None:
        raise RunError(f"{task.name} has no targets: for a CSV, name the column with --target.")
    return y[index.to(y.device)]


def as_targets(y: Tensor, out: Tensor) -> Tensor:
    """Return targets as a loss reads them: on the device of the outputs, and in their type unless they are classes."""
    y = y.to(out.device)
    return y.to(out.dtype) if y.is_floating_point() or y.dtype == torch.bool else y


Forward = Callable[[Tensor], Tensor]
"""From the numbers of some graphs to their outputs."""


class Step(nn.Module):
    """A model as a function of a function that returns a batch, so that Fabric does not look for tensors in it."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Callable[[], GraphBatch]) -> Tensor:
        """Return the outputs for the graphs of a batch."""
        return apply(self.model, batch())


def apply(model: Model, batch: GraphBatch, *, merge: bool = False) -> Tensor:
    """Return the outputs of `model` for the graphs of a batch, `[num_graphs, out_channels]`; `merge` as in `Budget`."""
    x, edge_attr = features(model, batch.x, batch.edge_attr)
    more: dict[str, Any] = {}
    if isinstance(model, PathModel):
        more["budget"] = Budget(batch.max_entries, merge=merge)
    if isinstance(model, DeepPathNN):
        more["random_walk_pe"] = batch.random_walk_pe
    return model(
        x,
        None if isinstance(model, PathNN) and batch.trie is not None else batch.edge_index,
        trie=batch.trie,
        batch=batch.batch,
        edge_attr=edge_attr,
        graph_attr=batch.graph_attr if model.config.graph_channels else None,
        batch_size=batch.num_graphs,
        **more,
    )


def features(model: Model, x: Tensor | None, edge_attr: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Return features as `model` reads them: numbers in its type, and edge features only if it reads them."""
    if x is None:
        raise ValueError("the graphs have no vertex features: give them an x.")
    dtype = next(model.parameters()).dtype
    reads_edges = model.config.edge_channels is not None and edge_attr is not None
    return _cast(x, dtype), _cast(edge_attr, dtype) if reads_edges and edge_attr is not None else None


def _cast(values: Tensor, dtype: torch.dtype) -> Tensor:
    return values.to(dtype) if values.is_floating_point() else values


def model_outputs(
    model: Model,
    loader: PackedLoader,
    *,
    fabric: Fabric | None = None,
    forward: Forward | None = None,
    merge: bool = False,
) -> Tensor:
    """Return the outputs of a network for the graphs of `loader`, in its order.

    They are `[graphs, out_channels]`, or of a network without a readout `[vertices, out_channels]`, in float32 or a
    wider type. `forward` replaces the call of the model on a batch,
    and `merge` is that of `Budget`. With several processes, each computes its share of the batches, and each gets all
    outputs. The model is called without DDP, which would wait for the other processes at every batch, and their
    numbers of batches may differ.

    ```python
    graphs = load_dataset("csl").graphs.with_paths(collection="sp", k=2)
    model = PathNN(1, 32, 10, collection="sp", k=2)
    out = model_outputs(model, PackedLoader(graphs, batch_size=32))
    ```
    """
    rank, world_size = (0, 1) if fabric is None else (fabric.global_rank, fabric.world_size)
    model.eval()
    batches = loader.indices(0)
    nodes = loader.graphs.node_ptr.cpu().diff()
    numbers = [int(nodes[batch].sum()) if model.readout is None else batch.numel() for batch in batches]
    rows = torch.split(torch.arange(sum(numbers)), numbers)
    width = model.config.out_channels or model.config.hidden_channels
    dtype = torch.promote_types(next(model.parameters()).dtype, torch.float32)
    outputs = torch.zeros(sum(numbers), width, dtype=dtype, device=loader.device)
    call = forward or (lambda index: apply(model, loader.batch(index), merge=merge))
    with torch.inference_mode(), nullcontext() if fabric is None else fabric.autocast():
        for i in range(rank, len(batches), world_size):
            outputs[rows[i].to(loader.device)] = call(batches[i]).to(dtype)
    if fabric is not None and world_size > 1:
        # Every row is filled in one process and 0 in the others: the sum is exact.
        outputs = fabric.all_reduce(outputs, reduce_op="sum")
    return outputs.clone()  # a tensor made in inference mode cannot be used in training


def target_scores(out: Tensor, y: Tensor, task: Task) -> dict[str, float]:
    """Return the metric of each of several targets by name (NaN: not defined) for outputs in their unit."""
    if task.score is None or task.out_channels < 2:
        return {}
    scores = (score_targets(task.score, out, y) * task.scale).tolist()
    names = task.classes if len(task.classes) == len(scores) else map(str, range(len(scores)))
    return dict(zip(names, scores, strict=True))


def result_scores(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return `scores` and `targets` of evaluations (or `Predictions`) by part of the data, for `result.json`."""
    each = {part: finite(found.targets) for part, found in parts.items() if found.targets}
    scores = {part: finite(found.scores) for part, found in parts.items()}
    return {"scores": scores, **({"targets": each} if each else {})}


def comparable(signature: TaskSignature, task: Task) -> Task:
    """Return the task with its classes numbered as in training; raise `MismatchError` if targets do not match."""
    signature.check_inputs(task)
    if signature.target == "class":
        task = align_classes(task, signature.classes)
    signature.check_targets(task)
    check_finite_targets(task)
    return task


def align_classes(task: Task, known: Sequence[str]) -> Task:
    """Return the task with its classes numbered as in `known`, the names in training; of numbers, "3" is "3.0".

    Raises `MismatchError` for a class that is not known.
    """
    y = task.graphs.y
    if task.target != "class" or y is None or not task.classes or not known:
        return task
    number = {class_key(name): i for i, name in enumerate(known)}
    unseen = [name for name in task.classes if class_key(name) not in number]
    if unseen:
        raise MismatchError(
            f"{task.name} has {_words(unseen)}, which the model was not trained on: expected {_words(known)}. "
            "Leave those graphs out, name another column (--target), or train a model on data that has them."
        )
    codes = torch.tensor([number[class_key(name)] for name in task.classes], device=y.device)
    graphs = replace(task.graphs, y=codes[y])
    return replace(task, graphs=graphs, classes=tuple(known), **target_fields("class", len(known)))


def _words(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    kind = "the class" if len(names) == 1 else "the classes"
    return f"{kind} {', '.join(map(repr, names[:most]))}{more}"
