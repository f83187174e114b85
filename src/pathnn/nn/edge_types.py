"""Edges that come in few kinds: their features once per kind, so that they are projected once per kind."""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from pathnn.nn.backends import base

MOST_PARTS = 31
"""Bits of a mark."""


class EdgeTypes(NamedTuple):
    """Edge features as a table of kinds and the kind of each edge.

    Where the rows of the table are sums of even fewer vectors, those are `parts`, and bit j of `marks` says whether
    part j is in the sum: gradients can then be summed for each part.

    Shapes: `table` is `[num_types, edge_channels]`, `types` is `[num_edges]`, `parts` is `[num_parts, edge_channels]`
    with at most `MOST_PARTS` rows, `marks` is `[num_types]`, int32.

    >>> import torch
    >>> bonds = EdgeTypes(torch.eye(2), torch.tensor([0, 1, 1]))
    >>> bonds.expand().tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """

    table: Tensor
    types: Tensor
    parts: Tensor | None = None
    marks: Tensor | None = None

    def expand(self) -> Tensor:
        """The features of every edge, `[num_edges, edge_channels]`."""
        if base.on_triton(self.table):
            from pathnn.nn.backends.triton.lookup import MOST_ROWS, lookup

            if self.table.size(0) <= MOST_ROWS:
                return lookup(self.table, self.types.long())
        return F.embedding(self.types.long(), self.table)  # the gradient of table[types] is a slow one
