"""`list_paths` and `count_paths` against the oracle."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import given

from path_checks import clique, cycle, layered, line, union
from path_reference import reference_paths
from path_strategies import COLLECTIONS, atlas, collections, graph_lists, graphs, lengths, quick, thorough
from pathnn.paths import count_paths, list_paths


@thorough
@given(graph=graphs(), collection=collections, k=lengths)
def test_lists_the_paths_of_the_oracle_in_order(graph, collection, k):
    found = list_paths(*graph, collection=collection, k=k)
    expected = reference_paths(*graph, collection=collection, k=k)
    assert [[tuple(row) for row in rows.tolist()] for rows in found] == expected


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_all_graphs_of_the_atlas(collection):
    assert len(atlas()) == 1253
    whole = union(atlas())
    counts = count_paths(*whole.graph, collection=collection, k=6, batch=whole.batch)
    counts = torch.cat([torch.zeros(1, 6, dtype=torch.int64), counts[1:]])  # the first graph has no vertex
    for graph, counted in zip(atlas(), counts.tolist(), strict=True):
        expected = reference_paths(*graph, collection=collection, k=6)
        found = list_paths(*graph, collection=collection, k=6)
        assert [[tuple(row) for row in rows.tolist()] for rows in found] == expected
        assert counted == [len(paths) for paths in expected]


@quick
@given(graph_list=graph_lists, collection=collections, k=lengths)
def test_counts_per_graph_of_a_batch(graph_list, collection, k):
    whole = union(graph_list)
    counts = count_paths(*whole.graph, collection=collection, k=k, batch=whole.batch)
    alone = torch.cat([count_paths(*graph, collection=collection, k=k) for graph in graph_list])
    assert counts.dtype == torch.int64
    graphs_seen = int(whole.batch.max()) + 1 if whole.num_nodes else 0
    assert counts.tolist() == alone[:graphs_seen].tolist()
    assert not alone[graphs_seen:].any()
    for graph, row in zip(graph_list, alone.tolist(), strict=True):
        assert row == [len(paths) for paths in reference_paths(*graph, collection=collection, k=k)]


def test_counts_with_an_unsorted_batch():
    edge_index = torch.tensor([[0, 2, 1, 3, 3, 4], [2, 0, 3, 1, 4, 3]])  # 0 - 2 and 1 - 3 - 4
    counts = count_paths(edge_index, 5, collection="ap", k=2, batch=torch.tensor([0, 1, 0, 1, 1]))
    assert counts.tolist() == [[2, 0], [4, 2]]


def test_known_counts():
    n = 9
    assert count_paths(*clique(n), collection="ap", k=4).tolist() == [[72, 504, 3024, 15120]]
    assert count_paths(*clique(n), collection="sp+", k=3).tolist() == [[72, 0, 0]]
    assert count_paths(*cycle(8), collection="sp", k=5).tolist() == [[16, 16, 16, 8, 0]]
    assert count_paths(*cycle(8), collection="sp+", k=5).tolist() == [[16, 16, 16, 16, 0]]
    assert count_paths(*cycle(8), collection="ap", k=9).tolist() == [[16] * 7 + [0, 0]]
    assert count_paths(*line(4), collection="sp", k=4).tolist() == [[6, 4, 2, 0]]


def test_counts_agree_with_networkx_on_a_larger_graph():
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(7, 8), ordering="sorted")
    edge_index = torch.tensor([p for u, v in grid.edges for p in ((u, v), (v, u))]).t()
    reach = dict(nx.all_pairs_shortest_path_length(grid))
    sp = [sum(d == length for near in reach.values() for d in near.values()) for length in range(1, 13)]
    assert count_paths(edge_index, 56, collection="sp", k=12).tolist() == [sp]
    sp_plus = [len(paths) for paths in list_paths(edge_index, 56, collection="sp+", k=12)]
    assert count_paths(edge_index, 56, collection="sp+", k=12).tolist() == [sp_plus]
    assert sp_plus[1] == sum(d * (d - 1) for _, d in grid.degree)  # every two steps on a grid are shortest


def test_huge_counts_saturate_and_never_wrap_around():
    width, layers = 64, 14
    counts = count_paths(*layered(width, layers), collection="sp+", k=layers - 1)[0].tolist()
    for length, count in enumerate(counts, start=1):
        at_least = 2 * (layers - length) * width ** (length + 1)  # those between different layers
        assert count >= min(at_least, 2**61), f"length {length}"


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_graphs_with_nothing_in_them(collection):
    nothing = torch.empty(2, 0, dtype=torch.int64)
    for n in (0, 1, 3):
        assert count_paths(nothing, n, collection=collection, k=2).tolist() == [[0, 0]]
        assert [rows.shape for rows in list_paths(nothing, n, collection=collection, k=2)] == [(0, 2), (0, 3)]
    empty = torch.empty(0, dtype=torch.int64)
    assert count_paths(nothing, 0, collection=collection, k=2, batch=empty).shape == (0, 2)


def test_k_larger_than_any_path():
    for collection in COLLECTIONS:
        counts = count_paths(*line(3), collection=collection, k=255)
        assert counts[0, :2].tolist() == [4, 2]
        assert not counts[0, 2:].any()
