"""PyG's GCN layer with shapes that do not depend on the edges, as a CUDA graph needs it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from pathnn.nn.neighbours import SharedNeighbours, gcn_sum


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

    def __init__(self, conv: Any, shared: SharedNeighbours | None = None) -> None:
        super().__init__()
        self.conv, self._shared = conv, SharedNeighbours() if shared is None else shared

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """The layer's outputs, `[num_nodes, channels]`."""
        return self.add_bias(gcn_sum(self.conv.lin(x), self._shared(edge_index, x.size(0))))

    def add_bias(self, out: Tensor) -> Tensor:
        """The last step of the layer."""
        biased: Tensor = out + self.conv.bias
        return biased
