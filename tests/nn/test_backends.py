"""Every backend computes what the dense one computes: outputs and gradients. (Triton: tests/interpreted.)"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from nn_graphs import graph, trie_of
from path_checks import cycle, line
from path_strategies import collections, graphs, lengths, quick
from pathnn.nn import EdgeTypes, PathLSTM
from pathnn.nn.backends import base
from pathnn.nn.backends.base import Budget, Inputs, LevelTokens, Piece, cut
from pathnn.nn.cells import GRUCell, PathCell, State, lstm_step
from pathnn.paths import LengthTrie, extract_paths

CHANNELS, EDGE_CHANNELS, K = 6, 3, 3
EDGE_INDEX, N = graph()
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


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
    cell = GRUCell(width_of(edges, distances), CHANNELS).double()
    assert_like_dense("auto", cell, torch.float64, "ap", edges, distances)
    assert base.choose("auto", cell.float(), torch.ones(1)).name == "torch"


def test_the_step_of_the_lstm_is_torch_s() -> None:
    torch.manual_seed(0)
    lstm = PathLSTM(CHANNELS).double()
    steps = torch.randn(4, 5, CHANNELS, dtype=torch.float64)
    torch.testing.assert_close(PathCell.dense(lstm, steps), lstm.dense(steps), rtol=0, atol=1e-14)


def test_a_cell_like_the_lstm_is_differentiated_by_its_step() -> None:
    """The gradient for any cell and the one written for the LSTM are the same."""

    class Other(PathLSTM):
        @staticmethod
        def step(z: Tensor, r: Tensor | None, state: State) -> State:  # type: ignore[override]
            return lstm_step(z, r, state)

    torch.manual_seed(0)
    assert_like_dense("auto", Other(CHANNELS).double(), torch.float64, "ap", "none", False)


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


def tokens_of(trie: LengthTrie) -> Piece:
    return [LevelTokens(level.parent, level.vertex, level.edge, level.distance) for level in trie.levels]


@quick
@given(graph=graphs(), collection=collections, k=lengths, extend=st.booleans(), most=st.integers(1, 40))
def test_a_cut_keeps_every_entry_once(graph: Any, collection: Any, k: int, extend: bool, most: int) -> None:
    for trie in extract_paths(*graph, collection=collection, k=k, extend=extend).lengths():
        whole = tokens_of(trie)
        pieces = cut(whole, most)
        for piece in pieces:
            assert sum(level.num_entries for level in piece) <= most or piece[0].num_entries <= 1
        above = [0] * len(pieces)  # where each piece begins in the level before
        for t, level in enumerate(whole):
            parts = [piece[t] for piece in pieces]
            for name in ("vertex", "edge", "distance") if t else ("vertex", "distance"):
                if getattr(level, name) is not None:
                    assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(level, name))
            if level.parent is not None:
                shifted = [part.parent + start for part, start in zip(parts, above, strict=True)]
                assert torch.equal(torch.cat(shifted), level.parent)
            above = [sum(part.num_entries for part in parts[:i]) for i in range(len(parts))]


def test_a_cut_has_as_few_pieces_as_possible() -> None:
    whole = tokens_of(extract_paths(*cycle(6), collection="ap", k=3).length(3))
    per_root = sum(level.num_entries for level in whole) // 6
    assert [len(cut(whole, most)) for most in (2 * per_root, 6 * per_root, 1)] == [3, 1, 6]


@pytest.mark.parametrize("most", [0, -3])
def test_a_piece_has_at_least_one_entry(most: int) -> None:
    with pytest.raises(ValueError, match=f"max_entries={most}"):
        cut(tokens_of(extract_paths(*line(3), collection="sp", k=1).length(1)), most)
