"""What one step of the LSTM reads: the rows of the projected inputs that each entry of a level adds up."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Tables(NamedTuple):
    """The projected inputs, computed once per layer; a gate before activation is a sum of one row of each.

    `vertex` is `[num_nodes, 4d]` with both biases added (one more row for the dummy token where there is
    one), `edge` is `[num_codes + 1, 4d]` whose last row, zeros, stands for "no edge", `distance` is `[rows,
    4d]`.
    """

    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None

    def zeros_like(self) -> Tables:
        """Tables of the same shapes, filled with zeros: where gradients are added up."""
        vertex, edge, distance = (None if table is None else torch.zeros_like(table) for table in self)
        assert vertex is not None
        return Tables(vertex, edge, distance)


class LevelRows(NamedTuple):
    """For each entry of a level the row of its parent and of each table, int32; None where there is none."""

    parent: Tensor | None
    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None

    @property
    def num_entries(self) -> int:
        """Number of entries of the level."""
        return self.vertex.numel()

    def slice(self, start: int, stop: int, *, parent_start: int) -> LevelRows:
        """The entries `start:stop`, whose parents are counted from `parent_start` of the level before."""
        parent, vertex, edge, distance = (None if rows is None else rows[start:stop] for rows in self)
        assert vertex is not None
        return LevelRows(None if parent is None else parent - parent_start, vertex, edge, distance)


class LevelInput(NamedTuple):
    """The rows of a level together with the states of its parents: `W_hh h` `[m, 4d]` and `c` `[m, d]`."""

    parent: Tensor | None
    vertex: Tensor
    edge: Tensor | None
    distance: Tensor | None
    projected: Tensor | None
    cell: Tensor | None
