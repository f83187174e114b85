"""Parts of a `DeepPathNN`: paths of all lengths, blocks of layers, and a vertex that all vertices share."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from pathnn.nn.backends.base import Budget, EdgeTypes, PathReader
from pathnn.nn.readout import MLPHead, Readout
from pathnn.paths.prefixes import prefixes_of
from pathnn.paths.trie import PathTrie

ActivationName = Literal["relu", "gelu"]

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}


class AllLengths(nn.Module):
    r"""Sum the representations of the paths of all lengths 1 to `k` at their sources; `lstm` reads them.

    $$a_v = \sum_{l=1}^{k} \sum_{\pi \in \mathcal{P}_v^l} \mathrm{LSTM}(\pi)$$

    With `prefixes`, the tries are those of `join_lengths`, and the sum also has the path of length 0.

    Shapes: `h` is `[num_nodes, channels]`; returns the same.

    >>> from pathnn import PathLSTM, extract_paths
    >>> trie = extract_paths(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3, collection="ap", k=2)      # 0 - 1 - 2
    >>> AllLengths(PathLSTM(8, distances=3), 2)(torch.ones(3, 8), trie).shape
    torch.Size([3, 8])
    """

    def __init__(self, lstm: PathReader, k: int, *, prefixes: bool = False) -> None:
        super().__init__()
        self.lstm, self.k, self.prefixes = lstm, k, prefixes

    def forward(
        self, h: Tensor, trie: PathTrie, edges: Tensor | EdgeTypes | None = None, budget: Budget | None = None
    ) -> Tensor:
        """Return the sum over all paths from each vertex; edges and distances are projected once."""
        shared = self.lstm.prepare(edges, budget)
        if self.prefixes:
            return self.lstm(h, prefixes_of(trie), shared)
        each = [self.lstm(h, trie.length(length), shared) for length in range(1, self.k + 1)]
        return torch.stack(each).sum(dim=0)


class PathBlock(nn.Module):
    r"""A block of layers, of which each may be left out (None).

    $$h' = h + \phi\big(\mathrm{NORM}(\mathrm{paths}(h)) + \mathrm{NORM}(\mathrm{messages}(h))\big), \qquad
    h'' = \mathrm{NORM}(h' + \mathrm{feed\_forward}(h'))$$

    `paths` is called as `paths(h, trie, edges, budget)`, such as `AllLengths`; `message_passing` is a layer of PyG,
    called as `message_passing(h, edge_index)`, with `edge_attr=` if there is any. NORM is BatchNorm, or nothing with
    `norm=None`; phi is "relu" or "gelu", then dropout.

    Shapes: `h` is `[num_nodes, channels]`; returns the same.

    >>> PathBlock(8, feed_forward=nn.Linear(8, 8))(torch.ones(3, 8)).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        channels: int,
        *,
        paths: nn.Module | None = None,
        message_passing: nn.Module | None = None,
        feed_forward: nn.Module | None = None,
        norm: Literal["batch"] | None = "batch",
        activation: ActivationName = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.paths, self.message_passing, self.feed_forward = paths, message_passing, feed_forward
        self.paths_norm, self.messages_norm, self.norm = (
            nn.Identity() if norm is None or layer is None else nn.BatchNorm1d(channels)
            for layer in (paths, message_passing, feed_forward)
        )
        self.activation, self.dropout = ACTIVATIONS[activation](), nn.Dropout(dropout)

    def forward(
        self,
        h: Tensor,
        trie: PathTrie | None = None,
        edge_index: Tensor | None = None,
        *,
        edges: Tensor | EdgeTypes | None = None,
        edge_attr: Tensor | None = None,
        budget: Budget | None = None,
    ) -> Tensor:
        """Return the next representations; `edges` are those of tokens, and `edge_attr` has a row for each edge."""
        found = []
        if self.paths is not None:
            found.append(self.paths_norm(self.paths(h, trie, edges, budget)))
        if self.message_passing is not None:
            features = {} if edge_attr is None else {"edge_attr": edge_attr}
            found.append(self.messages_norm(self.message_passing(h, edge_index, **features)))
        if found:
            h = h + self.dropout(self.activation(torch.stack(found).sum(dim=0)))
        if self.feed_forward is not None:
            h = self.norm(h + self.feed_forward(h))
        return h


class VirtualNode(nn.Module):
    """Add a vector per graph to its vertices, and read their mean; a call gets the vectors of the last one, or None."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.readout, self.mlp = Readout("mean"), MLPHead(channels, channels)

    def forward(
        self, h: Tensor, vector: Tensor | None, batch: Tensor | None, batch_size: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the next representations of the vertices and of the graphs."""
        means = self.readout(h, batch, batch_size=batch_size)
        vector = self.mlp(means) if vector is None else vector + self.mlp(means + vector)
        return h + (vector if batch is None else vector.index_select(0, batch)), vector


def make_feed_forward(channels: int, *, activation: ActivationName, dropout: float) -> nn.Sequential:
    """Return two linear layers with twice the width between them."""
    first, last = nn.Linear(channels, 2 * channels), nn.Linear(2 * channels, channels)
    return nn.Sequential(first, ACTIVATIONS[activation](), nn.Dropout(dropout), last, nn.Dropout(dropout))
