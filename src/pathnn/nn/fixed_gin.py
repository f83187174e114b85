"""PyG's GIN layer for edges of few kinds: what it makes of their features is worked out once per kind."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.encoders import CategoricalEncoder
from pathnn.nn.neighbours import SharedNeighbours, gin_sum


class EdgeKinds(nn.Module):
    """A `CategoricalEncoder` of bonds whose result is a table of kinds where these are few.

    The edges of several networks lie one after the other, as many for each; the table then has the kinds of the first
    network, then those of the second, and so on.

    >>> import torch
    >>> encoder = CategoricalEncoder([4, 2], 8)
    >>> kinds = EdgeKinds(encoder)(torch.tensor([[3, 1], [0, 0], [3, 1]]))
    >>> kinds.table.shape, kinds.types.tolist()
    (torch.Size([8, 8]), [7, 0, 7])
    """

    def __init__(self, encoder: CategoricalEncoder, models: int = 1) -> None:
        super().__init__()
        self.encoder, self.models = encoder, models

    def forward(self, edge_attr: Tensor) -> Tensor | EdgeTypes:
        """The kinds of edges with categories `[num_edges, len(sizes)]`."""
        return self.encoder.edge_kinds(edge_attr, self.models)


class FixedGIN(nn.Module):
    """`GINConv` or `GINEConv` (its own parameters, not copies), which also reads edges as `EdgeTypes`.

    >>> import torch
    >>> from torch_geometric.nn import GINEConv
    >>> conv, edge_index = GINEConv(nn.Linear(2, 2), edge_dim=3), torch.tensor([[0, 1], [1, 0]])
    >>> x, edges = torch.randn(2, 2), EdgeTypes(torch.randn(4, 3), torch.tensor([2, 0]))
    >>> bool(torch.allclose(FixedGIN(conv)(x, edge_index, edges), conv(x, edge_index, edges.expand()), atol=1e-6))
    True
    """

    def __init__(self, conv: Any, shared: SharedNeighbours | None = None, models: int = 1) -> None:
        super().__init__()
        if isinstance(conv.eps, nn.Parameter):
            raise ValueError("a GIN layer that learns eps: expected train_eps=False.")
        self.conv, self._shared = conv, SharedNeighbours() if shared is None else shared
        self.models, self._own = models, 1.0 + float(conv.initial_eps)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | EdgeTypes | None = None) -> Tensor:
        """The layer's outputs, `[num_nodes, channels]`."""
        if isinstance(edge_attr, Tensor):
            out: Tensor = self.conv(x, edge_index, edge_attr)
            return out
        if edge_attr is not None and getattr(self.conv, "lin", None) is not None:
            edge_attr = EdgeTypes(self.conv.lin(edge_attr.table), edge_attr.types)
        edges = self._shared(edge_index, x.size(0))
        out = self.conv.nn(gin_sum(x, edges, edge_attr, own=self._own, models=self.models))
        return out
