"""Recurrent cells that read paths.

To add a cell, subclass `PathCell` and write its `step`. The backend "torch" differentiates it level by level, and
"dense" loops over the tokens of every path. "triton" and "cpu" compute only the LSTM.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pathnn.checks import check_choice

CellName = Literal["lstm", "gru", "mingru"]

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
    """A recurrent cell that reads tokens of `width` numbers; a subclass has `gates`, `states` and a `step`.

    `gates` is the width of projected tokens in `channels` (d), `states` the number of states, `recurrent` whether the
    step reads `W_hh h`. Weights are drawn like those of `nn.LSTM`.

    >>> class Elman(PathCell):
    ...     gates = 1
    ...
    ...     def step(self, z, r, state):
    ...         return ((z if r is None else z + r).tanh(),)
    >>> Elman(6, 4).dense(torch.ones(3, 5, 6)).shape
    torch.Size([5, 4])
    """

    gates: ClassVar[int]
    states: ClassVar[int] = 1
    recurrent: ClassVar[bool] = True

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.weight_ih = nn.Parameter(torch.empty(self.gates * channels, width))
        self.weight_hh = nn.Parameter(torch.empty(self.gates * channels, channels)) if self.recurrent else None
        self.bias_ih = nn.Parameter(torch.empty(self.gates * channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        for weight in self.parameters():
            nn.init.uniform_(weight, -(self.channels**-0.5), self.channels**-0.5)

    def weights(self) -> CellWeights:
        """Return the weights, differentiable."""
        return CellWeights(self.weight_ih, self.bias_ih, self.weight_hh)

    def step(self, z: Tensor, r: Tensor | None, state: State) -> State:
        """Return the next state from the projected token `z` and `r = W_hh h`, both `[n, gates * d]`.

        At the first token `r` is None and `state` is empty. It reads no weights and changes no argument.
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


class GRUCell(PathCell):
    """The GRU of Cho et al. (2014) with the reset gate after the product, as `nn.GRU` without its `bias_hh`."""

    gates = 3

    def step(self, z: Tensor, r: Tensor | None, state: State) -> State:
        """Return h; the gates are reset, update and candidate, in this order."""
        if r is None:
            _, update, new = z.chunk(3, dim=1)
            return ((1 - update.sigmoid()) * new.tanh(),)
        (z_reset, z_update, z_new), (r_reset, r_update, r_new) = z.chunk(3, dim=1), r.chunk(3, dim=1)
        new = (z_new + (z_reset + r_reset).sigmoid() * r_new).tanh()
        return (torch.lerp(new, state[0], (z_update + r_update).sigmoid()),)


class MinGRUCell(PathCell):
    """The minGRU of Feng et al. ("Were RNNs All We Needed?", 2024): its gates do not read h."""

    gates, recurrent = 2, False

    def step(self, z: Tensor, r: Tensor | None, state: State) -> State:
        """Return h; the gates are update and candidate, in this order."""
        update, new = z.chunk(2, dim=1)
        return (torch.lerp(state[0], new, update.sigmoid()) if state else update.sigmoid() * new,)


def make_cell(cell: str | type[PathCell] | PathCell, width: int, channels: int) -> PathCell:
    """Return the cell of a name other than "lstm" or of a class, or a given cell if it reads tokens of `width`."""
    if isinstance(cell, str):
        check_choice("cell", cell, get_args(CellName))
        return {"gru": GRUCell, "mingru": MinGRUCell}[cell](width, channels)
    kind = cell if isinstance(cell, type) else type(cell)
    if not (issubclass(kind, PathCell) and isinstance(getattr(kind, "gates", None), int)):
        raise ValueError(f"cell={cell!r}: expected a name, or a subclass of PathCell with `gates` and `step`.")
    made = cell if isinstance(cell, PathCell) else cell(width, channels)
    _check_step(made)
    shape = tuple(made.weights().input.shape)
    if shape != (made.gates * channels, width):
        raise ValueError(
            f"cell: expected input weights of shape {(made.gates * channels, width)} (gates * channels, width of a "
            f"token: vertex, distance, edge), got {shape}. Pass the class of the cell instead of a cell."
        )
    return made


def _check_step(cell: PathCell) -> None:
    """Raise `ValueError` unless two steps of a cell return its states: wrong ones would be read as something else."""
    z, state = cell.weights().input.new_zeros(1, cell.gates * cell.channels), ()  # type: tuple[Tensor, State]
    expected = [(1, cell.channels)] * cell.states
    for r in (None, z if cell.recurrent else None):
        state = cell.step(z, r, state)
        shapes = [tuple(part.shape) for part in state] if isinstance(state, tuple) else type(state).__name__
        if shapes != expected:
            raise ValueError(
                f"{type(cell).__name__}.step returned {shapes}: expected a tuple of {cell.states} tensors of shape "
                f"[n, channels] (`states`), here {expected}."
            )
