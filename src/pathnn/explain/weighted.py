"""A PathLSTM whose paths have weights: 1 is the model as it is, 0 a model that does not see the path."""

from __future__ import annotations

from torch import Tensor, nn

from pathnn.nn.backends.prepared import Edges
from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.path_lstm import PathLSTM, divide_by_paths
from pathnn.paths.trie import LengthTrie


class WeightedPaths(nn.Module):
    r"""Stands in for the LSTM of a `PathNN`, which then computes, with a weight $w_\pi$ for each path,

    $$h_v^{(k)} = \phi\big(\mathrm{NORM}(h_v^{(k-1)} + \sum_{\pi \in \mathcal{P}_v^k} w_\pi \mathrm{LSTM}(\pi))\big)$$

    `weights` has a tensor `[num_paths]` per length, in the order of `PathTrie.to_paths()`; set it before a call. A mean
    over paths still divides by the number of all paths.
    """

    def __init__(self, lstm: PathLSTM) -> None:
        super().__init__()
        self.lstm = lstm
        self.weights: list[Tensor] = []

    def prepare(self, edges: Tensor | EdgeTypes | None) -> Edges:
        """As `PathLSTM.prepare`."""
        return self.lstm.prepare(edges)

    def forward(self, h: Tensor, trie: LengthTrie, edges: Edges = None) -> Tensor:
        """The weighted sum (or mean) over the paths of each vertex, `[num_nodes, channels]`."""
        rows = self.lstm.path_representations(h, trie, edges)
        rows = rows * self.weights[trie.length - 1].unsqueeze(1)
        sums = rows.new_zeros(trie.num_nodes, rows.size(1)).index_add(0, trie.source, rows)
        return divide_by_paths(sums, trie) if self.lstm.aggregation == "mean" else sums
