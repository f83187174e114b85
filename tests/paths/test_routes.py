"""All ways through the extraction give the same trie: one thread and two, table and list, bounds and counts."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from path_checks import Graph, clique, distances_of, layered, random_graph, union
from path_strategies import COLLECTIONS, atlas, collections, graphs, lengths, quick
from pathnn.paths import PathOptions, count_paths, extract, extract_paths, list_paths
from pathnn.paths.cpu import extract as cpu
from pathnn.paths.csr import to_csr


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_list_of_paths_gives_the_same_on_the_whole_atlas(collection):
    whole = union(atlas())
    for k, distances in ((3, True), (5, False)):
        options = {"collection": collection, "k": k, "distances": distances}
        by_list = extract_paths(*whole.graph, **options, sources=torch.arange(whole.num_nodes))
        assert by_list.equal(extract_paths(*whole.graph, **options))


@quick
@given(graph=graphs(), drop=st.integers(0, 100))
def test_a_missing_reverse_is_found(graph, drop):
    edge_index, n = graph
    edges = [(u, v) for u, v in edge_index.t().tolist() if u != v]
    if not edges:
        return
    lost = edges[drop % len(edges)]
    kept = [edge for edge in edges if edge != lost]
    one_way = torch.tensor(kept, dtype=torch.int64).view(-1, 2).t().contiguous()
    with pytest.raises(ValueError, match=f"the edge {lost[1]} -> {lost[0]} but not {lost[0]} -> {lost[1]}"):
        to_csr(one_way, n)


@quick
@given(graph=graphs(), k=lengths)
def test_bounds_bound_the_paths(graph, k):
    csr = to_csr(*graph)
    bounds = cpu.bound_per_source(csr, k)
    for collection in COLLECTIONS:
        counts, complete = cpu.count_per_source(csr, PathOptions(collection, k))
        assert complete
        assert bool((counts <= bounds).all())


@settings(quick, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs(), k=lengths)
def test_a_graph_too_large_for_a_table_of_distances(monkeypatch, graph, k):
    expected = extract_paths(*graph, collection="ap", k=k)
    with monkeypatch.context() as patch:
        patch.setattr(cpu, "TABLE_BYTES", -1)
        assert cpu.distance_table(to_csr(*graph), k) is None
        assert extract_paths(*graph, collection="ap", k=k).equal(expected)


@quick
@given(graph=graphs(), k=lengths, extend=st.booleans(), every=st.integers(1, 5))
def test_distances_of_some_paths_are_those_of_networkx(graph, k, extend, every):
    csr = to_csr(*graph)
    trie = extract_paths(*graph, collection="ap", k=k, extend=extend)
    paths = [rows[every - 1 :: every].int() for rows in trie.to_paths()]
    for rows, found in zip(paths, cpu.path_distances(csr, paths), strict=True):
        assert found.tolist() == distances_of(graph, rows, dummy=k + 1)


def test_distances_of_few_paths_of_a_large_graph():
    """The search from a source stops early here, and the rest is found from the other side."""
    graph = random_graph(7, n=400, edges=1600)
    trie = extract_paths(*graph, collection="ap", k=7, max_paths_per_source=2)
    rows = trie.to_paths()
    for paths, found in zip(rows, cpu.path_distances(to_csr(*graph), rows), strict=True):
        assert found.tolist() == distances_of(graph, paths)


@settings(quick, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs(), collection=collections, k=lengths, extend=st.booleans())
def test_exact_counts_give_the_same_trie_as_bounds(monkeypatch, graph, collection, k, extend):
    expected = extract_paths(*graph, collection=collection, k=k, extend=extend)
    with monkeypatch.context() as patch:
        patch.setattr(extract, "TRUST_BOUND", -1)
        assert extract_paths(*graph, collection=collection, k=k, extend=extend).equal(expected)
        assert extract_paths(*graph, collection=collection, k=k, extend=extend, max_paths=None).equal(expected)


@pytest.fixture
def threads(monkeypatch):
    monkeypatch.setattr(cpu, "LEAST", 0)
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def many_vertices() -> Graph:
    """More vertices than one thread takes, in pieces of very different size, the ends without edges."""
    empty = torch.empty(2, 0, dtype=torch.int64), 300
    parts = [empty, clique(7), *(random_graph(i, n=60, edges=80) for i in range(40)), clique(6), layered(3, 4), empty]
    return union(parts).graph


@pytest.mark.parametrize("distances", [False, True])
@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("route", ["bounds", "counts"])
def test_two_threads_give_the_same_as_one(threads, monkeypatch, collection, distances, route):
    edge_index, n = many_vertices()
    assert n >= 2 * cpu.PER_PART
    if route == "counts":
        monkeypatch.setattr(extract, "TRUST_BOUND", -1)
        monkeypatch.setattr(cpu, "TABLE_BYTES", -1)
    results = []
    for number in (1, 2, 3):
        threads(number)
        assert (len(cpu._in_ranges(lambda start, stop: stop - start, n)) > 1) == (number > 1)
        trie = extract_paths(edge_index, n, collection=collection, k=4, distances=distances)
        paths = list_paths(edge_index, n, collection=collection, k=4)
        kept = extract_paths(edge_index, n, collection=collection, k=4, distances=distances, max_paths_per_source=3)
        results.append((trie, paths, count_paths(edge_index, n, collection=collection, k=4), kept))
    for trie, paths, counts, kept in results[1:]:
        assert kept.validate().equal(results[0][3])
        assert trie.validate().equal(results[0][0])
        assert all(torch.equal(a, b) for a, b in zip(paths, results[0][1], strict=True))
        assert torch.equal(counts, results[0][2])


def test_two_threads_extend_like_one(threads):
    graph = many_vertices()
    tries = []
    for number in (1, 2):
        threads(number)
        tries.append(extract_paths(*graph, collection="ap", k=3, extend=True))
    assert tries[0].equal(tries[1])
