"""One layer of a path neural network."""

from __future__ import annotations

from typing import Literal, get_args

import torch.nn.functional as F
from torch import Tensor, nn

from pathnn.checks import check_choice, check_flag
from pathnn.nn.encoders import mlp_layers
from pathnn.nn.path_lstm import Edges, PathLSTM
from pathnn.paths.trie import LengthTrie

NormName = Literal["batch"]
PhiName = Literal["identity", "relu", "mlp"]


class PathConv(nn.Module):
    r"""One layer of a path neural network (Michel et al., ICML 2023, equations 2 and 3).

    $$h_v^{(k)} = \phi\big(\mathrm{NORM}(h_v^{(k-1)} + \sum_{\pi \in \mathcal{P}_v^k} \mathrm{LSTM}(\pi))\big)$$

    All layers share one LSTM, so it is an argument of the call and not a part of the layer. For vertices without a
    path the sum is zero.

    Args:
        channels: the width of the representations.
        norm: "batch" for BatchNorm, or None.
        normalize: whether to divide h by its Euclidean norm before the layer; the residual also reads the divided h.
        phi: "identity", "relu", or "mlp" (dropout, then twice Linear, BatchNorm, ReLU).
        dropout: the rate before the MLP.

    Shapes: `h` is `[num_nodes, channels]`; returns the same.

    >>> import torch
    >>> from pathnn.paths.trie import PathTrie
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> trie = PathTrie.from_paths([edge_index.t()], edge_index, 3, collection="sp")
    >>> PathConv(8)(torch.ones(3, 8), PathLSTM(8), trie.length(1)).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        channels: int,
        *,
        norm: NormName | None = "batch",
        normalize: bool = False,
        phi: PhiName = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_choice("norm", norm, (*get_args(NormName), None))
        self.norm = nn.Identity() if norm is None else nn.BatchNorm1d(channels)
        self.normalize = check_flag("normalize", normalize)
        self.phi = _make_phi(check_choice("phi", phi, get_args(PhiName)), channels, dropout)

    def forward(self, h: Tensor, lstm: PathLSTM, trie: LengthTrie, edges: Edges = None) -> Tensor:
        """Return the next representations from the paths of one length; `lstm` is called like a `PathLSTM`."""
        if isinstance(lstm, nn.LSTM) and not isinstance(lstm, PathLSTM):
            raise ValueError("lstm is an nn.LSTM, which does not read tries: expected a PathLSTM.")
        h = self.scale(h)
        out: Tensor = self.phi(self.norm(h + lstm(h, trie, edges)))
        return out

    def reset_parameters(self) -> None:
        """Draw all weights of the layer again."""
        from torch_geometric.nn.inits import reset  # takes a second

        for part in self.children():
            reset(part)

    def scale(self, h: Tensor) -> Tensor:
        """Return `h`, divided by its Euclidean norm if `normalize`."""
        return F.normalize(h, dim=-1) if self.normalize else h

    def extra_repr(self) -> str:
        """Return the text that `print(model)` shows."""
        return f"normalize={self.normalize}"


def _make_phi(phi: PhiName, channels: int, dropout: float) -> nn.Module:
    if phi == "identity":
        return nn.Identity()
    if phi == "relu":
        return nn.ReLU()
    return nn.Sequential(nn.Dropout(dropout), *mlp_layers([channels] * 3, norm=True))
