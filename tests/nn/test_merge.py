"""Merging equal surroundings changes no output and no gradient, for any paths, cells and aggregations."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pathnn.nn import PathNN, path_nn
from pathnn.nn.backends.base import Budget
from pathnn.nn.merge import can_merge, merge_lengths, merge_rows
from pathnn.paths.extract import extract_paths


def rings(*, repeat: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return copies of a ring of six with a tail: vertices, edges and their categories, and the graphs."""
    ends = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 6], [6, 7]])
    one = torch.cat([ends, ends.flip(1)]).t()
    edge_index = torch.cat([one + 8 * i for i in range(repeat)], dim=1)
    x = torch.tensor([[6, 0], [6, 0], [6, 1], [7, 0], [6, 1], [6, 0], [8, 2], [6, 0]]).repeat(repeat, 1)
    types = torch.tensor([[1], [0], [1], [0], [1], [0], [2], [2]]).repeat(2, 1)
    return x, edge_index, types.repeat(repeat, 1), torch.arange(repeat).repeat_interleave(8)


OPTIONS: list[dict[str, Any]] = [
    {"collection": "ap", "k": 4},
    {"collection": "sp+", "k": 3, "aggregation": "max", "phi": "mlp"},
    {"collection": "sp", "k": 2, "cell": "gru", "aggregation": "mean", "normalize": True},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("edges", [True, False])
def test_merging_changes_no_output(options: dict[str, Any], edges: bool) -> None:
    torch.manual_seed(0)
    x, edge_index, types, batch = rings(repeat=3)
    x[-1, 0] = 7  # the last graph differs
    model = PathNN((9, 3), 8, 1, edge_channels=(3,) if edges else None, readout="mean", **options).double().eval()
    trie = extract_paths(edge_index, len(x), collection=options["collection"], k=options["k"])
    given: dict[str, Any] = {"trie": trie, "batch": batch, "edge_attr": types if edges else None}
    with torch.inference_mode():
        plain, merged = (model(x, **given, budget=Budget(merge=merge)) for merge in (False, True))
    torch.testing.assert_close(merged, plain)
    assert plain[0] == plain[1] != plain[2]


def test_copies_of_a_graph_are_computed_once() -> None:
    x, edge_index, types, _ = rings(repeat=50)
    trie = extract_paths(edge_index, len(x), collection="ap", k=3)
    vertices, edges = merge_rows(x)[0], merge_rows(types)[0]
    for merged in merge_lengths(trie, 3, vertices, edges):
        assert merged.trie.num_nodes <= 8
        assert merged.trie.num_entries < trie.length(merged.trie.length).num_entries / 40


def test_equal_rows_are_one_class() -> None:
    classes, first = merge_rows(torch.tensor([[1, 2], [0, 0], [1, 2]]))
    assert (classes.tolist(), first.tolist()) == ([0, 1, 0], [0, 1])


def test_gradients_in_evaluation_and_numbers_are_not_merged() -> None:
    x, edge_index, types, _ = rings(repeat=1)
    trie, model = extract_paths(edge_index, len(x), collection="sp", k=1), PathNN((9, 3), 8, 1, **OPTIONS[0]).eval()
    with torch.no_grad():
        assert can_merge(model, x, types, trie, None)
        assert not can_merge(model, x, types.float(), trie, None)
        assert not can_merge(model, x.float(), None, trie, None)
    assert not can_merge(model, x, types, trie, None)


TRAINED: list[dict[str, Any]] = [
    {"collection": "ap", "k": 4, "phi": "mlp"},
    {"collection": "sp+", "k": 3, "aggregation": "mean", "normalize": True},
    {"collection": "sp", "k": 2, "norm": None, "phi": "identity", "readout": "mean"},
]


@pytest.mark.parametrize("options", TRAINED)
@pytest.mark.parametrize("encoder", ["categorical", "one-hot"])
def test_a_training_step_with_merged_vertices_is_that_of_the_dense_backend(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], encoder: str
) -> None:
    monkeypatch.setattr(path_nn, "MERGED", 0)
    torch.manual_seed(0)
    x, edge_index, types, batch = rings(repeat=4)
    x[-1, 0] = 7
    one_hot = {"in_channels": 9, "encoder": "one-hot"}
    given = {"in_channels": (9, 3), "edge_channels": (3,)} if encoder == "categorical" else one_hot
    model = PathNN(hidden_channels=8, out_channels=1, **given, **options).double()
    x, edge_attr = (x, types) if encoder == "categorical" else (x[:, :1], None)
    trie = extract_paths(edge_index, len(x), collection=options["collection"], k=options["k"])
    dense = twin(model)
    for each in (model, dense):
        out = each(x, trie=trie, batch=batch, edge_attr=edge_attr)
        (out * torch.tensor([[1.0], [-2.0], [3.0], [0.5]])).sum().backward()
    torch.testing.assert_close(model.state_dict(), dense.state_dict())  # also the statistics of BatchNorm
    for found, expected in zip(model.parameters(), dense.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad)


