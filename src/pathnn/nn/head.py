"""From a graph's (or vertex') vector to a prediction."""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor, nn

from pathnn.checks import check_choice

HeadName = Literal["mlp", "linear"]


class MLPHead(nn.Module):
    """Linear, ReLU, dropout, Linear: the head of the paper's real-world experiments.

    >>> import torch
    >>> MLPHead(8, 2)(torch.ones(3, 8)).shape
    torch.Size([3, 2])
    """

    def __init__(self, channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(channels, channels)
        self.linear2 = nn.Linear(channels, out_channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor) -> Tensor:
        """Predict from `[n, channels]`: `[n, out_channels]`."""
        out: Tensor = self.linear2(self.dropout(self.linear1(h).relu()))
        return out


def make_head(head: HeadName | None, channels: int, out_channels: int | None, *, dropout: float) -> nn.Module:
    """The head of a name; None: the representations themselves are the output."""
    check_choice("head", head, (*get_args(HeadName), None))
    if head is None:
        if out_channels is not None:
            raise ValueError(f"out_channels={out_channels}: a model without a head has none; expected None.")
        return nn.Identity()
    if out_channels is None:
        raise ValueError(f"out_channels=None: expected a number with head={head!r}, or head=None for no head.")
    if out_channels < 1:
        raise ValueError(f"out_channels={out_channels}: expected at least 1, or None with head=None.")
    if head == "linear":
        return nn.Linear(channels, out_channels)
    return MLPHead(channels, out_channels, dropout=dropout)
