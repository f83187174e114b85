"""Metrics of torchmetrics that collect predictions; apart from `metrics`, since importing torchmetrics takes 70 MiB."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.data import dim_zero_cat

from pathnn.data.metrics import TargetScore, score_targets


class MeanOverTargets(Metric):
    """The mean of a score over the targets for which it is defined, each over the graphs with a known target."""

    full_state_update = False
    out: Any
    y: Any

    def __init__(self, score: TargetScore) -> None:
        super().__init__()
        self.score = score
        self.add_state("out", [], dist_reduce_fx="cat")
        self.add_state("y", [], dist_reduce_fx="cat")

    def update(self, out: Tensor, y: Tensor) -> None:
        """Add predictions and targets, `[graphs, targets]` or `[graphs]`."""
        self.out.append(out.reshape(out.size(0), -1))
        self.y.append(y.reshape(y.size(0), -1))

    def compute(self) -> Tensor:
        """Return the mean over targets; NaN if no target has a defined score."""
        scores = score_targets(self.score, dim_zero_cat(self.out), dim_zero_cat(self.y))
        return scores.nanmean()


class OverClasses(MeanOverTargets):
    """A score of the outputs for classes, `[graphs, classes]`, and the numbers of the classes, `[graphs]`."""

    def compute(self) -> Tensor:
        """Return the score of all graphs."""
        return self.score(dim_zero_cat(self.out), dim_zero_cat(self.y).flatten())
