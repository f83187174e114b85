"""Every backend computes what the dense one computes: outputs and gradients. (Triton: tests/interpreted.)"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nn_graphs import graph, trie_of
from pathnn.nn import EdgeTypes, PathLSTM
from pathnn.nn.backends import base
from pathnn.nn.backends.base import Budget, Inputs
from pathnn.nn.backends.levels import Levels
from pathnn.nn.cells import CellWeights, PathCell, State, dense_loop, lstm_step

CHANNELS, EDGE_CHANNELS, K = 6, 3, 3
EDGE_INDEX, N = graph()
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


class GRU(nn.Module):
    """A cell that exists for these tests alone: reset and update gate, and a candidate."""

    gates, states = 3, 1

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.weight = nn.Parameter(torch.randn(3 * channels, width) / 2)
        self.bias = nn.Parameter(torch.randn(3 * channels))
        self.recurrent = nn.Parameter(torch.randn(3 * channels, channels) / 2)

    def weights(self) -> CellWeights:
        return CellWeights(self.weight, self.bias, self.recurrent)

    def step(self, z: Tensor, r: Tensor | None, state: State) -> State:
        r = torch.zeros_like(z) if r is None else r
        before = state[0] if state else z.new_zeros(z.size(0), self.channels)
        (z_reset, z_update, z_new), (r_reset, r_update, r_new) = z.chunk(3, dim=1), r.chunk(3, dim=1)
        update = (z_update + r_update).sigmoid()
        return ((1 - update) * (z_new + (z_reset + r_reset).sigmoid() * r_new).tanh() + update * before,)

    def dense(self, steps: Tensor) -> Tensor:
        return dense_loop(self, steps)


def results(name: str, cell: Any, inputs: list[Tensor | None], types: bool, trie: Any, **options: Any) -> list[Tensor]:
    """The output, and the gradients of a fixed linear function of it."""
    h, edges, distances = inputs
    assert h is not None
    backend = base.choose(name, cell, h)
    read = EdgeTypes(edges, torch.arange(EDGE_INDEX.size(1)) % edges.size(0)) if types and edges is not None else edges
    shared = backend.prepare(cell, Inputs(read, distances), options["budget"])
    out = backend.run(shared, h, trie, summed=options["summed"])
    weights = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
    leaves = [leaf for leaf in (*inputs, *cell.parameters()) if leaf is not None]
    return [
        out.detach(),
        *torch.autograd.grad((out * weights).sum(), leaves, allow_unused=True, materialize_grads=True),
    ]


def assert_like_dense(name: str, cell: Any, dtype: torch.dtype, collection: str, edges: str, distances: bool) -> None:
    """Compare sums and single paths, whole tries and pieces."""
    trie = trie_of(EDGE_INDEX, N, collection, K).length(K)
    rows = {"none": None, "types": 4, "each": EDGE_INDEX.size(1)}[edges]
    shapes = [(N, CHANNELS), None if rows is None else (rows, EDGE_CHANNELS), (K + 1, CHANNELS) if distances else None]
    torch.manual_seed(0)
    inputs = [None if shape is None else torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    for summed in (True, False):
        expected = results("dense", cell, inputs, edges == "types", trie, summed=summed, budget=Budget())
        for budget in (Budget(), Budget(20)):
            found = results(name, cell, inputs, edges == "types", trie, summed=summed, budget=budget)
            for value, truth in zip(found, expected, strict=True):
                assert (value - truth).abs().max() <= TOLERANCE[dtype] * max(1.0, float(truth.abs().max()))


def width_of(edges: str, distances: bool) -> int:
    return CHANNELS + CHANNELS * distances + EDGE_CHANNELS * (edges != "none")


@pytest.mark.parametrize(
    ("name", "dtype"), [("torch", torch.float64), ("torch", torch.float32), ("cpu", torch.float32)]
)
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
@pytest.mark.parametrize("edges", ["none", "types", "each"])
@pytest.mark.parametrize("distances", [False, True])
def test_lstm(name: str, dtype: torch.dtype, collection: str, edges: str, distances: bool) -> None:
    torch.manual_seed(1)
    lstm = PathLSTM(
        CHANNELS,
        distances=K + 1 if distances else None,
        edge_channels=None if edges == "none" else EDGE_CHANNELS,
    ).to(dtype)
    lstm.distance_encoder = None  # the table is an argument here
    assert_like_dense(name, lstm, dtype, collection, edges, distances)


@pytest.mark.parametrize("edges", ["none", "types", "each"])
@pytest.mark.parametrize("distances", [False, True])
def test_another_cell(edges: str, distances: bool) -> None:
    torch.manual_seed(1)
    cell = GRU(width_of(edges, distances), CHANNELS).double()
    assert_like_dense("auto", cell, torch.float64, "ap", edges, distances)
    assert base.choose("auto", cell.float(), torch.ones(1)).name == "torch"


def test_the_step_of_the_lstm_is_torch_s() -> None:
    torch.manual_seed(0)
    lstm = PathLSTM(CHANNELS).double()
    steps = torch.randn(4, 5, CHANNELS, dtype=torch.float64)
    torch.testing.assert_close(dense_loop(lstm, steps), lstm.dense(steps), rtol=0, atol=1e-14)


def test_a_cell_like_the_lstm_is_differentiated_by_its_step() -> None:
    """The gradient for any cell and the one written for the LSTM are the same."""

    class Other(PathLSTM):
        @staticmethod
        def step(z: Tensor, r: Tensor | None, state: State) -> State:  # type: ignore[override]
            return lstm_step(z, r, state)

    torch.manual_seed(0)
    assert_like_dense("auto", Other(CHANNELS).double(), torch.float64, "ap", "none", False)


def test_a_registered_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Levels):
        name = "slow"

        def supports(self, cell: PathCell, like: Tensor) -> bool:
            return like.dtype == torch.float64

    monkeypatch.setattr(base, "_registered", {})
    base.register(Slow())
    lstm, like = PathLSTM(CHANNELS, backend="slow"), torch.ones(1)
    assert base.choose("auto", lstm, like.double()).name == "slow"
    assert base.choose("auto", lstm, like).name == "cpu"
    with pytest.raises(ValueError, match="backend='slow' does not support PathLSTM"):
        lstm(torch.ones(N, CHANNELS), trie_of(EDGE_INDEX, N, "ap", K).length(K))
    with pytest.raises(ValueError, match="comes with pathnn"):
        base.register(Levels())


def test_layers_share_what_was_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """One projection of edges per forward pass; one for each layer where dropout draws a mask for each."""
    from pathnn import PathNN
    from pathnn.nn.backends import cpu

    calls: list[int] = []
    prepare = cpu.Cpu.prepare
    monkeypatch.setattr(cpu.Cpu, "prepare", lambda *arguments: (calls.append(1), prepare(*arguments))[1])
    codes = torch.zeros(EDGE_INDEX.size(1), dtype=torch.long)
    for dropout, number in ((0.0, 1), (0.5, K)):
        model = PathNN(4, 8, 2, collection="ap", k=K, edge_channels=(3,), dropout=dropout)
        model(torch.randn(N, 4), EDGE_INDEX, edge_attr=codes)
        assert len(calls) == number
        calls.clear()


def test_a_budget_is_an_argument() -> None:
    lstm = PathLSTM(CHANNELS, max_entries=7)
    assert lstm.prepare(None).budget == Budget(7)
    assert lstm.prepare(None, Budget(9, recompute=False)).budget == Budget(9, recompute=False)
    assert lstm.max_entries == 7
    h = torch.randn(N, CHANNELS)
    trie = trie_of(EDGE_INDEX, N, "ap", K).length(K)
    torch.testing.assert_close(lstm(h, trie), lstm(h, trie, lstm.prepare(None, Budget())))
