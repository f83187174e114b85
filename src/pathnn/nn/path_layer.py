"""Path layers for models of PyG layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from pathnn.nn.path_nn import PathNN
from pathnn.paths.options import Collection
from pathnn.paths.trie import PathTrie


class PathLayer(nn.Module):
    """The layers of a `PathNN` as one layer of PyG: with its own LSTM, without encoder, readout and head.

    It reads the paths of lengths 1 to `k`, one `PathConv` for each length, and can be a layer of
    `torch_geometric.nn.Sequential` or the local part of `GPSConv`. `options` are those of a `PathNN`, such as
    `edge_channels`, `norm`, `phi`, `dropout`, `cell` and `aggregation`.

    Shapes: `x` is `[num_nodes, channels]`; returns the same. Without `trie`, each call extracts the paths of
    `edge_index`.

    >>> import torch
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> PathLayer(8, "ap", 2)(torch.ones(3, 8), edge_index).shape
    torch.Size([3, 8])
    """

    def __init__(self, channels: int, collection: Collection, k: int, **options: Any) -> None:
        super().__init__()
        self.network = PathNN(channels, channels, None, collection=collection, k=k, readout=None, head=None, **options)
        self.network.encoder = nn.Identity()

    def forward(
        self, x: Tensor, edge_index: Tensor | None, edge_attr: Tensor | None = None, *, trie: PathTrie | None = None
    ) -> Tensor:
        """Return the next representations of all vertices."""
        return self.network.embed(x, edge_index, edge_attr=edge_attr, trie=trie)

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        self.network.reset_parameters()
