"""Every cell over tries computes what it computes over single paths, and the GRU what torch's GRU computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from nn_graphs import graph, trie_of
from pathnn.nn import PathCell, PathNN, PathNNConfig, PathRNN
from pathnn.nn.cells import GRUCell, MinGRUCell, State
from pathnn.paths import extract_paths
from pathnn.testing import assert_backends_agree

EDGE_INDEX, N = graph()
E = EDGE_INDEX.size(1)


class Peephole(PathCell):
    """A custom cell with two states: the cell of an LSTM whose output gate reads c."""

    gates, states = 3, 2

    def step(self, z: Tensor, r: Tensor | None, state: State) -> State:
        i, g, o = (z if r is None else z + r).chunk(3, dim=1)
        c = i.sigmoid() * g.tanh() + (state[1] * (1 - i.sigmoid()) if state else 0)
        return (o + c).sigmoid() * c.tanh(), c


CELLS = ["gru", "mingru", Peephole]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("collection", ["sp", "ap"])
@pytest.mark.parametrize(("extend", "max_entries"), [(False, None), (True, None), (False, 40)])
def test_parity_with_the_dense_backend(cell, collection, extend, max_entries):
    torch.manual_seed(0)
    model = PathNN(
        3, 6, 2, collection=collection, k=3, cell=cell, edge_channels=2, extend=extend, max_entries=max_entries
    ).double()  # fmt: skip
    x, edge_attr = torch.rand(N, 3, dtype=torch.float64), torch.rand(E, 2, dtype=torch.float64)
    assert_backends_agree(model, x, EDGE_INDEX, edge_attr=edge_attr)


@pytest.mark.parametrize("cell", CELLS)
def test_parity_in_float32_in_parts(cell, monkeypatch):
    from pathnn.nn.backends import levels

    monkeypatch.setattr(levels, "num_workers", lambda numbers: 3)
    torch.manual_seed(0)
    model = PathNN(3, 8, 2, collection="ap", k=3, cell=cell, edge_channels=(4,))
    assert_backends_agree(model, torch.rand(N, 3), EDGE_INDEX, edge_attr=torch.arange(E) % 4)


def test_the_gru_is_torch_s_without_the_bias_of_the_hidden_state():
    torch.manual_seed(0)
    cell, gru = GRUCell(5, 4).double(), nn.GRU(5, 4).double()
    with torch.no_grad():
        gru.weight_ih_l0.copy_(cell.weight_ih)
        gru.weight_hh_l0.copy_(cell.weight_hh)
        gru.bias_ih_l0.copy_(cell.bias_ih)
        gru.bias_hh_l0.zero_()
    steps = torch.randn(6, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(cell.dense(steps), gru(steps)[1][0], rtol=0, atol=1e-14)


def test_the_mingru_is_a_weighted_mean_of_its_candidates():
    torch.manual_seed(0)
    cell = MinGRUCell(5, 4).double()
    steps = torch.randn(6, 3, 5, dtype=torch.float64)
    h = torch.zeros(3, 4, dtype=torch.float64)
    for token in steps:
        z = token @ cell.weight_ih.t() + cell.bias_ih
        update, new = z[:, :4].sigmoid(), z[:, 4:]
        h = (1 - update) * h + update * new
    torch.testing.assert_close(cell.dense(steps), h, rtol=0, atol=1e-14)
    assert cell.weight_hh is None


@pytest.mark.parametrize("cell", CELLS)
def test_gradcheck(cell):
    torch.manual_seed(0)
    trie = trie_of(EDGE_INDEX, N, "ap", 2).length(2)
    reader = PathRNN(3, cell=cell, distances=3).double()
    h = torch.randn(N, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: reader(h, trie), (h,), fast_mode=True)


@pytest.mark.parametrize("cell", CELLS)
def test_training_lowers_the_loss(cell):
    torch.manual_seed(0)
    model = PathNN(3, 8, 1, collection="sp+", k=2, cell=cell, edge_channels=2)
    x, edge_attr, trie = torch.rand(N, 3), torch.rand(E, 2), extract_paths(EDGE_INDEX, N, collection="sp+", k=2)
    optimizer, losses = torch.optim.Adam(model.parameters(), 0.01), []
    for _ in range(40):
        loss = (model(x, trie=trie, edge_attr=edge_attr) - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 10


def test_dropout_is_drawn_in_training_mode_alone():
    model = PathNN(3, 8, 1, collection="sp+", k=2, cell="gru", dropout=0.5, edge_channels=2)
    inputs = {"trie": extract_paths(EDGE_INDEX, N, collection="sp+", k=2), "edge_attr": torch.rand(E, 2)}
    x = torch.rand(N, 3)
    assert not torch.equal(model(x, **inputs), model(x, **inputs))
    model.eval()
    assert torch.equal(model(x, **inputs), model(x, **inputs))


def test_a_given_cell_and_its_width():
    cell = Peephole(8 + 8 + 2, 8)
    model = PathNN(3, 8, 1, collection="ap", k=2, cell=cell, edge_channels=2)
    assert model.lstm.cell is cell
    assert model.config.cell == "custom"
    with pytest.raises(ValueError, match=r"expected input weights of shape \(24, 16\).*got \(24, 18\)"):
        PathNN(3, 8, 1, collection="ap", k=2, cell=cell)
    with pytest.raises(ValueError, match="cell='custom' is unknown: expected one of 'lstm', 'gru', 'mingru'"):
        PathNN.from_config(model.config)


class Bare(PathCell):
    gates = 1

    def step(self, z, r, state):
        return z.tanh()


class Wide(PathCell):
    gates = 2

    def step(self, z, r, state):
        return (z.tanh(),)


class TwoStates(PathCell):
    gates, states = 1, 2

    def step(self, z, r, state):
        return (z.tanh(),)


class NoGates(PathCell):
    def step(self, z, r, state):
        return (z.tanh(),)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (Bare, "step returned Tensor: expected a tuple of 1"),
        (Wide, r"step returned \[\(1, 16\)\]: expected a tuple of 1"),
        (TwoStates, "expected a tuple of 2"),
        (NoGates, "a subclass of PathCell with `gates`"),
        (nn.GRUCell, "a subclass of PathCell with `gates`"),
        (3, "a subclass of PathCell with `gates`"),
    ],
)
def test_cells_that_would_be_read_wrongly_are_refused(cell, words):
    with pytest.raises(ValueError, match=words):
        PathNN(4, 8, 1, collection="ap", k=2, cell=cell)


def test_config_and_weights():
    model = PathNN(3, 8, 1, collection="ap", k=2, cell="gru")
    config = PathNNConfig.from_dict(model.config.to_dict())
    assert config.cell == "gru"
    again = PathNN.from_config(config)
    again.load_state_dict(model.state_dict())
    before = model.lstm.cell.weight_ih.clone()
    model.reset_parameters()
    assert not torch.equal(before, model.lstm.cell.weight_ih)
    assert float(model.lstm.cell.weight_ih.detach().abs().max()) <= 8**-0.5


def test_backends_that_compute_only_the_lstm_refuse():
    with pytest.raises(ValueError, match="backend='cpu' does not support GRUCell"):
        PathNN(3, 8, 1, collection="ap", k=2, cell="gru", backend="cpu")(torch.rand(N, 3), EDGE_INDEX)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_dtypes(dtype):
    model = PathNN(3, 8, 1, collection="ap", k=2, cell="gru", norm=None, encoder_norm=False).to(dtype)
    out = model(torch.rand(N, 3, dtype=dtype), EDGE_INDEX)
    out.sum().backward()
    assert out.dtype == dtype
    assert model.lstm.cell.weight_hh.grad.dtype == dtype
