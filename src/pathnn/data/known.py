"""Targets that are known for some graphs only: NaN where they are not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn


def known_share(y: Tensor | None) -> float:
    """The share of the targets that are known.

    >>> known_share(torch.tensor([[1.0, torch.nan], [0.0, 3.0]]))
    0.75
    """
    if y is None or not y.is_floating_point() or y.numel() == 0:
        return 1.0
    return float((~y.isnan()).double().mean())


class KnownLoss(nn.Module):
    """A loss of each target, over those that are known: each weighs as much as any other, whichever batch it is in.

    The sum over a batch is divided by the number of targets times `share`, the share of them that is known in all of
    the data that is gone through, and not by the number of those known in the batch. So the loss of a batch is the mean
    over its graphs still, and several processes, and steps that are padded, find the same one.

    >>> loss = KnownLoss(nn.L1Loss, share=0.5)
    >>> loss(torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, torch.nan]]))
    tensor(2.)
    """

    def __init__(self, loss: type[nn.Module], share: float) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"share={share}: expected the share of known targets, above 0 and at most 1.")
        self.each, self.share, self.reduction = loss(reduction="none"), share, "mean"

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        """The mean, or with `reduction = "none"` a loss for each target: 0 where it is not known."""
        known = ~y.isnan()
        each = torch.where(known, self.each(out, torch.where(known, y, 0.0)), 0.0) / self.share
        return each.mean() if self.reduction == "mean" else each


def known_loss(loss: type[nn.Module], share: float) -> partial[KnownLoss]:
    """What makes such a loss, as `Task.loss` wants it."""
    return partial(KnownLoss, loss, share)


def for_targets(make: Callable[[], nn.Module], y: Tensor) -> nn.Module:
    """The loss that `make` makes, for these targets and no others: their mean, where only some are known.

    >>> y = torch.tensor([[3.0, torch.nan], [1.0, 1.0]])
    >>> round(float(for_targets(known_loss(nn.L1Loss, 0.1), y)(torch.zeros(2, 2), y)), 4)  # (3 + 1 + 1) / 3
    1.6667
    """
    loss = make()
    if isinstance(loss, KnownLoss):
        loss.share = known_share(y)
    return loss
