"""Recurrent cells that read paths.

To add a cell, write a class with the members of `PathCell`. The backend "torch" differentiates its `step` level by
level, and "dense" loops over the tokens of every path. "triton" and "cpu" compute only the LSTM.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch.nn.functional as F
from torch import Tensor

State = tuple[Tensor, ...]
"""The state of some entries, `[n, d]` each: the first is the hidden state h, which the next step and sums read."""


class CellWeights(NamedTuple):
    """The weights of a cell.

    Shapes: `input` is `[gates * d, width]` for tokens `[vertex, distance, edge]`, `bias` is `[gates * d]`, `recurrent`
    is `[gates * d, d]`.
    """

    input: Tensor
    bias: Tensor
    recurrent: Tensor


class PathCell(Protocol):
    """A recurrent cell: `channels` is d, `gates` the width of projected inputs in d, `states` the number of states."""

    channels: int
    gates: int
    states: int

    def weights(self) -> CellWeights:
        """Return the weights, differentiable."""
        ...

    def step(self, z: Tensor, r: Tensor | None, state: State) -> State:
        """Return the next state from the projected token `z` and `r = W_hh h`, both `[n, gates * d]`.

        At the first token `r` is None and `state` is empty. It reads no other weights and changes no argument.
        """
        ...

    def dense(self, steps: Tensor) -> Tensor:
        """Return the last h, `[paths, d]`, for tokens `[length, paths, width]`; see `dense_loop`."""
        ...


def dense_loop(cell: PathCell, steps: Tensor) -> Tensor:
    """Compute `dense` of any cell: call `step` for one token of every path after the other."""
    weights = cell.weights()
    r, state = None, ()  # type: tuple[Tensor | None, State]
    for z in F.linear(steps, weights.input, weights.bias):
        state = cell.step(z, r, state)
        r = F.linear(state[0], weights.recurrent)
    return state[0]


def lstm_step(z: Tensor, r: Tensor | None, state: State) -> State:
    """Return h and c of an LSTM; its gates are i, f, g, o, in this order."""
    i, f, g, o = (z if r is None else z + r).chunk(4, dim=1)
    c = i.sigmoid() * g.tanh()
    if state:
        c = c + f.sigmoid() * state[1]
    return o.sigmoid() * c.tanh(), c


def is_lstm(cell: PathCell) -> bool:
    """Return whether the cell is an LSTM, for which backends have their own code."""
    return getattr(type(cell), "step", None) is lstm_step
