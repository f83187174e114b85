"""Encode features as vectors: numbers by an MLP, categories (atoms, bonds) by sums of embeddings, labels one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pathnn.checks import check_choice
from pathnn.nn.backends.base import MOST_COMPONENTS, EdgeTypes

EncoderName = Literal["mlp", "one-hot", "categorical"]

MOST_TYPES = 512
"""Edges with at most this many combinations of categories are projected per combination; PyG's bonds have 264."""


class MLPEncoder(nn.Sequential):
    """Encode continuous features: two linear layers, each followed by BatchNorm (if `norm`) and ReLU.

    Shapes: `[num_nodes, in_channels]` to `[num_nodes, hidden_channels]`.

    >>> MLPEncoder(3, 8)(torch.ones(5, 3)).shape
    torch.Size([5, 8])
    """

    def __init__(self, in_channels: int, hidden_channels: int, *, norm: bool = True) -> None:
        super().__init__(*mlp_layers([in_channels, hidden_channels, hidden_channels], norm=norm))
        self.in_channels = in_channels

    def forward(self, x: Tensor) -> Tensor:
        """Encode features `[num_nodes, in_channels]`."""
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise ValueError(
                f"x: expected shape [num_nodes, {self.in_channels}], got {tuple(x.shape)}. "
                "Create the model with in_channels equal to the width of your features."
            )
        if not x.is_floating_point():
            raise ValueError(
                f"x: expected floating point features, got {x.dtype}. Convert them with x.float(), "
                "or use encoder='categorical' or 'one-hot' for labels."
            )
        dtype = next(self.parameters()).dtype
        if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
            raise ValueError(
                f"x: expected {dtype}, as the model's parameters are, got {x.dtype}. Convert it with x.to({dtype}), "
                f"or the model with model.to({x.dtype})."
            )
        return super().forward(x)  # type: ignore[no-untyped-call]


class OneHotEncoder(nn.Module):
    """Encode labels `0..in_channels - 1`: one-hot vectors, then an `MLPEncoder`.

    Shapes: `[num_nodes]` or `[num_nodes, 1]`, integers, to `[num_nodes, hidden_channels]`.

    >>> OneHotEncoder(4, 8)(torch.tensor([0, 3, 3])).shape
    torch.Size([3, 8])
    """

    def __init__(self, in_channels: int, hidden_channels: int, *, norm: bool = True) -> None:
        super().__init__()
        self.sizes = (in_channels,)
        self.mlp = MLPEncoder(in_channels, hidden_channels, norm=norm)

    def forward(self, x: Tensor) -> Tensor:
        """Encode labels `[num_nodes]`."""
        one_hot = F.one_hot(check_categories(x, self.sizes)[:, 0], self.sizes[0])
        return self.mlp(one_hot.to(next(self.parameters()).dtype))


