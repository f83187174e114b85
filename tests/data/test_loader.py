"""Batches within a budget: loaders and samplers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pathnn.data import (
    BudgetSampler,
    PackedGraphs,
    PackedLoader,
    SizeSampler,
)
from pathnn.device import default_max_entries, free_memory


def test_an_epoch_visits_each_graph_once_in_an_order_of_its_own(graphs: PackedGraphs) -> None:
    loader = PackedLoader(replace(graphs, y=torch.arange(7)), batch_size=3, shuffle=True, seed=1)
    epochs = [torch.cat([batch.y for batch in loader]).tolist() for _ in range(3)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert torch.cat(loader.indices(1)).tolist() == epochs[1]
    other = PackedLoader(replace(graphs, y=torch.arange(7)), batch_size=3, shuffle=True, seed=2)
    assert torch.cat([batch.y for batch in other]).tolist() != epochs[0]


def test_the_orders_of_one_seed_are_not_those_of_the_next() -> None:
    edges = [torch.empty(2, 0, dtype=torch.long)] * 50
    graphs = PackedGraphs.from_edges(edges, [1] * 50)
    loaders = [PackedLoader(graphs, batch_size=50, shuffle=True, seed=seed) for seed in range(5)]
    assert len({tuple(loader.indices(epoch)[0].tolist()) for loader in loaders for epoch in range(5)}) == 25


def test_a_loader_takes_the_graphs_of_a_split(graphs: PackedGraphs) -> None:
    loader = PackedLoader(replace(graphs, y=torch.arange(7)), torch.tensor([5, 2, 6]), batch_size=2)
    assert [batch.y.tolist() for batch in loader] == [[5, 2], [6]]
    assert len(loader) == 2


def test_a_last_batch_of_one_graph_can_be_dropped(graphs: PackedGraphs) -> None:
    assert [b.num_graphs for b in PackedLoader(graphs, batch_size=3, drop_single=True)] == [3, 3]
    assert [b.num_graphs for b in PackedLoader(graphs, [0], batch_size=3, drop_single=True)] == [1], "not the only one"


def test_a_batch_carries_the_budget_of_its_loader(graphs: PackedGraphs) -> None:
    assert next(iter(PackedLoader(graphs, max_entries=50))).max_entries == 50
    assert next(iter(PackedLoader(graphs))).max_entries > 1024
    assert next(iter(PackedLoader(graphs, max_entries=None))).max_entries is None


def test_a_budget_must_be_positive(graphs: PackedGraphs) -> None:
    with pytest.raises(ValueError, match="max_entries=0"):
        BudgetSampler(torch.ones(3), 0)
    with pytest.raises(ValueError, match="batch_size=0"):
        SizeSampler(0)


@given(
    entries=st.lists(st.integers(0, 20), max_size=30),
    budget=st.integers(1, 30),
    most=st.none() | st.integers(1, 5),
    seed=st.integers(0, 5),
)
@settings(max_examples=100, deadline=None)
def test_the_budget_sampler_fills_batches(entries: list[int], budget: int, most: int | None, seed: int) -> None:
    sizes = torch.tensor(entries, dtype=torch.long)
    order = torch.randperm(len(entries), generator=torch.Generator().manual_seed(seed))
    batches = list(BudgetSampler(sizes, budget, max_graphs=most).batches(order))
    assert [int(i) for batch in batches for i in batch] == order.tolist()
    for i, batch in enumerate(batches):
        total = int(sizes[batch].sum())
        assert total <= budget or batch.numel() == 1
        assert most is None or batch.numel() <= most
        if i + 1 < len(batches) and (most is None or batch.numel() < most):
            assert total + int(sizes[batches[i + 1][0]]) > budget, "there was room for one more"


def test_a_budget_can_leave_out_batches_of_one_graph() -> None:
    entries = torch.tensor([3, 3, 9, 1])
    for drop, kept in ((False, [[0, 1], [2], [3]]), (True, [[0, 1]])):
        sampler = BudgetSampler(entries, max_entries=6, drop_single=drop)
        assert [batch.tolist() for batch in sampler.batches(torch.arange(4))] == kept
    alone = BudgetSampler(entries, max_entries=6, drop_single=True).batches(torch.tensor([2]))
    assert [batch.tolist() for batch in alone] == [[2]]  # all there is


def test_a_loader_with_a_budget(graphs: PackedGraphs) -> None:
    assert graphs.tries is not None
    entries = graphs.tries.sizes.sum(dim=1)
    budget = int(entries.max()) + 1
    loader = PackedLoader(graphs, sampler=BudgetSampler(entries, budget), max_entries=budget)
    batches = list(loader)
    assert sum(batch.num_graphs for batch in batches) == 7
    assert all(batch.trie.num_entries <= budget for batch in batches)


def test_free_memory_is_known() -> None:
    assert 2**20 < free_memory("cpu") < 2**50
    assert default_max_entries("cpu") > 1024


def test_a_batch_has_at_least_one_graph(graphs: PackedGraphs) -> None:
    assert graphs.tries is not None
    with pytest.raises(ValueError, match="max_graphs=0: expected an integer of at least 1"):
        BudgetSampler(graphs.tries.sizes.sum(dim=1), 100, max_graphs=0)


def test_an_empty_batch_is_a_batch(graphs: PackedGraphs) -> None:
    batch = graphs.select([])
    assert batch.num_graphs == batch.num_nodes == 0
    assert batch.trie is not None
    assert batch.trie.num_entries == 0


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_batches_on_the_device_equal_those_on_the_host(graphs: PackedGraphs, collection: str) -> None:
    host = replace(graphs, y=torch.arange(7), tries=None).with_paths(collection=collection, k=3)
    extracted_there = replace(host, tries=None).to("cuda").with_paths(collection=collection, k=3)
    for there in (host.to("cuda"), extracted_there, host):
        loader = PackedLoader(there, batch_size=3, shuffle=True, device="cuda")
        for a, b in zip(PackedLoader(host, batch_size=3, shuffle=True), loader, strict=True):
            assert b.device.type == "cuda"
            assert torch.equal(a.edge_index, b.edge_index.cpu())
            assert torch.equal(a.y, b.y.cpu())
            assert a.trie.equal(b.trie.to("cpu"))
    assert free_memory("cuda") > 2**20
