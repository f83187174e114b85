"""`extract_paths` against the oracle, entry for entry."""

from __future__ import annotations

import random
from itertools import product

import pytest
import torch
from hypothesis import given, settings, strategies as st

from path_checks import clique, levels_of, line
from path_reference import reference_levels
from path_strategies import COLLECTIONS, atlas, collections, graphs, lengths, thorough
from pathnn.paths import PathTrie, extract_paths

options = st.fixed_dictionaries({"distances": st.booleans(), "extend": st.booleans()})


@settings(thorough, max_examples=200)
@given(graph=graphs(), collection=collections, k=lengths, chosen=options)
def test_equals_the_oracle_entry_for_entry(graph, collection, k, chosen):
    trie = extract_paths(*graph, collection=collection, k=k, **chosen).validate()
    assert levels_of(trie) == reference_levels(*graph, collection=collection, k=k, **chosen)
    assert (trie.k, trie.num_nodes, trie.num_edges) == (k, graph[1], graph[0].size(1))
    assert (trie.collection, trie.extended, trie.sampled) == (collection, chosen["extend"], None)


@pytest.mark.parametrize("extend", [False, True])
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_sample_of_the_atlas(collection, extend):
    sample = random.Random(0).sample(atlas(), 40 if collection == "ap" else 80)
    for i, graph in enumerate(sample):
        chosen = {"collection": collection, "k": 1 + i % 6, "extend": extend, "distances": i % 4 != 0}
        assert levels_of(extract_paths(*graph, **chosen).validate()) == reference_levels(*graph, **chosen)


def test_distances_are_those_of_ap_by_default():
    for collection in COLLECTIONS:
        trie = extract_paths(*clique(4), collection=collection, k=2)
        assert (trie.distance is not None) == (collection == "ap")
        chosen = extract_paths(*clique(4), collection=collection, k=2, distances=collection == "ap")
        assert trie.equal(chosen)


def test_leaving_distances_out_shares_more():
    with_distances = extract_paths(*clique(5), collection="ap", k=4)
    without = extract_paths(*clique(5), collection="ap", k=4, distances=False)
    assert with_distances.num_paths == without.num_paths
    # in a clique everything is at distance 1 from the source: nothing is lost
    assert with_distances.num_entries == without.num_entries
    # in a triangle with a tail, the far end 0 is 1 or 2 away from the source 2, by way of 1
    tail = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
    with_distances = extract_paths(tail, 4, collection="ap", k=3)
    without = extract_paths(tail, 4, collection="ap", k=3, distances=False)
    assert with_distances.num_entries >= without.num_entries
    assert levels_of(with_distances) == reference_levels(tail, 4, collection="ap", k=3, distances=True)


@pytest.mark.parametrize(("collection", "extend"), list(product(COLLECTIONS, [False, True])))
def test_graphs_with_nothing_in_them(collection, extend):
    for n in (0, 1, 4):
        nothing = torch.empty(2, 0, dtype=torch.int64)
        trie = extract_paths(nothing, n, collection=collection, k=3, extend=extend).validate()
        assert trie.sizes == ((0, 0), (0, 0, 0), (0, 0, 0, 0))
        assert trie.num_paths == trie.num_entries == trie.nbytes == 0
        assert trie.extended is extend
        assert [rows.shape for rows in trie.to_paths()] == [(0, 2), (0, 3), (0, 4)]
        assert len(trie.length(3).levels) == 4


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_k_larger_than_the_graph_gives_empty_levels(collection):
    short = extract_paths(*line(3), collection=collection, k=2)
    long = extract_paths(*line(3), collection=collection, k=40).validate()
    assert long.k == 40
    assert long.sizes[:2] == short.sizes
    assert all(not any(levels) for levels in long.sizes[2:])
    assert torch.equal(long.vertex, short.vertex)


def test_the_longest_length_that_there_is():
    n = 256
    longest = extract_paths(*line(n), collection="ap", k=255).length(255)
    assert [level.vertex.tolist() for level in longest.levels] == [[i, n - 1 - i] for i in range(n)]
    assert [level.distance.tolist() for level in longest.levels] == [[n - 1 - i] * 2 for i in range(n)]


def test_dummy_tokens_after_a_path_that_ends():
    trie = extract_paths(*line(2), collection="sp", k=3, extend=True, distances=True).validate()
    assert trie.to_paths()[2].tolist() == [[1, 0, -1, -1], [0, 1, -1, -1]]
    first, second, third, last = trie.length(3).levels
    assert first.vertex.tolist() == [~0, ~1]
    assert first.distance.tolist() == [4, 4]  # its own distance row, k + 1
    assert second.edge.tolist() == third.edge.tolist() == [-1, -1]
    assert last.edge.tolist() == [0, 1]  # from 0 to the source 1, and back


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_layout_and_type_of_edge_index_do_not_matter(dtype):
    edge_index, n = clique(5)
    expected = extract_paths(edge_index, n, collection="ap", k=3)
    transposed = edge_index.t().contiguous().t().to(dtype)
    assert not transposed.is_contiguous()
    before = transposed.clone()
    assert extract_paths(transposed, n, collection="ap", k=3).equal(expected)
    assert torch.equal(before, transposed)


def test_edge_index_of_pyg():
    from torch_geometric import EdgeIndex

    edge_index, n = clique(4)
    trie = extract_paths(EdgeIndex(edge_index, sparse_size=(n, n)), n, collection="ap", k=2)
    assert trie.equal(extract_paths(edge_index, n, collection="ap", k=2))
    assert type(trie.edge) is torch.Tensor


def test_result_is_as_large_as_it_says():
    trie = extract_paths(*clique(6), collection="ap", k=4)
    tensors = [trie.vertex, trie.parent, trie.edge, trie.distance]
    assert all(x.dtype == torch.int32 for x in tensors)
    assert trie.nbytes == sum(x.untyped_storage().nbytes() for x in tensors)  # nothing kept behind it
    assert isinstance(trie, PathTrie)
