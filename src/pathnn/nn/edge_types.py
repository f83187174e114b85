"""Edges that come in few kinds: their features once per kind, so that they are projected once per kind."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class EdgeTypes(NamedTuple):
    """Edge features as a table of kinds and the kind of each edge.

    Shapes: `table` is `[num_types, edge_channels]`, `types` is `[num_edges]`.

    >>> import torch
    >>> bonds = EdgeTypes(torch.eye(2), torch.tensor([0, 1, 1]))
    >>> bonds.expand().tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """

    table: Tensor
    types: Tensor

    def expand(self) -> Tensor:
        """The features of every edge, `[num_edges, edge_channels]`."""
        return self.table[self.types.long()]
