"""`directed=True`: paths that follow the direction of edges, against the oracle and through all routes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from torch_geometric.data import Batch, Data

from path_checks import Graph, clique, distances_of, levels_of, path_set, random_graph, union
from path_reference import reference_levels, reference_paths
from path_strategies import COLLECTIONS, collections, graphs, lengths, quick, thorough
from pathnn.paths import PathOptions, PathTrie, RaggedTries, count_paths, extract, extract_paths, list_paths
from pathnn.paths.cpu import extract as cpu
from pathnn.paths.csr import to_csr
from pathnn.transforms import AddPaths


@st.composite
def one_way(draw: st.DrawFn) -> Graph:
    """Some of the rows of an undirected graph: edges in both directions, in one, repeated, and self-loops."""
    edge_index, n = draw(graphs())
    kept = draw(st.lists(st.booleans(), min_size=edge_index.size(1), max_size=edge_index.size(1)))
    return edge_index[:, torch.tensor(kept, dtype=torch.bool)], n


def large(seed: int = 0) -> Graph:
    edge_index, n = random_graph(seed, n=40, edges=110)
    return edge_index[:, :150], n


@thorough
@given(graph=one_way(), collection=collections, k=lengths, distances=st.booleans(), extend=st.booleans())
def test_tries_are_those_of_the_oracle(graph, collection, k, distances, extend):
    options = {"collection": collection, "k": k, "extend": extend, "directed": True}
    trie = extract_paths(*graph, distances=distances, **options).validate()
    assert trie.directed
    assert path_set(trie.to_paths()) == {path for paths in reference_paths(*graph, **options) for path in paths}
    assert levels_of(trie) == reference_levels(*graph, distances=distances, **options)


@quick
@given(graph=one_way(), collection=collections, k=lengths)
def test_counts_and_lists_are_those_of_the_oracle(graph, collection, k):
    options = {"collection": collection, "k": k, "directed": True}
    paths = reference_paths(*graph, **options)
    assert count_paths(*graph, **options).tolist() == [[len(of_length) for of_length in paths]]
    assert [[tuple(row) for row in rows.tolist()] for rows in list_paths(*graph, **options)] == paths


@settings(quick, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=one_way(), k=lengths, extend=st.booleans())
def test_every_route_and_back(monkeypatch, graph, k, extend):
    options = {"collection": "ap", "k": k, "extend": extend, "directed": True}
    trie = extract_paths(*graph, **options)
    again = PathTrie.from_paths(trie.to_paths(), *graph, collection="ap", extended=extend, directed=True)
    assert again.equal(trie)
    with monkeypatch.context() as patch:
        patch.setattr(cpu, "TABLE_BYTES", -1)
        patch.setattr(extract, "TRUST_BOUND", -1)
        assert extract_paths(*graph, **options).equal(trie)


def test_edges_are_those_of_the_path():
    """The path 2 -> 0 -> 1 is read 1, 0, 2, with the rows of 0 -> 1 and of 2 -> 0."""
    edge_index = torch.tensor([[0, 2, 1], [1, 0, 3]])
    trie = extract_paths(edge_index, 4, collection="ap", k=3, directed=True)
    assert trie.to_paths()[1].tolist() == [[2, 0, 1], [0, 1, 3]]
    assert [level.edge.tolist() for level in trie.length(2).levels[1:]] == [[0, 2], [1, 0]]
    assert [level.distance.tolist() for level in trie.length(3).levels] == [[3], [2], [1], [0]]


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_both_directions_of_each_edge_give_the_undirected_paths(collection):
    graph = random_graph(4)
    one, other = (extract_paths(*graph, collection=collection, k=4, directed=flag) for flag in (True, False))
    assert path_set(one.to_paths()) == path_set(other.to_paths())
    assert not one.equal(other)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_batches_and_storage(collection):
    parts = [large(seed) for seed in range(3)]
    whole = union(parts)
    options = {"collection": collection, "k": 3, "directed": True}
    together = extract_paths(*whole.graph, **options)
    assert PathTrie.cat([extract_paths(*part, **options) for part in parts]).equal(together)
    assert RaggedTries.from_trie(together, whole.node_ptr, whole.edge_ptr).trie().equal(together)
    attributes = torch.rand(40, 40)
    data = [Data(edge_index=e, num_nodes=n, edge_attr=attributes[e[0], e[1]]) for e, n in parts]
    batch = Batch.from_data_list([AddPaths(**options)(graph) for graph in data])
    assert PathTrie.from_data(batch).equal(together)
    batch.edge_index = batch.edge_index.flip(0)
    with pytest.raises(ValueError, match="edges were sorted or changed since"):
        PathTrie.from_data(batch)
    del batch.edge_attr
    with pytest.raises(ValueError, match="edges that the graph does not have"):
        PathTrie.from_data(batch)


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("most", [1, 3, 10**6])
def test_samples(collection, most):
    graph = large()
    paths = list_paths(*graph, collection=collection, k=5, directed=True)
    options = {"collection": collection, "k": 5, "directed": True, "max_paths_per_source": most}
    trie = extract_paths(*graph, **options).validate()
    for kept, whole in zip(trie.to_paths(), paths, strict=True):
        assert path_set([kept]) <= path_set([whole])
        assert torch.equal(
            torch.bincount(kept[:, 0], minlength=40), torch.bincount(whole[:, 0], minlength=40).clamp(max=most)
        )
    twice = union([graph, graph])
    assert extract_paths(*twice.graph, **options).equal(PathTrie.cat([trie, trie]))
    for rows, found in zip(paths, cpu.path_distances(to_csr(*graph, directed=True), paths), strict=True):
        assert found.tolist() == distances_of(graph, rows, directed=True)


def test_is_asked_for_by_name():
    with pytest.raises(ValueError, match="directed=True takes paths that follow the direction"):
        extract_paths(torch.tensor([[0], [1]]), 2, collection="ap", k=1)
    with pytest.raises(ValueError, match="directed='yes'"):
        extract_paths(*clique(3), collection="ap", k=1, directed="yes")
    assert repr(AddPaths("ap", 2, directed=True)) == "AddPaths(collection='ap', k=2, directed=True)"
    options = PathOptions.of_trie(extract_paths(*clique(3), collection="ap", k=2, directed=True))
    assert options.difference(PathOptions("ap", 2)) == "directed=True instead of False"
