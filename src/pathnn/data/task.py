"""A task: graphs with their features and splits, and the kinds of targets with their losses, metrics and scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from pathnn.data.errors import BadRow, DataError
from pathnn.data.metrics import OF_KIND, MetricInfo, TargetScore
from pathnn.data.packed import PackedGraphs

if TYPE_CHECKING:
    from pathnn.data.readers.descriptors import Descriptors


def random_split(
    num_graphs: int, *, seed: int = 0, val: float = 0.1, test: float = 0.1, groups: Tensor | None = None
) -> Split:
    """Split at random from `seed`, with the given fractions for validation and test.

    Graphs with the same number in `groups` stay together.

    >>> random_split(10)
    Split(train=8, val=1, test=1)
    """
    if not (0 <= val < 1 and 0 <= test < 1 and val + test < 1):
        raise ValueError(f"val={val}, test={test}: expected fractions of at least 0 with a sum below 1.")
    order = torch.randperm(num_graphs, generator=torch.Generator().manual_seed(seed))
    num_val, num_test = round(num_graphs * val), round(num_graphs * test)
    cuts = torch.repeat_interleave(torch.arange(3), torch.tensor([num_graphs - num_val - num_test, num_val, num_test]))
    place = torch.argsort(order)
    if groups is not None:  # copies move to the first of them in the random order, and to the part where that one is
        group = torch.unique(groups.cpu(), return_inverse=True)[1]
        first = torch.full_like(order, num_graphs).scatter_reduce(0, group, place, "amin")[group]
        place = torch.argsort(torch.argsort(first * num_graphs + place))
        place = torch.full_like(order, num_graphs).scatter_reduce(0, group, place, "amin")[group]
    return Split.of(cuts[place])


TargetKind = Literal["class", "binary", "multilabel", "regression", "none"]


Vocabulary = Mapping[str, list[list[float]]]
"""The numbers that codes stand for, in order, for each column of a table of TU data, by the name of the table."""


@dataclass(frozen=True)
class Categorical:
    """Integer codes to be embedded and summed: one column per entry of `sizes`, each code below that size."""

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Continuous:
    """Features of `channels` floating numbers (one-hot codes included)."""

    channels: int


Features = Categorical | Continuous


@dataclass(frozen=True, eq=False)
class Split:
    """The numbers of the graphs for training, validation and test."""

    train: Tensor
    val: Tensor
    test: Tensor

    @staticmethod
    def of(part: Tensor) -> Split:
        """Return the split with the part of each graph, `[G]`: 0 for training, 1 for validation, 2 for test."""
        return Split(*((part == i).nonzero().flatten() for i in range(3)))

    def __repr__(self) -> str:
        return f"Split(train={self.train.numel()}, val={self.val.numel()}, test={self.test.numel()})"


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Graphs, their targets, and how to train and evaluate on them.

    `loss()` makes the loss, called as `loss(out, y)` with `out` `[G, out_channels]`. `metric()` makes the
    torchmetrics metric, updated with `task.metric_inputs(out, y)`. `y` is `[G]`, int64, for
    classes; else `[G, out_channels]`, float32, or float64 for a regression on a user's data.

    Attributes:
        score: the metric of one target; None for classes.
        has_missing_targets: whether `y` is NaN for unknown targets, which loss and metric skip.
        splits: one or more; empty for a task without training.
        node_features, edge_features: the form of `x` and `edge_attr`; None without them.
        maximize: whether a larger metric is better.
        scale: the factor from the metric to the unit of tables (100 for percent).
        pairs: graph numbers to be distinguished, `[pairs, 2]`; "all" for all pairs; None for other tasks.
        classes: names of the classes, or of the target columns.
        notes: remarks on the data, such as differences from the published files.
        skipped: rows of a user's file that were left out.
        vocabulary: the meaning of the codes of a user's labels, for reading other files with the same codes.
        groups: the first copy of each of a user's molecules, `[G]`; splits keep copies together.
        descriptors: what `graphs.graph_attr` has, for computing the same for other molecules.
    """

    name: str
    title: str
    graphs: PackedGraphs
    node_features: Features | None
    edge_features: Features | None = None
    target: TargetKind = "none"
    out_channels: int = 0
    loss: Callable[[], nn.Module] | None = None
    metric: Callable[[], Any] | None = None
    metric_name: str = ""
    score: TargetScore | None = None
    has_missing_targets: bool = False
    maximize: bool = True
    scale: float = 1.0
    splits: tuple[Split, ...] = ()
    pairs: Tensor | Literal["all"] | None = None
    classes: tuple[str, ...] = ()
    licence: str = ""
    citation: str = ""
    notes: str = ""
    skipped: tuple[BadRow, ...] = ()
    vocabulary: Vocabulary = field(default_factory=dict)
    groups: Tensor | None = None
    descriptors: Descriptors | None = None

    def __repr__(self) -> str:
        return (
            f"Task(name={self.name!r}, graphs={len(self.graphs)}, target={self.target!r}, "
            f"out_channels={self.out_channels}, splits={len(self.splits)})"
        )

    def metric_inputs(self, out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions and targets in the shapes that torchmetrics expects."""
        return (out.flatten(), y.flatten()) if self.target == "binary" else (out, y)

    def pair_index(self) -> Tensor:
        """Return the pairs of graphs to be distinguished, `[pairs, 2]`, int64."""
        if self.pairs is None:
            raise ValueError(f"{self.name} has no pairs of graphs: expected a task such as EXP, SR or BREC.")
        if isinstance(self.pairs, Tensor):
            return self.pairs
        return torch.combinations(torch.arange(len(self.graphs)))

    def rows(self) -> list[int]:
        """Return the row of the user's file, counted from 1, that each graph comes from."""
        left_out = {bad.row for bad in self.skipped}
        return [row for row in range(1, len(self.graphs) + len(left_out) + 1) if row not in left_out]

    def with_graphs(self, graphs: PackedGraphs) -> Task:
        """Replace the graphs, for example by the same graphs with paths."""
        return replace(self, graphs=graphs)

    def validate(self) -> Task:
        """Return the task, or raise `ValueError` for the first inconsistency."""
        self.graphs.validate()
        _check_features("node_features", self.node_features, self.graphs.x)
        _check_features("edge_features", self.edge_features, self.graphs.edge_attr)
        for i, split in enumerate(self.splits):
            everything = torch.cat([split.train, split.val, split.test])
            if torch.unique(everything).numel() != everything.numel():
                raise ValueError(f"split {i} of {self.name}: a graph is in two parts.")
            if everything.numel() and int(everything.max()) >= len(self.graphs):
                raise ValueError(f"split {i} of {self.name}: graph {int(everything.max())} does not exist.")
        self._check_target()
        return self

    def _check_target(self) -> None:
        y = self.graphs.y
        if self.target == "none" or y is None:
            return
        if self.target == "class":
            if y.dim() != 1 or y.dtype != torch.long or int(y.max()) >= self.out_channels:
                raise ValueError(f"{self.name}: expected classes 0 to {self.out_channels - 1} as int64 [G].")
        elif tuple(y.shape) != (len(self.graphs), self.out_channels) or not y.is_floating_point():
            raise ValueError(f"{self.name}: expected floating targets [G, {self.out_channels}], got {tuple(y.shape)}.")


def _check_features(name: str, features: Features | None, values: Tensor | None) -> None:
    if features is None or values is None:
        if (features is None) != (values is None):
            raise ValueError(f"{name}: {features} does not match a {type(values).__name__}.")
        return
    columns = values.size(1) if values.dim() > 1 else 1
    if isinstance(features, Continuous):
        if columns != features.channels:
            raise ValueError(f"{name}: expected {features.channels} channels, got {columns}.")
        return
    largest = values.view(values.size(0), columns).long().amax(dim=0) if values.size(0) else None
    if columns != len(features.sizes):
        raise ValueError(f"{name}: expected {len(features.sizes)} columns, got {columns}.")
    if largest is not None and bool((largest >= torch.tensor(features.sizes, device=largest.device)).any()):
        raise ValueError(f"{name}: codes up to {largest.tolist()} do not fit into sizes {features.sizes}.")


def number_name(value: float) -> str:
    """Name a class that is given as a number."""
    return str(int(value)) if value == int(value) else repr(float(value))


def known_fraction(y: Tensor | None) -> float:
    """Return the fraction of the targets that are known."""
    if y is None or not y.is_floating_point() or y.numel() == 0:
        return 1.0
    return float((~y.isnan()).double().mean())


class MaskedLoss(nn.Module):
    """A loss over the known targets, which all have the same weight, whatever their batch.

    The sum is divided by all targets of the batch times `share`, the fraction that is known in all data (None: in the
    batch). So it is a mean over graphs, and is the same with several processes and with padded batches.
    """

    def __init__(self, loss: Callable[..., nn.Module], share: float | None = None) -> None:
        super().__init__()
        if share is not None and not 0 < share <= 1:
            raise ValueError(f"share={share}: expected the fraction of known targets, above 0 and at most 1.")
        self.each, self.share, self.reduction = loss(reduction="none"), share, "mean"

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        """Return the mean; with `reduction = "none"`, the loss of each target, 0 for an unknown one."""
        known = ~y.isnan()
        share = known.sum().clamp(min=1) / known.numel() if self.share is None else self.share
        each = torch.where(known, self.each(out, torch.where(known, y, torch.zeros_like(y))), 0.0) / share
        return each.mean() if self.reduction == "mean" else each


def loss_for(make: Callable[[], nn.Module], y: Tensor) -> nn.Module:
    """Make the loss for batches of the targets `y`; over all of `y` it is the mean over the known targets."""
    loss = make()
    if isinstance(loss, MaskedLoss):
        loss.share = known_fraction(y)
    return loss


LOSSES: dict[str, type[nn.Module]] = {"l1": nn.L1Loss, "mse": nn.MSELoss, "huber": nn.HuberLoss}
"""The losses of a regression by name."""


def regression_loss(task: Task, name: str) -> Callable[[], nn.Module]:
    """Return how to make the loss of a regression by its name; the loss is masked if targets may be unknown."""
    return partial(MaskedLoss, LOSSES[name]) if task.has_missing_targets else LOSSES[name]


def weighted_loss(task: Task, y: Tensor) -> Callable[[], nn.Module]:
    """Return how to make a loss with weights inverse to the frequencies of classes, or of 0 and 1, in `y`.

    The weight has the mean 1 over the graphs, and the loss of a batch is the mean over its graphs, as of `MaskedLoss`.
    """
    if task.target == "class":
        counts = torch.bincount(y, minlength=task.out_channels).clamp(min=1)
        weight = y.numel() / (counts.numel() * counts)
        return partial(MaskedLoss, partial(nn.CrossEntropyLoss, weight=weight), 1.0)
    weight = (y == 0).sum(dim=0).clamp(min=1) / (y == 1).sum(dim=0).clamp(min=1)
    weighted = partial(nn.BCEWithLogitsLoss, pos_weight=weight)
    return partial(MaskedLoss, weighted) if task.has_missing_targets else weighted


def target_fields(kind: TargetKind, channels: int = 1, *, has_missing_targets: bool = False) -> dict[str, Any]:
    """Return the fields of a `Task` that describe its targets, with the default loss and metric of their kind."""
    loss = {"class": nn.CrossEntropyLoss, "regression": nn.L1Loss}.get(kind, nn.BCEWithLogitsLoss)
    return {
        "target": kind,
        "out_channels": channels,
        "loss": partial(MaskedLoss, loss) if has_missing_targets else loss,
        "has_missing_targets": has_missing_targets,
        **metric_fields(kind, next(iter(OF_KIND[kind].values()))),
    }


def metric_fields(kind: str, info: MetricInfo) -> dict[str, Any]:
    """Return the fields of a `Task` that describe its metric."""
    return {
        "metric": partial(_metric, kind, info.score),
        "metric_name": info.name,
        "score": None if kind == "class" else info.score,
        "maximize": info.maximize,
        "scale": info.scale,
    }


def _metric(kind: str, score: TargetScore) -> Any:
    from pathnn.data.metric_states import MeanOverTargets, OverClasses

    return (OverClasses if kind == "class" else MeanOverTargets)(score)


def with_metric(task: Task, metric: str | None) -> Task:
    """Replace the metric of a task (None: keep it)."""
    if metric is None:
        return task
    known = OF_KIND.get(task.target, {})
    if metric not in known:
        expected = ", ".join(known) if known else "none, since there are no targets"
        raise DataError(f"metric={metric!r} is not for targets of the kind {task.target!r}: expected {expected}.")
    info = known[metric]
    return task if info.name == task.metric_name else replace(task, **metric_fields(task.target, info))


def guess_kind(y: Tensor | None) -> TargetKind:
    """Guess the kind of target from the values of `y`."""
    if y is None:
        return "none"
    several = y.dim() > 1 and y.size(1) > 1
    if not y.is_floating_point():
        return "multilabel" if several else "class"
    unknown = y.isnan() & several
    if bool(((y == 0) | (y == 1) | unknown).all()) and bool((y == 0).any()) and bool((y == 1).any()):
        return "multilabel" if several else "binary"
    return "regression"


def convert_targets(y: Tensor, kind: TargetKind) -> Tensor:
    """Convert targets to the form of their kind; raise `DataError` for values that it does not have."""
    if kind == "class":
        y = y.view(len(y), -1)
        if y.size(1) != 1:
            raise DataError(f"kind='class' takes one target column, got {y.size(1)}.")
        if y.is_floating_point() and not bool(y.isfinite().all()):
            graph = int((~y.isfinite()).nonzero()[0, 0])
            raise DataError(f"the class of graph {graph} is NaN or infinite: expected a number. Leave that graph out.")
        codes: Tensor = torch.unique(y.view(-1), return_inverse=True)[1]
        return codes
    exact = kind == "regression" and y.dtype not in (torch.float32, torch.float16, torch.bfloat16)
    y = (y.double() if exact else y.float()).view(len(y), -1)
    if kind == "binary" and y.size(1) != 1:
        raise DataError(f"kind='binary' takes one target, got {y.size(1)}: expected kind='multilabel' for several.")
    wrong = (y != 0) & (y != 1) & ~(y.isnan() & (y.size(1) > 1))
    if kind in ("binary", "multilabel") and bool(wrong.any()):
        row, column = wrong.nonzero()[0].tolist()
        raise DataError(
            f"kind={kind!r} takes targets of 0 and 1, got {y[row, column]:g} in graph {row}: expected kind='class' or "
            "'regression' for other values."
        )
    return y


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target over the training graphs; empty for targets without a scale."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @staticmethod
    def of(y: Tensor) -> TargetScale:
        """Compute the scale of training targets `[graphs, targets]`; skip NaN, and only shift a constant target."""
        y = y.double()
        if bool(y.isnan().any()):
            mean = y.nanmean(dim=0)
            std = (y - mean).square().nanmean(dim=0).sqrt()
        else:
            mean, std = y.mean(dim=0), y.std(dim=0, correction=0)
        std = std.where(std > 0, 1.0)
        return TargetScale(tuple(mean.tolist()), tuple(std.tolist()))

    def encoder(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """Return `encode` for targets on `device`; a call copies nothing to it."""
        if not self.mean:
            return lambda y: y
        mean, std = self._tensors(device)
        return lambda y: (y.double() - mean) / std

    def encode(self, y: Tensor) -> Tensor:
        """Standardize targets, in float64; unchanged without a scale."""
        return self.encoder(y.device)(y)

    def decode(self, out: Tensor) -> Tensor:
        """Convert outputs of the network to the unit of the targets, in float64; unchanged without a scale."""
        if not self.mean:
            return out
        mean, std = self._tensors(out.device)
        return out.double() * std + mean

    def _tensors(self, device: torch.device) -> tuple[Tensor, Tensor]:
        mean, std = torch.tensor([self.mean, self.std], dtype=torch.float64, device=device)
        return mean, std
