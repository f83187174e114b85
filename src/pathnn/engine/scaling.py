"""Targets in units in which a network learns well: minus their mean, over their standard deviation.

Both ways are computed in float64: with a large mean, float32 would lose the digits in which targets differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target over the training graphs; empty where targets stay as they
    are.

    >>> scale = TargetScale.of(torch.tensor([[1.0], [3.0]]))
    >>> scale.decode(scale.encode(torch.tensor([[2.5]]))).item()
    2.5
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @staticmethod
    def of(y: Tensor) -> TargetScale:
        """The scale of training targets `[graphs, targets]`; a constant target is only shifted. NaN is not known, and
        passed over."""
        y = y.double()
        mean, std = _known_mean_std(y) if bool(y.isnan().any()) else (y.mean(dim=0), y.std(dim=0, correction=0))
        std = std.where(std > 0, 1.0)
        return TargetScale(tuple(mean.tolist()), tuple(std.tolist()))

    def encoder(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """`encode` for targets on this device, with its numbers there already: nothing is copied in a call."""
        if not self.mean:
            return lambda y: y
        mean, std = self._tensors(device)
        return lambda y: (y.double() - mean) / std

    def encode(self, y: Tensor) -> Tensor:
        """Targets as the network learns them, in float64; unchanged where there is no scale."""
        return self.encoder(y.device)(y)

    def decode(self, out: Tensor) -> Tensor:
        """The network's outputs in the targets' own unit, in float64; unchanged where there is no scale."""
        if not self.mean:
            return out
        mean, std = self._tensors(out.device)
        return out.double() * std + mean

    def _tensors(self, device: torch.device) -> tuple[Tensor, Tensor]:
        mean, std = torch.tensor([self.mean, self.std], dtype=torch.float64, device=device)
        return mean, std


def _known_mean_std(y: Tensor) -> tuple[Tensor, Tensor]:
    mean = y.nanmean(dim=0)
    return mean, (y - mean).square().nanmean(dim=0).sqrt()
