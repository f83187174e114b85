"""A task: graphs with their features, targets, loss, metric and splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from pathnn.data.errors import BadRow
from pathnn.data.metrics import TargetScore
from pathnn.data.packed import PackedGraphs

if TYPE_CHECKING:
    from pathnn.data.readers.smiles import Descriptors


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
        group = torch.unique(groups, return_inverse=True)[1]
        first = torch.full_like(order, num_graphs).scatter_reduce(0, group, place, "amin")[group]
        place = torch.argsort(torch.argsort(first * num_graphs + place))
        place = torch.full_like(order, num_graphs).scatter_reduce(0, group, place, "amin")[group]
    part = cuts[place]
    return Split(*((part == i).nonzero().flatten() for i in range(3)))


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
