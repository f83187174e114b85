"""The layers of several networks at once: each takes its rows to its own network's weights.

Rows of the first network come first, then those of the second, and so on, as many for each.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pathnn.nn.backends.base import Budget, PathReader
from pathnn.nn.backends.triton.backend import Triton, TritonShared, cuda_path_states, cuda_tokens
from pathnn.nn.backends.triton.tall_linear import grad_of_weight, tall_linear
from pathnn.nn.cuda_graph_norm import padded_norm
from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.fixed_gcn import FixedGCN
from pathnn.nn.neighbours import SharedNeighbours
from pathnn.nn.path_lstm import PathLSTM, divide_by_paths
from pathnn.nn.stack import Stack
from pathnn.paths.trie import LengthTrie


class StackedLinear(nn.Module):
    """`nn.Linear` (or PyG's) of each network for its rows."""

    def __init__(self, stack: Stack, name: str, linear: Any) -> None:
        super().__init__()
        self.stack, self.name, self.bias = stack, name, linear.bias is not None

    def forward(self, x: Tensor) -> Tensor:
        """`[rows, in]` to `[rows, out]`."""
        bias = self.stack[f"{self.name}.bias"] if self.bias else None
        return tall_linear(x, self.stack[f"{self.name}.weight"], bias)


class StackedEmbedding(nn.Module):
    """`nn.Embedding` of each network for its rows; for small tables, whose gradient is a product with zeros and
    ones."""

    def __init__(self, stack: Stack, name: str) -> None:
        super().__init__()
        self.stack, self.name = stack, name

    def forward(self, index: Tensor) -> Tensor:
        """`[rows]`, int64, to `[rows, channels]`."""
        out: Tensor = _Lookup.apply(self.stack[f"{self.name}.weight"], index)  # type: ignore[no-untyped-call]
        return out


class _Lookup(torch.autograd.Function):
    """Rows of a table per network, `[models, kinds, channels]`."""

    @staticmethod
    def forward(ctx: Any, tables: Tensor, index: Tensor) -> Tensor:
        models, kinds, _ = tables.shape
        index = index.view(models, -1)
        ctx.save_for_backward(index)
        ctx.kinds = kinds
        first = kinds * torch.arange(models, device=index.device).unsqueeze(1)
        return tables.flatten(0, 1).index_select(0, (index + first).flatten())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (index,) = ctx.saved_tensors
        marks = index.unsqueeze(2) == torch.arange(ctx.kinds, device=index.device)
        rows = grad.contiguous().view(*index.shape, -1)
        return grad_of_weight(marks.to(grad.dtype), rows), None


class StackedGCN(FixedGCN):
    """`GCNConv` of each network for its rows, whose edges lead to none of another's."""

    def __init__(self, stack: Stack, name: str, conv: Any, shared: SharedNeighbours) -> None:
        super().__init__(nn.ModuleDict({"lin": StackedLinear(stack, f"{name}.lin", conv.lin)}), shared)
        self.stack, self.name = stack, name

    def add_bias(self, out: Tensor) -> Tensor:
        """The last step of the layer."""
        bias = self.stack[f"{self.name}.bias"].unsqueeze(1)
        return (out.view(self.stack.models, -1, out.size(1)) + bias).flatten(0, 1)


class StackedDropout(nn.Module):
    """Dropout at each network's own rate."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        self.stack = stack

    def forward(self, x: Tensor) -> Tensor:
        """Of each network's rows, some numbers become 0, and the others larger."""
        rates = set(self.stack.rates)
        if not self.training or rates == {0.0}:
            return x
        if len(rates) == 1:
            return F.dropout(x, rates.pop())
        keep = 1.0 - self.stack.dropout.view(-1, 1)
        rows = x.view(self.stack.models, -1)
        return (rows * torch.where(torch.rand_like(rows) < keep, 1.0 / keep, 0.0)).view_as(x)


class StackedNorm(nn.Module):
    """BatchNorm of each network over the first `valid` of its rows; see `PaddedBatchNorm1d`."""

    def __init__(self, stack: Stack, name: str, norm: nn.BatchNorm1d, valid: Tensor, *, relu: bool) -> None:
        super().__init__()
        assert norm.momentum is not None
        self.stack, self.name, self.valid, self.relu = stack, name, valid, relu
        self.eps, self.momentum = norm.eps, norm.momentum

    def forward(self, x: Tensor) -> Tensor:
        """Normalise `[rows, channels]`."""
        stack, statistics = self.stack, self.stack.statistics
        weight, bias = stack[f"{self.name}.weight"], stack[f"{self.name}.bias"]
        mean, var = statistics[f"{self.name}.running_mean"], statistics[f"{self.name}.running_var"]
        if self.training:
            return padded_norm(
                x, weight, bias, self.valid, mean, var, eps=self.eps, momentum=self.momentum, relu=self.relu
            )
        scale = weight * (var + self.eps).rsqrt()
        rows = x.view(stack.models, -1, x.size(1))
        out = torch.addcmul((bias - mean * scale).unsqueeze(1), rows, scale.unsqueeze(1)).flatten(0, 1)
        return out.relu() if self.relu else out


class StackedLSTM(PathReader):
    """`PathLSTM` of each network for its rows and its part of the trie; on a GPU, without edges and dummy tokens."""

    def __init__(self, stack: Stack, name: str, lstm: PathLSTM) -> None:
        super().__init__()
        self.stack, self.name, self.channels = stack, name, lstm.channels
        self.distances = lstm.distance_encoder is not None
        self.aggregation, self.dropout = lstm.aggregation, StackedDropout(stack)

    def prepare(self, edges: Tensor | EdgeTypes | None, budget: Budget | None = None) -> TritonShared:
        """What the layers of one forward pass share. Small networks have the memory to keep everything."""
        from pathnn.nn.backends.triton.products import split_of, terms
        from pathnn.nn.backends.triton.shared_gradients import SharedGradients, share

        models, channels = self.stack.models, self.channels
        weight_ih, weight_hh = self._part("weight_ih_l0"), self._part("weight_hh_l0").flatten(0, 1)
        bias = self._part("bias_ih_l0") + self._part("bias_hh_l0")
        vertex = weight_ih[:, :, :channels].reshape(-1, channels)
        distance = None
        if self.distances:
            table = self._part("distance_encoder.weight")
            distance = torch.bmm(table, weight_ih[:, :, channels:].transpose(1, 2)).flatten(0, 1)
        collected = SharedGradients()
        anchor = share(weight_hh, vertex, bias, None, distance, collected)
        split_weight, split_hh = split_of(vertex, terms(), models), split_of(weight_hh, terms(), models)
        projected = None if distance is None else distance.detach()
        return TritonShared(
            backend=Triton(), budget=Budget(recompute=False), edges=None, bias=bias.detach(), edge=None,
            distance=projected, split_weight=split_weight, split_hh=split_hh, collected=collected, anchor=anchor,
        )  # fmt: skip

    def forward(self, h: Tensor, trie: LengthTrie, edges: TritonShared) -> Tensor:
        """Aggregate the representations of the paths at their sources: `[rows, channels]`."""
        h = self.dropout(h)
        out = cuda_path_states(h, edges, cuda_tokens(trie, edges), summed=True)
        return divide_by_paths(out, trie) if self.aggregation == "mean" else out

    def _part(self, name: str) -> Tensor:
        return self.stack[f"{self.name}.{name}"]
