"""Batches within a budget: loaders, samplers, pieces of tries, shards on disk."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from data_strategies import data_lists
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from pathnn.data import (
    BudgetSampler,
    PackedGraphs,
    PackedLoader,
    SizeSampler,
    build_shards,
    from_pyg,
    trie_pieces,
)
from pathnn.data.memory import default_max_entries, free_memory
from pathnn.data.shards import ShardedTries
from pathnn.paths import PathExplosionError
from pathnn.paths.extract import extract_paths

MODULES = (sys.modules["pathnn.data.build_paths"], sys.modules["pathnn.paths.extract"])
"""Where the most paths that a sample goes through are read."""


def complete(n: int) -> torch.Tensor:
    return torch.tensor([(u, v) for u in range(n) for v in range(n) if u != v]).t()


@pytest.fixture
def graphs() -> PackedGraphs:
    sizes = [3, 4, 5, 4, 3, 5, 4]
    return PackedGraphs.from_edges([complete(n) for n in sizes], sizes).with_paths(collection="ap", k=3)


def test_an_epoch_visits_each_graph_once_in_an_order_of_its_own(graphs: PackedGraphs) -> None:
    loader = PackedLoader(replace(graphs, y=torch.arange(7)), batch_size=3, shuffle=True, seed=1)
    epochs = [torch.cat([batch.y for batch in loader]).tolist() for _ in range(3)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    loader.set_epoch(1)
    assert torch.cat([batch.y for batch in loader]).tolist() == epochs[1]
    other = PackedLoader(replace(graphs, y=torch.arange(7)), batch_size=3, shuffle=True, seed=2)
    assert torch.cat([batch.y for batch in other]).tolist() != epochs[0]


def test_a_loader_takes_the_graphs_of_a_split(graphs: PackedGraphs) -> None:
    loader = PackedLoader(replace(graphs, y=torch.arange(7)), torch.tensor([5, 2, 6]), batch_size=2)
    assert [batch.y.tolist() for batch in loader] == [[5, 2], [6]]
    assert len(loader) == 2


def test_a_last_batch_of_one_graph_can_be_dropped(graphs: PackedGraphs) -> None:
    assert [b.num_graphs for b in PackedLoader(graphs, batch_size=3, drop_single=True)] == [3, 3]
    assert [b.num_graphs for b in PackedLoader(graphs, [0], batch_size=3, drop_single=True)] == [1], "not the only one"


def test_a_batch_over_the_budget_carries_its_tries_in_pieces(graphs: PackedGraphs) -> None:
    small = next(iter(PackedLoader(graphs, batch_size=7, max_entries=50)))
    assert small.over_budget
    assert all(len(pieces) > 1 for pieces in small.pieces()[1:])
    large = next(iter(PackedLoader(graphs, batch_size=7, max_entries=10**6)))
    assert not large.over_budget
    assert [len(pieces) for pieces in large.pieces()] == [1, 1, 1]
    assert large.trie is not None
    assert next(iter(PackedLoader(graphs, max_entries=None))).max_entries is None


@given(graphs=data_lists(), max_entries=st.integers(1, 60), collection=st.sampled_from(["sp", "sp+", "ap"]))
@settings(max_examples=60, deadline=None)
def test_sums_over_pieces_are_sums_over_all_paths(graphs: list[Data], max_entries: int, collection: str) -> None:
    batch = from_pyg(graphs).select(range(len(graphs)))
    trie = extract_paths(batch.edge_index, batch.num_nodes, collection=collection, k=3)
    value = torch.rand(batch.num_nodes, dtype=torch.float64)
    for whole, pieces in zip(trie.lengths(), trie_pieces(trie, max_entries), strict=True):
        assert sum(piece.num_paths for piece in pieces) == whole.num_paths
        for piece in pieces:
            assert piece.num_entries <= max_entries or len(piece.levels[0]) == 1
        sums = torch.zeros(batch.num_nodes, dtype=torch.float64)
        expected = torch.zeros_like(sums)
        for part, out in [(whole, expected), *((piece, sums) for piece in pieces)]:
            tokens = [
                value[level.vertex[e]] * (t + 1)
                for t, (level, e) in enumerate(zip(part.levels, part.ancestors(), strict=True))
            ]
            out.index_add_(0, part.source.long(), torch.stack(tokens).prod(dim=0))
        torch.testing.assert_close(sums, expected)


def test_a_budget_must_be_positive(graphs: PackedGraphs) -> None:
    with pytest.raises(ValueError, match="max_entries=0"):
        trie_pieces(graphs.trie(), 0)
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


def test_a_loader_with_a_budget(graphs: PackedGraphs) -> None:
    assert graphs.tries is not None
    entries = graphs.tries.sizes.sum(dim=1)
    budget = int(entries.max()) + 1
    loader = PackedLoader(graphs, sampler=BudgetSampler(entries, budget), max_entries=budget)
    batches = list(loader)
    assert sum(batch.num_graphs for batch in batches) == 7
    assert not any(batch.over_budget for batch in batches)


def test_free_memory_is_known() -> None:
    assert 2**20 < free_memory("cpu") < 2**50
    assert default_max_entries("cpu") > 1024


SLOW = [HealthCheck.function_scoped_fixture]


@given(data=st.data(), graphs=data_lists(), extend=st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
def test_batches_from_disk_equal_batches_from_memory(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, graphs: list[Data], extend: bool
) -> None:
    index = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))
    packed = from_pyg(graphs)
    options = {"collection": "ap", "k": 3, "extend": extend}
    on_disk = build_shards(packed, tmp_path_factory.mktemp("shards"), max_bytes=200, **options)
    expected = packed.with_paths(**options).select(index)
    found = on_disk.select(index)
    assert found.trie is not None
    assert expected.trie is not None
    assert found.trie.equal(expected.trie)
    assert torch.equal(found.edge_index, expected.edge_index)


def test_shards_are_built_once_and_anew_when_damaged(graphs: PackedGraphs, tmp_path: Path) -> None:
    def build(**options: object) -> PackedGraphs:
        return build_shards(
            replace(graphs, tries=None), tmp_path, **{"collection": "ap", "k": 3, "max_bytes": 3000} | options
        )

    first = build()
    assert isinstance(first.tries, ShardedTries)
    assert len(first.tries.shards) > 1
    assert first.trie().equal(graphs.trie())
    files = sorted(tmp_path.glob("shard*"))
    times = [file.stat().st_mtime_ns for file in files]
    assert build().trie().equal(graphs.trie())
    assert [file.stat().st_mtime_ns for file in files] == times, "they were written again"
    for damage in ("cut", "flip", "manifest", "gone"):
        content = bytearray(files[0].read_bytes())
        if damage == "cut":
            files[0].write_bytes(content[:-3])
        elif damage == "flip":
            content[-2] ^= 1
            files[0].write_bytes(content)
        elif damage == "manifest":
            manifest = json.loads((tmp_path / "manifest.json").read_text())
            manifest["body"]["shards"].pop()
            (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        else:
            (tmp_path / "manifest.json").unlink()
        assert build().trie().equal(graphs.trie()), damage
    assert build(collection="sp").trie().collection == "sp"
    assert not list(tmp_path.glob("*.tmp"))


def test_shards_serve_a_loader(graphs: PackedGraphs, tmp_path: Path) -> None:
    on_disk = build_shards(replace(graphs, tries=None), tmp_path, collection="ap", k=3, max_bytes=3000)
    memory = PackedLoader(graphs, batch_size=3, shuffle=True)
    disk = PackedLoader(on_disk, batch_size=3, shuffle=True)
    assert all(a.trie.equal(b.trie) for a, b in zip(memory, disk, strict=True))
    assert torch.equal(on_disk.tries.sizes, graphs.tries.sizes)
    assert on_disk.tries.nbytes == graphs.tries.nbytes
    assert "shards=" in repr(on_disk)


def test_too_many_paths_are_refused_before_they_are_extracted(graphs: PackedGraphs) -> None:
    with pytest.raises(PathExplosionError, match="graph 2"):
        replace(graphs, tries=None).with_paths(collection="ap", k=4, max_paths=300)


def test_a_sample_goes_through_as_many_graphs_as_it_can(
    graphs: PackedGraphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = replace(graphs, tries=None)
    options = {"collection": "ap", "k": 3, "max_paths_per_source": 2}
    expected = plain.with_paths(**options).trie()
    total = plain.with_paths(collection="ap", k=3).trie().num_paths
    largest = max(plain.chunk(i, i + 1).with_paths(collection="ap", k=3).trie().num_paths for i in range(len(plain)))
    assert largest < total / 2
    for limit in (total, largest):
        for module in MODULES:
            monkeypatch.setattr(module, "SAMPLE_FROM", limit)
        assert plain.with_paths(**options).trie().equal(expected), limit
        assert build_shards(plain, tmp_path / str(limit), max_bytes=3000, **options).trie().equal(expected)
    for module in MODULES:
        monkeypatch.setattr(module, "SAMPLE_FROM", largest - 1)
    with pytest.raises(PathExplosionError, match=rf"more than the {largest - 1:,} that a sample"):
        plain.with_paths(**options)


def test_a_sample_is_bounded_too(graphs: PackedGraphs) -> None:
    with pytest.raises(PathExplosionError, match="max_paths=3"):
        replace(graphs, tries=None).with_paths(collection="ap", k=3, max_paths_per_source=2, max_paths=3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_paths": "x"}, "max_paths='x': expected an integer"),
        ({"max_paths": 0}, "max_paths=0: expected an integer of at least 1"),
        ({"max_paths_per_source": 0}, "max_paths_per_source=0: expected"),
        ({"seed": "one"}, "seed='one': expected"),
        ({"extend": True, "max_paths_per_source": 2}, "one of the two"),
    ],
)
def test_options_of_paths_are_checked(graphs: PackedGraphs, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(graphs, tries=None).with_paths(collection="ap", k=2, **options)


def test_a_batch_has_at_least_one_graph(graphs: PackedGraphs) -> None:
    assert graphs.tries is not None
    with pytest.raises(ValueError, match="max_graphs=0: expected at least 1"):
        BudgetSampler(graphs.tries.sizes.sum(dim=1), 100, max_graphs=0)


def test_processes_share_the_batches_of_one(graphs: PackedGraphs) -> None:
    named = replace(graphs, y=torch.arange(7))
    alone = [batch.y.tolist() for batch in PackedLoader(named, batch_size=4, shuffle=True)]
    ranks = [PackedLoader(named, batch_size=4, shuffle=True, rank=r, world_size=3) for r in range(3)]
    together = [[y for batch in parts for y in batch.y.tolist()] for parts in zip(*ranks, strict=True)]
    assert together == alone
    with pytest.raises(ValueError, match="rank=3"):
        PackedLoader(named, rank=3, world_size=3)


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
