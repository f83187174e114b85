"""The mean absolute error where some targets are not known."""

from __future__ import annotations

import torch
from torch import Tensor
from torchmetrics import Metric


class KnownMeanAbsoluteError(Metric):
    """The mean over targets of the mean absolute error of each, over the graphs for which it is known (not NaN).

    >>> metric = KnownMeanAbsoluteError(2)
    >>> metric.update(torch.zeros(3, 2), torch.tensor([[1.0, 4.0], [3.0, torch.nan], [2.0, torch.nan]]))
    >>> metric.compute()  # 2 and 4
    tensor(3.)
    """

    is_differentiable = True
    higher_is_better = False
    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self, num_targets: int) -> None:
        super().__init__()
        self.add_state("total", torch.zeros(num_targets), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros(num_targets), dist_reduce_fx="sum")

    def update(self, out: Tensor, y: Tensor) -> None:
        """Add predictions and targets `[graphs, targets]`."""
        known = ~y.isnan()
        self.total += torch.where(known, (out - y).abs(), 0.0).sum(dim=0)
        self.count += known.sum(dim=0)

    def compute(self) -> Tensor:
        """The mean over targets that are known for any graph."""
        there = self.count > 0
        return (self.total[there] / self.count[there]).mean()
