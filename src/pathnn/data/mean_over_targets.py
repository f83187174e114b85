"""A metric of several targets, some of which may be unknown: the mean of the metric of each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.data import dim_zero_cat

from pathnn.data.metrics import TargetScore


class MeanOverTargets(Metric):
    """The mean over targets of a score of each, over the graphs for which it is known (not NaN); targets for which the
    score is not defined are passed over.

    >>> from pathnn.data.metrics import mean_absolute_error
    >>> metric = MeanOverTargets(mean_absolute_error)
    >>> metric.update(torch.zeros(3, 2), torch.tensor([[1.0, 4.0], [3.0, torch.nan], [2.0, torch.nan]]))
    >>> metric.compute()  # 2 and 4
    tensor(3.)
    """

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
        """The mean over targets; NaN where it is not defined for any."""
        scores = score_targets(self.score, dim_zero_cat(self.out), dim_zero_cat(self.y))
        return scores.nanmean()


def score_targets(score: TargetScore, out: Tensor, y: Tensor) -> Tensor:
    """The score of each target, `[targets]`, over the graphs for which it is known; NaN where it is not defined."""
    each = []
    for mine, truth in zip(out.unbind(dim=1), y.unbind(dim=1), strict=True):
        known = ~truth.isnan()
        each.append(score(mine[known], truth[known]))
    return torch.stack(each)
