"""Packed graphs: a batch equals PyG's, paths of a batch equal the paths extracted from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch_geometric.data import Batch, Data

from data_strategies import data_lists
from pathnn.data import PackedGraphs, from_pyg
from pathnn.data.packed import GraphBatch, widen
from pathnn.data.paths import build_paths
from pathnn.paths import PathTrie
from pathnn.paths.extract import extract_paths
from pathnn.paths.options import PathOptions
from pathnn.paths.ragged import RaggedTries, cat_tries

EDGE = torch.tensor([[0, 1], [1, 0]])
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def assert_same(ours: GraphBatch, theirs: Batch) -> None:
    for name in ("x", "edge_index", "edge_attr", "batch", "ptr", "y"):
        mine, other = getattr(ours, name), theirs[name]
        assert mine.dtype == other.dtype, name
        assert torch.equal(mine, other), name
    assert ours.num_graphs == theirs.num_graphs
    assert ours.num_nodes == theirs.num_nodes


@given(data=st.data(), graphs=data_lists())
@settings(max_examples=60, deadline=None)
def test_a_batch_equals_pygs(data: st.DataObject, graphs: list[Data]) -> None:
    index = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))
    packed = from_pyg(graphs)
    assert_same(packed.select(index), Batch.from_data_list([graphs[i] for i in index]))
    assert_same(packed.subset(index).select(range(len(index))), Batch.from_data_list([graphs[i] for i in index]))


@given(graphs=data_lists())
@settings(max_examples=30, deadline=None)
def test_graphs_come_back_as_they_went_in(graphs: list[Data]) -> None:
    for before, after in zip(graphs, from_pyg(graphs), strict=True):
        assert before.num_nodes == after.num_nodes
        assert all(torch.equal(before[name], after[name]) for name in ("x", "edge_index", "edge_attr", "y"))


@given(
    data=st.data(),
    graphs=data_lists(),
    collection=st.sampled_from(["sp", "sp+", "ap"]),
    extend=st.booleans(),
    chunk_bytes=st.sampled_from([1, 300, 2**20]),
)
@settings(max_examples=60, deadline=None)
def test_the_paths_of_a_batch_are_those_of_its_graph(
    data: st.DataObject, graphs: list[Data], collection: str, extend: bool, chunk_bytes: int
) -> None:
    index = torch.tensor(data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8)))
    packed = from_pyg(graphs)
    tries = build_paths(packed, PathOptions(collection, 3, extend=extend), chunk_bytes=chunk_bytes)
    batch = replace(packed, tries=tries).select(index)
    expected = extract_paths(batch.edge_index, batch.num_nodes, collection=collection, k=3, extend=extend)
    assert batch.trie is not None
    assert batch.trie.validate().equal(expected)
    assert tries.select(index).equal(tries.select_by_index(index))


def test_tries_of_parts_are_the_tries_of_all() -> None:
    each = [extract_paths(e, n, collection="ap", k=2) for e, n in ((EDGE, 2), (PATH, 3), (EDGE, 2))]
    whole = RaggedTries.from_tries(each)
    parts = cat_tries([RaggedTries.from_tries(each[:1]), RaggedTries.from_tries(each[1:])])
    index = torch.tensor([2, 1, 0, 1])
    assert parts.select(index).equal(whole.select(index))


def test_storage_is_compact_and_batches_are_wide() -> None:
    graphs = replace(
        PackedGraphs.from_edges([EDGE, PATH], [2, 3]),
        x=torch.tensor([[1], [0], [1], [1], [0]], dtype=torch.bool),
        edge_attr=torch.arange(6, dtype=torch.uint8)[:, None],
    ).validate()
    batch = graphs.select([1, 0])
    assert batch.x is not None
    assert batch.edge_attr is not None
    assert batch.x.dtype == torch.float32
    assert batch.edge_attr.dtype == torch.long
    assert batch.x.view(-1).tolist() == [1, 1, 0, 1, 0]
    assert batch.edge_attr.view(-1).tolist() == [2, 3, 4, 5, 0, 1]
    assert widen(torch.ones(1, dtype=torch.float64)).dtype == torch.float64


def test_a_chunk_is_a_view_of_consecutive_graphs() -> None:
    graphs = PackedGraphs.from_edges([EDGE, PATH, EDGE], [2, 3, 4])
    chunk = graphs.chunk(1, 3).validate()
    assert [data.num_nodes for data in chunk] == [3, 4]
    assert chunk.edge_index.data_ptr() == graphs.edge_index[:, 2:].data_ptr()
    assert torch.equal(graphs.union(), graphs.select([0, 1, 2]).edge_index)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": torch.tensor([[0, 2], [1, 0]])}, "graph 0: edge"),
        ({"edge_index": torch.tensor([[0, -1], [1, 0]])}, "graph 0: edge"),
        ({"x": torch.zeros(3, 1)}, "x: expected 2 rows"),
        ({"y": torch.zeros(2)}, "y: expected 1 rows"),
        ({"node_ptr": torch.tensor([0, 2, 1])}, "never decrease"),
        ({"node_ptr": torch.tensor([0, 2, 2])}, "offsets"),
        ({"names": ("a", "b")}, "names: expected 1"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(PackedGraphs.from_edges([EDGE], [2]), **change).validate()


def test_graph_numbers_are_checked() -> None:
    graphs = PackedGraphs.from_edges([EDGE], [2])
    with pytest.raises(IndexError, match="0 to 0"):
        graphs.select([1])
    with pytest.raises(IndexError, match="0 to 0"):
        graphs.select([-1])
    with pytest.raises(IndexError, match="does not exist"):
        graphs[1]
    with pytest.raises(ValueError, match="no paths"):
        graphs.trie()
    with pytest.raises(ValueError, match="no paths"):
        PathTrie.from_data(graphs.select([0]))


def test_pyg_data_that_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match="no graphs"):
        from_pyg([])
    with pytest.raises(ValueError, match="graph 1 has no x"):
        from_pyg([Data(x=torch.zeros(2, 1), edge_index=EDGE), Data(edge_index=EDGE, num_nodes=2)])
    with pytest.raises(ValueError, match="different shapes"):
        from_pyg([Data(x=torch.zeros(2, i), edge_index=EDGE) for i in (1, 2)])
    with pytest.raises(ValueError, match="one target row"):
        from_pyg([Data(y=torch.zeros(2), edge_index=EDGE, num_nodes=2)])
    with pytest.raises(ValueError, match="edge_index"):
        from_pyg([Data(num_nodes=2)])


def test_a_batch_moves() -> None:
    graphs = PackedGraphs.from_edges([EDGE, PATH], [2, 3]).with_paths(collection="sp", k=1)
    batch = graphs.to("cpu").select([0, 1]).to("cpu")
    assert len(batch) == 2
    assert "num_graphs=2" in repr(batch)
    assert graphs.nbytes > replace(graphs, tries=None).nbytes
    assert graphs.trie().num_paths == 6


def test_features_of_graphs_stay_with_their_graphs():
    edge = torch.tensor([[0, 1], [1, 0]])
    values = torch.arange(6.0).view(3, 2)
    graphs = replace(PackedGraphs.from_edges([edge] * 3, [2] * 3), graph_attr=values).validate()
    index = torch.tensor([2, 0])
    assert torch.equal(graphs.select(index).graph_attr, values[index])
    assert torch.equal(graphs.select(index).to("cpu").graph_attr, values[index])
    assert graphs.select(index).to("meta").graph_attr.device.type == "meta"
    assert graphs.to("meta").graph_attr.device.type == "meta"
    assert torch.equal(graphs.subset(index).graph_attr, values[index])
    assert torch.equal(graphs.chunk(1, 3).graph_attr, values[1:])
    assert torch.equal(graphs[1].graph_attr, values[1:2])
    assert PackedGraphs.from_edges([edge], [2]).select([0]).graph_attr is None
    with pytest.raises(ValueError, match=r"graph_attr: expected 3 rows, got shape \(2, 2\)"):
        replace(graphs, graph_attr=values[:2]).validate()
