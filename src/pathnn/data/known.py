"""Targets that are known for some graphs only: NaN where they are not."""

from __future__ import annotations

from collections.abc import Callable

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
    the data that is gone through (`for_targets`), and not by the number of those known in the batch. So the loss of a
    batch is the mean over its graphs still, and several processes, and steps that are padded, find the same one.
    Without a share a batch is taken to be all there is.

    >>> loss = KnownLoss(nn.L1Loss)
    >>> loss(torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, torch.nan]]))
    tensor(2.)
    """

    def __init__(self, loss: type[nn.Module], share: float | None = None) -> None:
        super().__init__()
        if share is not None and not 0 < share <= 1:
            raise ValueError(f"share={share}: expected the share of known targets, above 0 and at most 1.")
        self.each, self.share, self.reduction = loss(reduction="none"), share, "mean"

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        """The mean, or with `reduction = "none"` a loss for each target: 0 where it is not known."""
        known = ~y.isnan()
        share = known.sum().clamp(min=1) / known.numel() if self.share is None else self.share
        each = torch.where(known, self.each(out, torch.where(known, y, 0.0)), 0.0) / share
        return each.mean() if self.reduction == "mean" else each


def for_targets(make: Callable[[], nn.Module], y: Tensor) -> nn.Module:
    """The loss that `make` makes, for batches of these targets: that of all is the mean over those that are known.

    >>> y = torch.tensor([[3.0, torch.nan], [1.0, 1.0]])
    >>> loss = for_targets(lambda: KnownLoss(nn.L1Loss), y)
    >>> [round(float(loss(torch.zeros_like(part), part)), 4) for part in (y, y[:1], y[1:])]  # (3 + 1 + 1) / 3
    [1.6667, 2.0, 1.3333]
    """
    loss = make()
    if isinstance(loss, KnownLoss):
        loss.share = known_share(y)
    return loss
