"""Targets in units in which a network learns well: minus their mean, over their standard deviation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target over the training graphs; empty where targets stay as they
    are.

    >>> import torch
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

    def encoder(self, like: Tensor) -> Callable[[Tensor], Tensor]:
        """`encode` for targets of this type and device, with its numbers there already: nothing is copied in a call."""
        if not self.mean:
            return lambda y: y
        mean, std = like.new_tensor(self.mean), like.new_tensor(self.std)
        return lambda y: (y - mean) / std

    def encode(self, y: Tensor) -> Tensor:
        """Targets as the network learns them."""
        return self.encoder(y)(y)

    def decode(self, out: Tensor) -> Tensor:
        """The network's outputs in the targets' own unit."""
        return out * out.new_tensor(self.std) + out.new_tensor(self.mean) if self.mean else out


def _known_mean_std(y: Tensor) -> tuple[Tensor, Tensor]:
    mean = y.nanmean(dim=0)
    return mean, (y - mean).square().nanmean(dim=0).sqrt()
