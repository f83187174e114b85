"""The two engines are the same function, with the same gradients, however the work is cut."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

from nn_graphs import both_directions, graph, trie_of
from nn_strategies import graphs
from pathnn.nn import EdgeTypes, PathLSTM
from pathnn.nn.backends import levels
from pathnn.nn.backends.cpu import Cpu
from pathnn.paths.trie import LengthTrie

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
CHANNELS, EDGE_CHANNELS, K = 6, 3, 3


def difference(value: Tensor, expected: Tensor) -> float:
    """Largest difference over largest value."""
    assert value.shape == expected.shape
    if value.numel() == 0:
        return 0.0
    value, expected = value.detach(), expected.detach()
    return float((value - expected).abs().max() / expected.abs().max().clamp(min=1e-30))


def inputs(num_nodes: int, num_edges: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    h = torch.randn(num_nodes, CHANNELS, dtype=dtype, requires_grad=True)
    return h, torch.randn(num_edges, EDGE_CHANNELS, dtype=dtype, requires_grad=True)


def run(lstm: PathLSTM, h: Tensor, trie: LengthTrie, edges: Any, leaves: list[Tensor]) -> list[Tensor]:
    """The output, and the gradients of a fixed linear function of it."""
    out = lstm(h, trie, edges)
    torch.manual_seed(2)
    parameters = list(lstm.parameters())
    grads = torch.autograd.grad(
        (out * torch.randn_like(out)).sum(), [*leaves, *parameters], allow_unused=True, materialize_grads=True
    )
    return [out.detach(), *grads]


def assert_backends_agree(lstm: PathLSTM, h: Tensor, trie: LengthTrie, edges: Any, leaves: list[Tensor]) -> None:
    results = {}
    for backend in ("dense", "auto"):
        lstm.backend = backend
        results[backend] = run(lstm, h, trie, edges, leaves)
    for value, expected in zip(results["auto"], results["dense"], strict=True):
        assert difference(value, expected) <= TOLERANCE[h.dtype]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize(("edges", "distances"), list(product([False, True], [False, True])))
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_trie_equals_dense(collection, edges, distances, aggregation, dtype):
    edge_index, n = graph()
    trie = trie_of(edge_index, n, collection, K)
    h, edge_attr = inputs(n, edge_index.size(1), dtype)
    lstm = PathLSTM(
        CHANNELS,
        distances=K + 1 if distances else None,
        edge_channels=EDGE_CHANNELS if edges else None,
        aggregation=aggregation,
    ).to(dtype)
    leaves = [h, edge_attr] if edges else [h]
    for length in range(1, K + 1):
        assert trie.length(length).num_paths > 0
        assert_backends_agree(lstm, h, trie.length(length), edge_attr if edges else None, leaves)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_trie_equals_dense_with_dummy_tokens(collection, dtype):
    edge_index, n = graph()
    trie = trie_of(edge_index, n, collection, 4, extend=True)
    h, edge_attr = inputs(n, edge_index.size(1), dtype)
    lstm = PathLSTM(CHANNELS, distances=6, edge_channels=EDGE_CHANNELS, extended=True).to(dtype)
    assert any(bool((level.vertex < 0).any()) for level in trie.length(4).levels)
    assert_backends_agree(lstm, h, trie.length(4), edge_attr, [h, edge_attr])


@given(
    graphs(), st.sampled_from(["sp", "sp+", "ap"]), st.integers(1, 4), st.sampled_from([torch.float32, torch.float64])
)
@settings(max_examples=25, deadline=None)
def test_trie_equals_dense_on_any_graph(drawn, collection, length, dtype):
    edge_index, n = drawn
    trie = trie_of(edge_index, n, collection, length).length(length)
    h, edge_attr = inputs(n, edge_index.size(1), dtype)
    lstm = PathLSTM(CHANNELS, distances=length + 1, edge_channels=EDGE_CHANNELS).to(dtype)
    assert_backends_agree(lstm, h, trie, edge_attr, [h, edge_attr])


@pytest.mark.parametrize("channels", [1, 16, 64, 140])
def test_compiled_loops_at_any_width(channels):
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    h = torch.randn(n, channels, requires_grad=True)
    assert_backends_agree(PathLSTM(channels, distances=K + 1), h, trie, None, [h])


@pytest.mark.parametrize("summed", [True, False])
def test_gradcheck(summed):
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", 2, extend=True).length(2)
    h, edge_attr = inputs(n, edge_index.size(1), torch.float64)
    lstm = PathLSTM(CHANNELS, distances=4, edge_channels=EDGE_CHANNELS, extended=True).double()
    names, values = zip(*lstm.named_parameters(), strict=True)
    assert set(names) == {
        "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "distance_encoder.weight", "dummy",
    }  # fmt: skip

    def function(h: Tensor, edge_attr: Tensor, *parameters: Tensor) -> Tensor:
        with torch.nn.utils.stateless._reparametrize_module(lstm, dict(zip(names, parameters, strict=True))):
            return lstm(h, trie, edge_attr) if summed else lstm.path_representations(h, trie, edge_attr)

    assert torch.autograd.gradcheck(function, (h, edge_attr, *values), fast_mode=not summed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pieces_give_the_same_result(dtype):
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    h, edge_attr = inputs(n, edge_index.size(1), dtype)
    lstm = PathLSTM(CHANNELS, distances=K + 1, edge_channels=EDGE_CHANNELS).to(dtype)
    whole = run(lstm, h, trie, edge_attr, [h, edge_attr])
    paths = lstm.path_representations(h, trie, edge_attr)
    for max_entries in (1, 17, 60, trie.num_entries):
        lstm.max_entries = max_entries
        for value, expected in zip(run(lstm, h, trie, edge_attr, [h, edge_attr]), whole, strict=True):
            assert difference(value, expected) <= TOLERANCE[dtype]
        assert difference(lstm.path_representations(h, trie, edge_attr), paths) <= TOLERANCE[dtype]


def kept_numbers(out: Tensor) -> int:
    parts = out.grad_fn.kept or []
    return sum(x.numel() for _, inner in parts for level in inner for x in (*level.state, *level.products))


def test_pieces_keep_no_states():
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    lstm = PathLSTM(CHANNELS)
    h = torch.randn(n, CHANNELS, requires_grad=True)

    inner = sum(len(level) for level in trie.levels[:-1])
    assert kept_numbers(lstm(h, trie)) == 6 * inner * CHANNELS  # h, c and the four gates of W_hh h
    lstm.max_entries = 17
    assert kept_numbers(lstm(h, trie)) == 0


def test_a_second_backward_pass_recomputes_the_states():
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    lstm, h = PathLSTM(CHANNELS), torch.randn(n, CHANNELS, requires_grad=True)
    out = lstm(h, trie)
    first, second = (torch.autograd.grad(out.sum(), h, retain_graph=True)[0] for _ in range(2))
    assert out.grad_fn.kept is None
    assert torch.equal(first, second)


def test_products_are_recomputed_where_they_are_many(monkeypatch):
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    h, edge_attr = inputs(n, edge_index.size(1), torch.float32)
    lstm = PathLSTM(CHANNELS, distances=K + 1, edge_channels=EDGE_CHANNELS)
    kept = run(lstm, h, trie, edge_attr, [h, edge_attr])
    numbers = kept_numbers(lstm(h, trie, edge_attr))
    monkeypatch.setattr(levels, "MOST_KEPT", 0)
    fewer = kept_numbers(lstm(h, trie, edge_attr))
    assert numbers - fewer == 4 * CHANNELS * sum(len(level) for level in trie.levels[:-1])
    for value, expected in zip(run(lstm, h, trie, edge_attr, [h, edge_attr]), kept, strict=True):
        assert torch.equal(value, expected)


def test_path_representations_sum_to_the_output_and_are_the_lstm_s():
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "sp+", K)
    h, _ = inputs(n, 0, torch.float64)
    lstm = PathLSTM(CHANNELS).double()
    states = lstm.path_representations(h, trie.length(K))
    total = torch.zeros(n, CHANNELS, dtype=torch.float64).index_add(0, trie.length(K).source, states)
    assert difference(lstm(h, trie.length(K)), total) <= 1e-12
    plain = nn.LSTM(CHANNELS, CHANNELS).double()
    plain.load_state_dict(lstm.state_dict())
    for path, state in list(zip(trie.to_paths()[K - 1], states, strict=True))[::7]:
        _, (last, _) = plain(h[path.flip(0)])
        assert difference(state, last[0]) <= 1e-12


def test_parameters_are_those_of_nn_lstm():
    torch.manual_seed(0)
    expected = nn.LSTM(4 + 4 + 3, 4)
    torch.manual_seed(0)
    lstm = PathLSTM(4, distances=5, edge_channels=3)
    state = lstm.state_dict()
    assert state.pop("distance_encoder.weight").shape == (5, 4)
    assert state.keys() == expected.state_dict().keys()
    for name, value in expected.state_dict().items():
        assert torch.equal(state[name], value)


def test_edge_types_equal_their_expansion():
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K, extend=True).length(K)
    h, _ = inputs(n, 0, torch.float64)
    table = torch.randn(4, EDGE_CHANNELS, dtype=torch.float64, requires_grad=True)
    edges = EdgeTypes(table, torch.arange(edge_index.size(1)) % 4)
    lstm = PathLSTM(CHANNELS, edge_channels=EDGE_CHANNELS, extended=True).double()
    by_type = run(lstm, h, trie, edges, [h, table])
    by_edge = run(lstm, h, trie, edges.expand(), [h, table])
    assert all(difference(a, b) <= 1e-12 for a, b in zip(by_type, by_edge, strict=True))
    assert_backends_agree(lstm, h, trie, edges, [h, table])


@pytest.mark.parametrize("edge_index", [torch.empty(2, 0, dtype=torch.long), both_directions([(0, 1)])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_paths_give_zeros(edge_index, dtype):
    trie = trie_of(edge_index, 3, "ap", 3).length(3)
    h = torch.randn(3, CHANNELS, dtype=dtype, requires_grad=True)
    for backend in ("dense", "auto"):
        lstm = PathLSTM(CHANNELS, distances=4, backend=backend, aggregation="mean", max_entries=5).to(dtype)
        out = lstm(h, trie)
        assert torch.equal(out, torch.zeros_like(h))
        out.sum().backward()
        assert lstm.path_representations(h, trie).shape == (0, CHANNELS)


def test_same_bits_every_time():
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    h, edge_attr = inputs(n, edge_index.size(1), torch.float32)
    lstm = PathLSTM(CHANNELS, distances=K + 1, edge_channels=EDGE_CHANNELS)
    first = run(lstm, h, trie, edge_attr, [h, edge_attr])
    for _ in range(3):
        again = run(lstm, h, trie, edge_attr, [h, edge_attr])
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parts_in_threads_and_small_blocks_agree(monkeypatch, dtype):
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    h, edge_attr = inputs(n, edge_index.size(1), dtype)
    lstm = PathLSTM(CHANNELS, distances=K + 1, edge_channels=EDGE_CHANNELS).to(dtype)
    expected = run(lstm, h, trie, edge_attr, [h, edge_attr])
    threads = torch.get_num_threads()
    monkeypatch.setattr(levels, "num_workers", lambda numbers: 3)
    for backend in (Cpu, levels.Levels):
        monkeypatch.setattr(backend, "block_parents", 4)
    for max_entries in (None, 60):
        lstm.max_entries = max_entries
        results = [run(lstm, h, trie, edge_attr, [h, edge_attr]) for _ in range(2)]
        assert all(difference(a, b) <= TOLERANCE[dtype] for a, b in zip(results[0], expected, strict=True))
        assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
        with torch.inference_mode():
            assert difference(lstm(h, trie, edge_attr), expected[0]) <= TOLERANCE[dtype]
    assert torch.get_num_threads() == threads


def test_number_of_workers(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert levels.num_workers(10) == 1
    assert levels.num_workers(5 << 18) == 5
    assert levels.num_workers(1 << 30) == 8


def test_small_work_runs_on_one_core(monkeypatch):
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    used = []

    def forward_block(*arguments):
        used.append(torch.get_num_threads())
        compiled(*arguments)

    compiled = Cpu.forward_block
    monkeypatch.setattr(Cpu, "forward_block", forward_block)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        PathLSTM(CHANNELS)(torch.randn(n, CHANNELS), trie)
        with pytest.raises(ZeroDivisionError):
            levels.run_in_threads(lambda part: part // 0, [1])
        assert torch.get_num_threads() == 3, "also after an error"
    finally:
        torch.set_num_threads(before)
    assert set(used) == {1}


def test_compiled_loops_keep_nan():
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", K).length(K)
    h = torch.randn(n, CHANNELS)
    h[0, 0] = float("nan")
    assert PathLSTM(CHANNELS)(h, trie).isnan().any()
    assert not PathLSTM(CHANNELS)(1e4 * torch.randn(n, CHANNELS), trie).isnan().any()


def test_a_second_derivative_is_refused():
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", 2).length(2)
    h = torch.randn(n, CHANNELS, requires_grad=True)
    out = PathLSTM(CHANNELS)(h, trie).sum()
    with pytest.raises(RuntimeError, match="use backend='dense'"):
        torch.autograd.grad(out, h, create_graph=True)


def test_edges_of_few_kinds_are_masked_each_by_itself():
    edge_index, num_nodes = graph()
    trie = trie_of(edge_index, num_nodes, "sp+").length(2)
    h, _ = inputs(num_nodes, edge_index.size(1), torch.float32)
    kinds = EdgeTypes(torch.randn(4, EDGE_CHANNELS), torch.arange(edge_index.size(1)) % 4)
    lstm = PathLSTM(CHANNELS, edge_channels=EDGE_CHANNELS, dropout=0.5)
    outs = []
    for edges in (kinds, kinds.expand()):
        torch.manual_seed(0)
        outs.append(lstm(h, trie, edges))
    assert torch.equal(*outs)


def test_dropout_masks_vertices_and_edges_only_in_training():
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", 2).length(2)
    h, edge_attr = inputs(n, edge_index.size(1), torch.float32)
    lstm = PathLSTM(CHANNELS, distances=3, edge_channels=EDGE_CHANNELS, dropout=0.5)
    plain = copy.deepcopy(lstm)
    plain.input_dropout = 0.0
    assert torch.equal(lstm.eval()(h, trie, edge_attr), plain(h, trie, edge_attr))
    lstm.train()
    results = {}
    for backend in ("dense", "auto"):
        lstm.backend = backend
        torch.manual_seed(3)
        results[backend] = lstm(h, trie, edge_attr)
    assert difference(results["auto"], results["dense"]) <= 1e-5
    assert difference(results["auto"], plain(h, trie, edge_attr)) > 1e-2
    ones = EdgeTypes(torch.ones(1, EDGE_CHANNELS), torch.zeros(edge_index.size(1), dtype=torch.long))
    assert lstm(h, trie, ones).shape == h.shape


@pytest.mark.parametrize("backend", ["auto", "dense"])
@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_dropout_acts_on_the_input_and_keeps_its_mean(backend, edges, rate):
    """Masked numbers are zeros, and the others are divided by 1 - rate: first of edges, then of vertices."""
    edge_index, n = graph()
    trie = trie_of(edge_index, n, "ap", 2).length(2)
    h, edge_attr = inputs(n, edge_index.size(1), torch.float32)
    width = EDGE_CHANNELS if edges else None
    lstm = PathLSTM(CHANNELS, distances=3, edge_channels=width, backend=backend, dropout=rate)
    plain = copy.deepcopy(lstm).eval()
    features = [h, edge_attr] if edges else [h]
    torch.manual_seed(3)
    masked = [x * torch.empty_like(x).bernoulli_(1 - rate) / (1 - rate) for x in reversed(features)][::-1]
    torch.manual_seed(3)
    out = lstm(h, trie, *features[1:])
    assert difference(out, plain(masked[0], trie, *masked[1:])) <= 1e-5
    assert difference(out, plain(h, trie, *masked[1:])) > 1e-2


def test_errors_say_what_was_expected():
    edge_index, n = graph()
    full = trie_of(edge_index, n, "ap", 2, extend=True).length(2)
    trie = trie_of(edge_index, n, "ap", 2).length(2)
    h, edge_attr = torch.randn(n, CHANNELS), torch.randn(edge_index.size(1), EDGE_CHANNELS)
    lstm = PathLSTM(CHANNELS, edge_channels=EDGE_CHANNELS)
    for arguments, message in (
        ((h[:, :2], trie, edge_attr), r"\[num_nodes, 6\], got \(12, 2\)"),
        ((h[:4], trie, edge_attr), "h has 4 rows, but the trie was made for 12"),
        ((h, trie, None), "edge features are missing"),
        ((h, trie, edge_attr[:, :2]), r"\[num_edges, 3\], got"),
        ((h, trie, edge_attr[:5]), "features of 5 edges"),
        ((h, full, edge_attr), "extended=True"),
    ):
        with pytest.raises(ValueError, match=message):
            lstm(*arguments)
    with pytest.raises(ValueError, match="without edge_channels"):
        PathLSTM(CHANNELS)(h, trie, edge_attr)
    with pytest.raises(ValueError, match="the table has 2 rows"):
        PathLSTM(CHANNELS, distances=2)(h, trie)
    with pytest.raises(ValueError, match="aggregation='min' is unknown: expected one of 'sum', 'mean', 'max'"):
        PathLSTM(CHANNELS, aggregation="min")
    with pytest.raises(ValueError, match="max_entries=-1"):
        PathLSTM(CHANNELS, max_entries=-1)(h, trie)
