"""Several networks of one shape as one: their weights lie side by side, and every operation does all of them.

Rows of the first network come first, then those of the second, and so on, as many for each. What depends on weights
(linear layers, BatchNorm, the LSTM) takes each row to its own network's; everything else does not notice.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pathnn.nn.baselines import Baseline
from pathnn.nn.cuda_graph_norm import padded_norm
from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.engines.cuda import cuda_path_states, cuda_tokens
from pathnn.nn.engines.prepared import Prepared
from pathnn.nn.fixed_gcn import FixedGCN, SharedNorm
from pathnn.nn.path_lstm import PathLSTM, divide_by_paths
from pathnn.nn.path_nn import PathNN
from pathnn.paths.trie import LengthTrie

PART = 128
"""Rows of a part of the sum that is the gradient of a linear layer's weight."""


class Stack(nn.Module):
    """The weights and running statistics of several networks of one shape.

    `flat` holds all weights: those of all networks for the first parameter, then for the second, and so on; `owner`
    says for each of its numbers which network it is of. `stack[name]`, `[models, *shape]`, are views of it, made by
    `refresh`, through which gradients reach `flat`. `statistics` has the running statistics by name, `dropout` the rate
    of each network.
    """

    owner: Tensor
    dropout: Tensor

    def __init__(self, models: Sequence[PathNN | Baseline]) -> None:
        super().__init__()
        first = models[0]
        self.models = len(models)
        self.shapes = {name: parameter.shape for name, parameter in first.named_parameters()}
        every = [dict(model.named_parameters()) for model in models]
        for model in every:
            if {name: parameter.shape for name, parameter in model.items()} != self.shapes:
                raise ValueError("models of different shapes: expected the same options for all but their weights.")
        with torch.no_grad():
            blocks = [torch.stack([model[name].detach() for model in every]) for name in self.shapes]
        self.flat = nn.Parameter(torch.cat([block.flatten() for block in blocks]))
        numbers = [
            torch.arange(self.models, dtype=torch.int32).repeat_interleave(size.numel())
            for size in self.shapes.values()
        ]
        self.register_buffer("owner", torch.cat(numbers).to(self.flat.device), persistent=False)
        self.statistics = {
            name: torch.stack([dict(model.named_buffers())[name] for model in models])
            for name, buffer in first.named_buffers()
            if buffer.is_floating_point()
        }
        self.rates = [model.config.dropout for model in models]
        self.register_buffer("dropout", torch.tensor(self.rates, device=self.flat.device), persistent=False)
        self._parts: dict[str, Tensor] = {}

    def refresh(self) -> None:
        """Make the views anew, for one forward pass and its gradients."""
        self._parts = self.views(self.flat)

    def release(self) -> None:
        """Let the views go, and with them what autograd keeps of the stream that they were made on."""
        self._parts = {}

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """`flat`, or what lies like it, by name: `[models, *shape]`."""
        sizes = [self.models * shape.numel() for shape in self.shapes.values()]
        parts = zip(self.shapes.items(), torch.split(flat, sizes), strict=True)
        return {name: part.view(self.models, *shape) for (name, shape), part in parts}

    @property
    def grad(self) -> Tensor:
        """The gradient of `flat`."""
        assert self.flat.grad is not None
        return self.flat.grad

    def __getitem__(self, name: str) -> Tensor:
        return self._parts[name]

    def weights_of(self, model: int) -> dict[str, Tensor]:
        """A copy of one network's weights and statistics, by name."""
        with torch.no_grad():
            named = {**self.views(self.flat.detach()), **self.statistics}
            return {name: stacked[model].clone() for name, stacked in named.items()}


class StackedLinear(nn.Module):
    """`nn.Linear` (or PyG's) of each network for its rows."""

    def __init__(self, stack: Stack, name: str, linear: Any) -> None:
        super().__init__()
        self.stack, self.name, self.bias = stack, name, linear.bias is not None

    def forward(self, x: Tensor) -> Tensor:
        """`[rows, in]` to `[rows, out]`."""
        bias = self.stack[f"{self.name}.bias"] if self.bias else None
        out: Tensor = _Linear.apply(x, self.stack[f"{self.name}.weight"], bias)  # type: ignore[no-untyped-call]
        return out


class _Linear(torch.autograd.Function):
    """A product per network. The gradient of a small weight is a sum over many rows: it is taken in parts."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        rows = x.view(weight.size(0), -1, x.size(1))
        if bias is None:
            return torch.bmm(rows, weight.transpose(1, 2)).flatten(0, 1)
        return torch.baddbmm(bias.unsqueeze(1), rows, weight.transpose(1, 2)).flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        models, (_, wide, deep) = weight.size(0), weight.shape
        grad = grad.contiguous().view(models, -1, wide)
        each = grad.size(1)
        parts = each // PART if each % PART == 0 else 1
        grad_x = torch.bmm(grad, weight).flatten(0, 1) if ctx.needs_input_grad[0] else None
        left = grad.view(models * parts, -1, wide).transpose(1, 2)
        grad_weight = torch.bmm(left, x.view(models * parts, -1, deep)).view(models, parts, wide, deep).sum(dim=1)
        return grad_x, grad_weight, grad.sum(dim=1) if ctx.needs_input_grad[2] else None


class StackedGCN(FixedGCN):
    """`GCNConv` of each network for its rows, whose edges lead to none of another's."""

    def __init__(self, stack: Stack, name: str, conv: Any, norm: SharedNorm) -> None:
        super().__init__(nn.ModuleDict({"lin": StackedLinear(stack, f"{name}.lin", conv.lin)}), norm)
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