class CategoricalEncoder(nn.Module):
    """Encode categories as the sum of one embedding per feature, with Xavier-uniform weights.

    Shapes: `[num_nodes]` or `[num_nodes, len(sizes)]`, integers, to `[num_nodes, hidden_channels]`.

    >>> CategoricalEncoder([119, 5], 8)(torch.tensor([[6, 0], [8, 4]])).shape
    torch.Size([2, 8])
    """

    def __init__(self, sizes: Sequence[int], hidden_channels: int) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.embeddings = nn.ModuleList(nn.Embedding(size, hidden_channels) for size in self.sizes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        for embedding in self.embeddings:
            assert isinstance(embedding, nn.Embedding)
            nn.init.xavier_uniform_(embedding.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Encode categories `[num_nodes, len(sizes)]`."""
        columns = check_categories(x, self.sizes).unbind(dim=1)
        vectors = [embedding(column) for embedding, column in zip(self.embeddings, columns, strict=True)]
        return torch.stack(vectors).sum(dim=0) if len(vectors) > 1 else vectors[0]

    def edge_types(self, edge_attr: Tensor) -> Tensor | EdgeTypes:
        """Encode like `forward`, as `EdgeTypes` if there are at most `MOST_TYPES` combinations of categories."""
        if prod(self.sizes) > MOST_TYPES:
            return self(edge_attr)
        columns = check_categories(edge_attr, self.sizes)
        index = columns.new_zeros(columns.size(0))
        for size, column in zip(self.sizes, columns.unbind(dim=1), strict=True):
            index = index * size + column
        ranges = [torch.arange(size, device=edge_attr.device) for size in self.sizes]
        combinations = torch.cartesian_prod(*ranges).reshape(-1, len(self.sizes))
        if len(self.sizes) == 1 or sum(self.sizes) > MOST_COMPONENTS:
            return EdgeTypes(self(combinations), index)
        masks = combinations.new_zeros(combinations.size(0))
        for first, column in zip(accumulate(self.sizes, initial=0), combinations.unbind(dim=1), strict=False):
            masks = masks | (torch.ones_like(masks) << (first + column))
        components = torch.cat([embedding.weight for embedding in self.embeddings])  # type: ignore[misc]
        return EdgeTypes(self(combinations), index, components, masks.int())


def mlp_layers(widths: Sequence[int], *, norm: bool) -> list[nn.Module]:
    """Return Linear, BatchNorm (if `norm`) and ReLU for each pair of consecutive widths."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), *([nn.BatchNorm1d(after)] if norm else []), nn.ReLU()]
    return layers


def make_encoder(
    encoder: EncoderName, in_channels: int | tuple[int, ...], hidden_channels: int, *, norm: bool
) -> nn.Module:
    """Return the encoder of a name; `in_channels` is a width, a number of labels, or the sizes of the categories."""
    check_choice("encoder", encoder, get_args(EncoderName))
    if encoder == "categorical":
        sizes = (in_channels,) if isinstance(in_channels, int) else in_channels
        return CategoricalEncoder(sizes, hidden_channels)
    if not isinstance(in_channels, int):
        raise ValueError(f"in_channels={in_channels}: expected an integer with encoder={encoder!r}.")
    if encoder == "one-hot":
        return OneHotEncoder(in_channels, hidden_channels, norm=norm)
    return MLPEncoder(in_channels, hidden_channels, norm=norm)


def check_features(x: Any) -> None:
    """Raise `ValueError` unless `x` is a tensor with a row for each vertex."""
    if not isinstance(x, Tensor) or x.dim() not in (1, 2):
        came = "None" if x is None else f"a {type(x).__name__}"
        came += f" of shape {tuple(x.shape)}" if isinstance(x, Tensor) else ""
        came += " without edge_index" if hasattr(x, "edge_index") else ""
        raise ValueError(
            f"x is {came}: expected a tensor with a row for each vertex. "
            "Vertices without features may all have the same: torch.ones(num_nodes, 1)."
        )


def check_categories(x: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return categories as `[n, len(sizes)]`, int64; raise `ValueError` if invalid (values: only on a CPU)."""
    if x.is_floating_point() or x.is_complex():
        raise ValueError(f"categorical features: expected integers, got {x.dtype}. Convert them with .long().")
    columns = x.unsqueeze(1) if x.dim() == 1 else x
    if columns.dim() != 2 or columns.size(1) != len(sizes):
        raise ValueError(f"categorical features: expected shape [n, {len(sizes)}], got {tuple(x.shape)}.")
    if x.device.type == "cpu" and x.numel() and not torch.compiler.is_compiling():
        low, high = columns.amin(dim=0).tolist(), columns.amax(dim=0).tolist()
        for j, size in enumerate(sizes):
            if low[j] < 0 or high[j] >= size:
                raise ValueError(
                    f"categorical feature {j}: expected values from 0 to {size - 1}, got {low[j]} to {high[j]}."
                )
    return columns.long()