def twin(model: PathNN) -> PathNN:
    """Return a copy with backend "dense"."""
    found = deepcopy(model)
    found.lstm.backend = "dense"
    return found


def vertices_read(model: PathNN, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of vertices that the LSTM reads in each call."""
    sizes, run = list[int](), model.lstm._run

    def counted(h: Tensor, *args: Any, **more: Any) -> Tensor:
        sizes.append(len(h))
        return run(h, *args, **more)

    monkeypatch.setattr(model.lstm, "_run", counted)
    return sizes


def test_the_lstm_reads_merged_vertices_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_nn, "MERGED", 0)
    x, edge_index, types, batch = rings(repeat=50)
    model = PathNN((9, 3), 8, 1, edge_channels=(3,), collection="ap", k=3)
    sizes = vertices_read(model, monkeypatch)
    trie = extract_paths(edge_index, len(x), collection="ap", k=3)
    given: dict[str, Any] = {"trie": trie, "batch": batch, "edge_attr": types}
    model(x, **given)
    assert all(size <= 8 for size in sizes)
    assert len(sizes) == 3


def test_a_custom_lstm_is_trained_without_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    class Zeros(nn.Module):
        def forward(self, h: Tensor, trie: Any, edges: Any) -> Tensor:
            return torch.zeros_like(h)

    monkeypatch.setattr(path_nn, "MERGED", 0)
    x, edge_index, _, batch = rings(repeat=2)
    model = PathNN((9, 3), 8, 1, collection="ap", k=2)
    model.lstm = Zeros()  # type: ignore[assignment]
    assert model(x, edge_index, batch=batch).shape == (2, 1)


@pytest.mark.parametrize("change", ["dropout", "input dropout", "custom", "hook", "backend", "small"])
def test_what_may_differ_is_not_merged_in_training(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    monkeypatch.setattr(path_nn, "MERGED", 0 if change != "small" else 1 << 22)
    x, edge_index, types, batch = rings(repeat=3)
    model = PathNN((9, 3), 8, 1, edge_channels=(3,), collection="ap", k=2, phi="mlp")
    if change == "dropout":
        model.convs[0].phi[0].p = 0.5  # type: ignore[index, union-attr]
    elif change == "input dropout":
        model.lstm.input_dropout = 0.5
    elif change == "custom":
        model.convs[1].norm = nn.LayerNorm(8)
    elif change == "hook":
        model.lstm.register_forward_hook(lambda *_: None)
    elif change == "backend":
        model.lstm.backend = "dense"
    sizes = vertices_read(model, monkeypatch)
    model(x, edge_index, batch=batch, edge_attr=types)
    assert sizes == [len(x)] * 2


def test_graphs_without_edges() -> None:
    x, empty = torch.tensor([[6, 0], [6, 0]]), torch.zeros(2, 0, dtype=torch.long)
    model = PathNN((9, 3), 8, 1, edge_channels=(3,), collection="ap", k=2).eval()
    trie, edge_attr = extract_paths(empty, 2, collection="ap", k=2), torch.zeros(0, 1, dtype=torch.long)
    with torch.inference_mode():
        plain, merged = (
            model(x, trie=trie, edge_attr=edge_attr, budget=Budget(merge=merge)) for merge in (False, True)
        )
    torch.testing.assert_close(merged, plain)