class StackedLSTM(nn.Module):
    """`PathLSTM` of each network for its rows and its part of the trie; on a GPU, without edges and dummy tokens."""

    def __init__(self, stack: Stack, name: str, lstm: PathLSTM) -> None:
        super().__init__()
        self.stack, self.name, self.channels = stack, name, lstm.channels
        self.distances = lstm.distance_encoder is not None
        self.aggregation, self.dropout = lstm.aggregation, StackedDropout(stack)

    def prepare(self, edges: Tensor | EdgeTypes | None) -> Prepared:
        """What the layers of one forward pass share."""
        from pathnn.nn.engines.cuda_collect import Collected, share
        from pathnn.nn.engines.cuda_product import split_of, terms

        models, channels = self.stack.models, self.channels
        weight_ih, weight_hh = self._part("weight_ih_l0"), self._part("weight_hh_l0").flatten(0, 1)
        bias = self._part("bias_ih_l0") + self._part("bias_hh_l0")
        vertex = weight_ih[:, :, :channels].reshape(-1, channels)
        distance = None
        if self.distances:
            table = self._part("distance_encoder.weight")
            distance = torch.bmm(table, weight_ih[:, :, channels:].transpose(1, 2)).flatten(0, 1)
        collected = Collected()
        anchor = share(weight_hh, vertex, bias, None, distance, collected)
        splits = split_of(vertex, terms(), models), split_of(weight_hh, terms(), models)
        projected = None if distance is None else distance.detach()
        return Prepared(None, bias.detach(), None, projected, *splits, collected, anchor)

    def forward(self, h: Tensor, trie: LengthTrie, edges: Prepared) -> Tensor:
        """Aggregate the representations of the paths at their sources: `[rows, channels]`."""
        h = self.dropout(h)
        tokens = cuda_tokens(trie, edges, distances=self.distances)
        out = cuda_path_states(h, edges, tokens, summed=True, max_entries=None)
        return divide_by_paths(out, trie) if self.aggregation == "mean" else out

    def _part(self, name: str) -> Tensor:
        return self.stack[f"{self.name}.{name}"]


def stacked_twin(model: PathNN | Baseline, stack: Stack, valid: Tensor) -> PathNN | Baseline:
    """A network like `model` that does what all networks of `stack` do, each for its rows; `valid`, `[models]`, int32,
    is how many of them are no padding."""
    fault = stack_fault(model)
    if fault is not None:
        raise ValueError(fault)
    linear, gcn = _pyg_layers(model)
    twin, norm = copy.deepcopy(model), SharedNorm()
    for prefix, parent in list(twin.named_modules()):
        modules = parent._modules
        following = dict(pairwise(modules)) if isinstance(parent, nn.Sequential) else {}
        for key, child in list(modules.items()):
            name = f"{prefix}.{key}" if prefix else key
            if isinstance(child, PathLSTM):
                modules[key] = StackedLSTM(stack, name, child)
            elif isinstance(child, gcn):
                modules[key] = StackedGCN(stack, name, child, norm)
            elif isinstance(child, (nn.Linear, *linear)):
                modules[key] = StackedLinear(stack, name, child)
            elif isinstance(child, nn.Dropout):
                modules[key] = StackedDropout(stack)
            elif isinstance(child, nn.BatchNorm1d):
                relu = key in following and isinstance(modules[following[key]], nn.ReLU)
                modules[key] = StackedNorm(stack, name, child, valid, relu=relu)
                if relu:
                    modules[following[key]] = nn.Identity()
    return twin


def stack_fault(model: nn.Module) -> str | None:
    """Why networks like `model` cannot be stacked, or None."""
    if not isinstance(model, PathNN | Baseline):
        return "only PathNN and the baselines can be stacked: train other models one by one."
    if model.config.edge_channels is not None:
        return "networks with edge features cannot be stacked: train them one by one."
    if isinstance(model, PathNN) and (model.config.extend or model.lstm.engine != "trie"):
        return "networks with dummy tokens or the dense engine cannot be stacked: train them one by one."
    linear, gcn = _pyg_layers(model)
    known = (nn.Linear, nn.BatchNorm1d, PathLSTM, *linear, *gcn)
    for name, module in model.named_modules():
        own = list(module.parameters(recurse=False))
        if own and not isinstance(module, known) and not name.startswith("lstm."):
            return f"{name} ({type(module).__name__}) cannot be stacked: train the models one by one."
    return None


def _pyg_layers(model: nn.Module) -> tuple[tuple[type[nn.Module], ...], tuple[type[nn.Module], ...]]:
    """PyG's linear layer and GCN layer, where the model may have some: importing them takes a second."""
    if not isinstance(model, Baseline):
        return (), ()
    from torch_geometric import nn as pyg

    return (pyg.Linear,), (pyg.GCNConv,)
