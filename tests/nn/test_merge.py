"""Merging equal surroundings changes no output, for any paths, cells and aggregations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pathnn.nn import PathNN
from pathnn.nn.backends.base import Budget
from pathnn.nn.merge import merge_lengths, merge_rows
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


def test_gradients_and_numbers_are_not_merged() -> None:
    from pathnn.nn.merge import can_merge

    x, edge_index, types, _ = rings(repeat=1)
    trie = extract_paths(edge_index, len(x), collection="sp", k=1)
    with torch.no_grad():
        assert can_merge(x, types, trie)
        assert not can_merge(x, types.float(), trie)
        assert not can_merge(x.float(), None, trie)
    assert not can_merge(x, types, trie)


def test_graphs_without_edges() -> None:
    x, empty = torch.tensor([[6, 0], [6, 0]]), torch.zeros(2, 0, dtype=torch.long)
    model = PathNN((9, 3), 8, 1, edge_channels=(3,), collection="ap", k=2).eval()
    trie, edge_attr = extract_paths(empty, 2, collection="ap", k=2), torch.zeros(0, 1, dtype=torch.long)
    with torch.inference_mode():
        plain, merged = (
            model(x, trie=trie, edge_attr=edge_attr, budget=Budget(merge=merge)) for merge in (False, True)
        )
    torch.testing.assert_close(merged, plain)
