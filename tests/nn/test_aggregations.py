"""Aggregations over paths: against one path at a time, against the dense backend, and their limits."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import aggr

from nn_graphs import graph, trie_of
from pathnn.nn import PathLSTM, PathNN
from pathnn.testing import assert_backends_agree, assert_permutation_invariant

EDGE_INDEX, N = graph()
E = EDGE_INDEX.size(1)


def pyg(name):
    """Make a fresh aggregation of PyG; one needs rows sorted by vertex, one has weights."""
    return {
        "median": aggr.MedianAggregation,
        "lstm": lambda: aggr.LSTMAggregation(6, 6),
        "powermean": lambda: aggr.PowerMeanAggregation(learn=True),
    }[name]()


@pytest.mark.parametrize("name", ["sum", "mean", "max", "attention", "median"])
@pytest.mark.parametrize("backend", ["auto", "dense"])
def test_each_vertex_aggregates_its_own_paths(name, backend):
    torch.manual_seed(0)
    lone = torch.tensor([[N], [N + 1]])  # an edge apart: its ends have no path of length 3
    edge_index, n = torch.cat([EDGE_INDEX, lone, lone.flip(0)], dim=1), N + 2
    trie = trie_of(edge_index, n, "sp+", 3).length(3)
    lstm = PathLSTM(6, aggregation=pyg(name) if name == "median" else name, backend=backend).double()
    h = torch.randn(n, 6, dtype=torch.float64)
    states, out = lstm.path_representations(h, trie), lstm(h, trie)
    reduce = {
        "sum": lambda rows: rows.sum(dim=0),
        "mean": lambda rows: rows.mean(dim=0),
        "max": lambda rows: rows.amax(dim=0),
        "attention": lambda rows: (rows * lstm.aggr.gate_nn(rows).softmax(dim=0)).sum(dim=0),
        "median": lambda rows: rows.median(dim=0).values,
    }[name]
    for vertex in range(n):
        rows = states[trie.source == vertex]
        expected = reduce(rows) if len(rows) else torch.zeros(6, dtype=torch.float64)
        torch.testing.assert_close(out[vertex], expected, rtol=0, atol=1e-12)
    assert not len(states[trie.source == N])


@pytest.mark.parametrize("name", ["max", "attention", "median", "lstm", "powermean"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("max_entries", [None, 40])
def test_parity_with_the_dense_backend(name, cell, max_entries):
    torch.manual_seed(0)
    aggregation = name if name in ("max", "attention") else pyg(name)
    model = PathNN(
        3, 6, 2, collection="ap", k=3, aggregation=aggregation, cell=cell, edge_channels=2, max_entries=max_entries,
        norm=None,
    ).double()  # fmt: skip
    x, edge_attr = torch.rand(N, 3, dtype=torch.float64), torch.rand(E, 2, dtype=torch.float64)
    assert_backends_agree(model, x, EDGE_INDEX, edge_attr=edge_attr)


@pytest.mark.parametrize("name", ["max", "attention"])
def test_the_numbers_of_vertices_do_not_matter(name):
    torch.manual_seed(0)
    model = PathNN(3, 8, 2, collection="ap", k=2, aggregation=name)
    assert_permutation_invariant(model, torch.rand(N, 3), EDGE_INDEX)


def test_config_and_weights():
    model = PathNN(3, 8, 1, collection="ap", k=2, aggregation="attention")
    again = PathNN.from_config(model.config.to_dict())
    again.load_state_dict(model.state_dict())
    before = model.lstm.aggr.gate_nn.weight.clone()
    model.reset_parameters()
    assert not torch.equal(before, model.lstm.aggr.gate_nn.weight)
    custom = PathNN(3, 8, 1, collection="ap", k=2, aggregation=pyg("median"))
    assert custom.config.aggregation == custom.lstm.aggregation == "custom"
    with pytest.raises(ValueError, match="aggregation='custom' is unknown: expected one of 'sum', 'mean', 'max'"):
        PathNN.from_config(custom.config)


def test_a_result_of_another_width_is_refused():
    model = PathNN(3, 8, 1, collection="ap", k=2, aggregation=aggr.MultiAggregation(["sum", "max"]))
    with pytest.raises(ValueError, match=rf"expected a result of shape \({N}, 8\).*got \({N}, 16\) from MultiAgg"):
        model(torch.rand(N, 3), EDGE_INDEX)


def test_paths_of_other_aggregations_are_not_explained():
    from pathnn.explain import explain_paths

    x = torch.rand(N, 3)
    with pytest.raises(ValueError, match="not summed or averaged"):
        explain_paths(PathNN(3, 8, 1, collection="ap", k=2, aggregation="max"), x, EDGE_INDEX)
    model = PathNN(3, 8, 1, collection="ap", k=2, cell="gru").eval()
    found = explain_paths(model, x, EDGE_INDEX)
    assert found.prediction == pytest.approx(float(model(x, EDGE_INDEX).detach()), rel=1e-4)
