"""PyG's GCN layer with shapes that do not depend on the edges, as a CUDA graph needs it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class FixedGCN(nn.Module):
    """`GCNConv` (its own parameters, not copies) that weighs loops 0 where PyG leaves them out: each vertex has one
    loop of its own, whatever loops the graph has.

    >>> import torch
    >>> from torch_geometric.nn import GCNConv
    >>> conv, edge_index = GCNConv(2, 2), torch.tensor([[0, 1, 1], [1, 0, 1]])
    >>> x = torch.randn(2, 2)
    >>> bool(torch.allclose(FixedGCN(conv)(x, edge_index), conv(x, edge_index), atol=1e-6))
    True
    """

    def __init__(self, conv: Any, norm: SharedNorm | None = None) -> None:
        super().__init__()
        self.conv, self._norm = conv, SharedNorm() if norm is None else norm

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """The layer's outputs, `[num_nodes, channels]`."""
        source, target = edge_index
        own, weight = self._norm(edge_index, x)
        h = self.conv.lin(x)
        messages = h.index_select(0, source) * weight
        return self.add_bias((h * own).index_add(0, target, messages))

    def add_bias(self, out: Tensor) -> Tensor:
        """The last step of the layer."""
        biased: Tensor = out + self.conv.bias
        return biased


class SharedNorm:
    """`1/deg` of each vertex and the weight `1/sqrt(deg deg)` of each edge, once for all layers of a step."""

    def __init__(self) -> None:
        self._edge_index: Tensor | None = None
        self._found: tuple[Tensor, Tensor] | None = None

    def __call__(self, edge_index: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """For these edges (kept until others come) between vertices of features `x`."""
        if self._found is None or self._edge_index is not edge_index:
            source, target = edge_index
            counted = (source != target).to(x.dtype)
            scale = x.new_ones(x.size(0)).index_add_(0, target, counted).rsqrt_()
            weight = counted * scale[source] * scale[target]
            self._edge_index, self._found = edge_index, ((scale * scale).unsqueeze(1), weight.unsqueeze(1))
        return self._found
