"""Aggregate the vertices of each graph, and predict from the result."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from pathnn.checks import check_choice
from pathnn.nn.backends import base
from pathnn.nn.kernel_regression import KernelRegression

ReadoutName = Literal["sum", "mean"]


class Readout(nn.Module):
    """Sum (equation 4 of the paper) or average over the vertices of each graph.

    Shapes: `h` is `[num_nodes, channels]`, `batch` is `[num_nodes]` or None for one graph; returns
    `[num_graphs, channels]` in the dtype of `h`. Half precision is summed in float32; under autocast the result is
    float32.

    >>> Readout("mean")(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1])).tolist()
    [[2.0], [5.0]]
    """

    def __init__(self, kind: ReadoutName = "sum") -> None:
        super().__init__()
        self.kind = check_choice("readout", kind, get_args(ReadoutName))

    def forward(self, h: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None) -> Tensor:
        """Aggregate over graphs; `batch_size`, their number, is computed from `batch` if it is None."""
        out = self._aggregate(base.wide(h), batch, batch_size)
        return out if torch.is_autocast_enabled(h.device.type) else out.to(h.dtype)

    def _aggregate(self, h: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
        if batch is None:
            if batch_size not in (None, 1):
                raise ValueError(f"batch_size={batch_size} without batch: expected the graph of each vertex in batch.")
            out = h.sum(dim=0, keepdim=True)
            return out if self.kind == "sum" else out / max(h.size(0), 1)
        if batch.shape != h.shape[:1]:
            raise ValueError(f"batch: expected one graph id per vertex, {h.size(0)}, got shape {tuple(batch.shape)}.")
        if batch.dtype not in (torch.int64, torch.int32):
            raise ValueError(f"batch: expected graph ids, torch.int64, got {batch.dtype}.")
        if batch_size is None:
            batch_size = int(batch.max()) + 1 if batch.numel() else 0
            if batch_size < 1 <= batch.numel():
                raise ValueError(f"batch holds graph {batch_size - 1}: expected ids from 0.")
        elif batch.device.type == "cpu" and batch.numel() and not torch.compiler.is_compiling():  # a GPU would wait
            last = int(batch.max())
            if last >= batch_size:
                raise ValueError(
                    f"batch_size={batch_size}, but batch names graph {last}: expected the number of graphs, at least "
                    f"{last + 1}. Leave it out to compute it from batch."
                )
        if base.on_triton(h):
            from pathnn.nn.backends.triton.ops import segment_sum

            out = segment_sum(h, batch, batch_size)
        else:
            out = h.new_zeros(batch_size, h.size(1)).index_add_(0, batch, h)
        if self.kind == "sum":
            return out
        return base.divide_by_counts(out, batch)

    def extra_repr(self) -> str:
        """Return the text that `print(model)` shows."""
        return repr(self.kind)


CLIP = 6.0
"""Graph features are at most this many standard deviations from their mean."""

COUNTS = 0.1
"""The factor of counts of substructures; standardised, rare ones would be large, and networks overfit them."""


class GraphScale(nn.Module):
    """Standardise the features of graphs with the mean and deviation of the training graphs.

    After `fit`, values are clipped to 6 deviations, and features that are constant in the training graphs are 0. NaN
    and infinities become 0, the mean. Before `fit`, only they change.
    """

    mean: Tensor
    factor: Tensor
    limit: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("factor", torch.ones(channels))
        self.register_buffer("limit", torch.tensor(1e30))

    def fit(self, graph_attr: Tensor, *, counts: int = 0) -> None:
        """Use the statistics of training graphs, without NaN and infinities; the first `counts` get `COUNTS`."""
        values = graph_attr.double()
        values = torch.where(values.isfinite(), values, torch.nan)
        mean = values.nanmean(dim=0)
        std = (values - mean).square().nanmean(dim=0).sqrt()
        self.mean.copy_(mean.nan_to_num())
        self.factor.copy_(torch.where(std > 1e-7 * mean.abs(), 1 / std, 0.0).nan_to_num(posinf=0.0))
        self.mean[:counts], self.factor[:counts] = 0.0, COUNTS
        self.limit.fill_(CLIP)

    def forward(self, graph_attr: Tensor) -> Tensor:
        """Return standardised features, `[graphs, channels]`, in the type of the model."""
        if graph_attr.dim() != 2 or graph_attr.size(1) != self.mean.numel():
            raise ValueError(
                f"graph_attr: expected {self.mean.numel()} numbers per graph (graph_channels), got shape "
                f"{tuple(graph_attr.shape)}."
            )
        values = (graph_attr.to(self.mean) - self.mean) * self.factor
        return torch.where(values.isfinite(), values, 0.0).clamp(-self.limit, self.limit)


def join_graph_attr(h: Tensor, graph_attr: Tensor | None, scale: nn.Module | None) -> Tensor:
    """Return the input of the head: representations of graphs, and next to them their standardised features."""
    if scale is None:
        if graph_attr is not None:
            raise ValueError(
                "graph_attr was given, but this model reads no features of graphs. Leave it out, or make the model "
                "with graph_channels."
            )
        return h
    if graph_attr is None:
        raise ValueError("graph_attr is missing: this model reads features of graphs (graph_channels).")
    features: Tensor = scale(graph_attr)
    if features.size(0) != h.size(0):
        raise ValueError(f"graph_attr has {features.size(0)} rows, but there are {h.size(0)} graphs.")
    return torch.cat([h, features.to(h.dtype)], dim=1)


HeadName = Literal["mlp", "linear"]


class MLPHead(nn.Module):
    """Predict by Linear, ReLU, dropout, Linear, as in the paper's real-world experiments.

    `hidden` is the width between the layers; None for that of the input. In evaluation mode, the result is averaged
    with that of `kernel`, if there is one, which reads the features of graphs at the end of the input.

    >>> import torch
    >>> MLPHead(8, 2)(torch.ones(3, 8)).shape
    torch.Size([3, 2])
    """

    def __init__(self, channels: int, out_channels: int, *, hidden: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        hidden = channels if hidden is None else hidden
        self.linear1 = nn.Linear(channels, hidden)
        self.linear2 = nn.Linear(hidden, out_channels)
        self.dropout = nn.Dropout(dropout)
        self.kernel: KernelRegression | None = None

    def forward(self, h: Tensor) -> Tensor:
        """Return `[n, out_channels]` for `[n, channels]`."""
        out: Tensor = self.linear2(self.dropout(self.linear1(h).relu()))
        return out if self.kernel is None or self.training else self.kernel.average(out, h)


def make_head(
    head: HeadName | None, channels: int, out_channels: int | None, *, graph_channels: int = 0, dropout: float
) -> nn.Module:
    """Return the head of a name, which reads `channels + graph_channels` numbers; None returns them."""
    check_choice("head", head, (*get_args(HeadName), None))
    if head is None:
        if out_channels is not None:
            raise ValueError(f"out_channels={out_channels}: a model without a head has none; expected None.")
        return nn.Identity()
    if out_channels is None:
        raise ValueError(f"out_channels=None: expected a number with head={head!r}, or head=None for no head.")
    if head == "linear":
        return nn.Linear(channels + graph_channels, out_channels)
    return MLPHead(channels + graph_channels, out_channels, hidden=channels, dropout=dropout)
