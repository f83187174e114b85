"""Recurrent cells that read paths.

To add a cell, subclass `PathCell`. The backend "torch" differentiates its `step` level by level, and "dense" loops over
the tokens of every path. "triton" and "cpu" compute only the LSTM.
"""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

State = tuple[Tensor, ...]
"""The state of some entries, `[n, d]` each: the first is the hidden state h, which the next step and sums read."""


class CellWeights(NamedTuple):
    """The weights of a cell.

    Shapes: `input` is `[gates * d, width]` for tokens `[vertex, distance, edge]`, `bias` is `[gates * d]`, `recurrent`
    is `[gates * d, d]`, or None for a cell without it.
    """

    input: Tensor
    bias: Tensor
    recurrent: Tensor | None


class PathCell(nn.Module):
    """A recurrent cell: `channels` is d, `gates` the width of projected inputs in d, `states` the number of states."""

    channels: int
    gates: int
    states: int = 1

    def weights(self) -> CellWeights:
        """Return the weights, differentiable."""
        raise NotImplementedError

    def step(self, z: Tensor, r: Tensor | None, state: State) -> State:
        """Return the next state from the projected token `z` and `r = W_hh h`, both `[n, gates * d]`.

        At the first token `r` is None and `state` is empty. It reads no other weights and changes no argument.
        """
        raise NotImplementedError

    def dense(self, steps: Tensor) -> Tensor:
        """Return the last h, `[paths, d]`, for tokens `[length, paths, width]`, step by step."""
        weights = self.weights()
        r, state = None, ()  # type: tuple[Tensor | None, State]
        for z in F.linear(steps, weights.input, weights.bias):
            state = self.step(z, r, state)
            r = None if weights.recurrent is None else F.linear(state[0], weights.recurrent)
        return state[0]


def lstm_step(z: Tensor, r: Tensor | None, state: State) -> State:
    """Return h and c of an LSTM; its gates are i, f, g, o, in this order. Backends have their own code for it."""
    i, f, g, o = (z if r is None else z + r).chunk(4, dim=1)
    c = i.sigmoid() * g.tanh()
    if state:
        c = c + f.sigmoid() * state[1]
    return o.sigmoid() * c.tanh(), c
