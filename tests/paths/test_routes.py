"""All ways through the extraction give the same trie: numba and torch, one thread and two, table and balls."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from path_checks import Graph, clique, layered, random_graph, union
from path_strategies import COLLECTIONS, atlas, collections, graphs, lengths, quick, thorough
from pathnn.paths import PathOptions, count_paths, extract, extract_paths, list_paths
from pathnn.paths.count import _count_shortest, count_per_source, walk_bounds
from pathnn.paths.cpu import extract as cpu
from pathnn.paths.cpu.arrays import compress
from pathnn.paths.csr import _compress_on_device, to_csr
from pathnn.paths.gpu.distances import Distances
from pathnn.paths.gpu.frontier import Frontier


@thorough
@given(graph=graphs(), collection=collections, k=lengths, distances=st.booleans())
def test_torch_operations_give_the_same_trie(graph, collection, k, distances):
    by_torch = extract._extract_on_device(to_csr(*graph), PathOptions(collection, k, distances), torch.arange(graph[1]))
    assert by_torch.validate().equal(extract_paths(*graph, collection=collection, k=k, distances=distances))


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_torch_operations_on_the_whole_atlas(collection):
    whole = union(atlas())
    for k, distances in ((3, True), (5, False)):
        by_torch = extract._extract_on_device(
            to_csr(*whole.graph), PathOptions(collection, k, distances), torch.arange(whole.num_nodes)
        )
        assert by_torch.equal(extract_paths(*whole.graph, collection=collection, k=k, distances=distances))


@quick
@given(graph=graphs(), single=st.booleans(), k=lengths)
def test_torch_counts_the_same_shortest_paths(graph, single, k):
    csr = to_csr(*graph)
    by_numba, complete = count_per_source(csr, PathOptions("sp" if single else "sp+", k))
    assert complete
    assert torch.equal(_count_shortest(csr, k, single=single), by_numba)


def test_torch_counts_of_shortest_paths_saturate_too():
    csr = to_csr(*layered(64, 14))
    by_numba, _ = count_per_source(csr, PathOptions("sp+", 13))
    assert torch.equal(_count_shortest(csr, 13, single=False), by_numba)


@quick
@given(graph=graphs())
def test_torch_compresses_the_same_rows(graph):
    edge_index, n = graph
    *by_torch, missing = _compress_on_device(edge_index, n)
    *by_numba, one_way = compress(*edge_index.numpy(), n)
    assert missing is None
    assert not one_way.size
    assert [x.tolist() for x in by_torch] == [x.tolist() for x in by_numba]


@quick
@given(graph=graphs(), drop=st.integers(0, 100))
def test_both_find_a_missing_reverse(graph, drop):
    edge_index, n = graph
    edges = [(u, v) for u, v in edge_index.t().tolist() if u != v]
    if not edges:
        return
    lost = edges[drop % len(edges)]
    kept = [edge for edge in edges if edge != lost]
    one_way = torch.tensor(kept, dtype=torch.int64).view(-1, 2).t().contiguous()
    with pytest.raises(ValueError, match=f"the edge {lost[1]} -> {lost[0]} but not {lost[0]} -> {lost[1]}"):
        to_csr(one_way, n)
    assert _compress_on_device(one_way, n)[-1] == (lost[1], lost[0])


@quick
@given(graph=graphs(), collection=st.sampled_from(["sp+", "ap"]), k=lengths, limit=st.sampled_from([1, 5, 17, 2**22]))
def test_counting_in_pieces(graph, collection, k, limit):
    csr = to_csr(*graph)
    frontier = Frontier.of(csr, PathOptions(collection, k))
    counts = torch.zeros(1, k, dtype=torch.int64)
    found = [[] for _ in range(k)]
    for walks in frontier.pieces(frontier.start(torch.arange(csr.num_nodes)), limit):
        counts[0, walks.length - 1] += len(walks)
        found[walks.length - 1] += walks.vertex.tolist()
    assert torch.equal(counts, count_paths(*graph, collection=collection, k=k))
    assert found == [rows.tolist() for rows in list_paths(*graph, collection=collection, k=k)]


@quick
@given(graph=graphs(), k=lengths)
def test_bounds_are_alike_and_bound_the_paths(graph, k):
    csr = to_csr(*graph)
    bounds = cpu.bound_per_source(csr, k)
    assert torch.equal(bounds, walk_bounds(csr, k))
    for collection in COLLECTIONS:
        counts, complete = count_per_source(csr, PathOptions(collection, k))
        assert complete
        assert bool((counts <= bounds).all())


@settings(quick, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs(), k=lengths)
def test_balls_give_the_same_distances_as_a_table(monkeypatch, graph, k):
    expected = extract_paths(*graph, collection="ap", k=k)
    with monkeypatch.context() as patch:
        patch.setattr(cpu, "TABLE_BYTES", -1)
        assert cpu._distances(to_csr(*graph), k)[2] is False
        assert extract_paths(*graph, collection="ap", k=k).equal(expected)


@quick
@given(graph=graphs(), k=lengths, extend=st.booleans(), every=st.integers(1, 5))
def test_distances_of_some_paths_are_those_of_all_pairs(graph, k, extend, every):
    csr = to_csr(*graph)
    trie = extract_paths(*graph, collection="ap", k=k, extend=extend)
    paths = [rows[every - 1 :: every].int() for rows in trie.to_paths()]
    distances = Distances.of(csr, k)
    for rows, found in zip(paths, cpu.path_distances(csr, paths), strict=True):
        expected = distances.distance(rows[:, :1].expand_as(rows), rows.clamp(min=0))
        assert torch.equal(found, torch.where(rows < 0, k + 1, expected))


def test_distances_of_few_paths_of_a_large_graph():
    """The search from a source stops early here, and the rest is found from the other side."""
    graph = random_graph(7, n=400, edges=1600)
    trie = extract_paths(*graph, collection="ap", k=7, max_paths_per_source=2)
    distances = Distances.of(to_csr(*graph), 7)
    rows = trie.to_paths()
    for paths, found in zip(rows, cpu.path_distances(to_csr(*graph), rows), strict=True):
        assert torch.equal(found, distances.distance(paths[:, :1].expand_as(paths), paths))


@settings(quick, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs(), collection=collections, k=lengths, extend=st.booleans())
def test_exact_counts_give_the_same_trie_as_bounds(monkeypatch, graph, collection, k, extend):
    expected = extract_paths(*graph, collection=collection, k=k, extend=extend)
    with monkeypatch.context() as patch:
        patch.setattr(extract, "TRUST_BOUND", -1)
        assert extract_paths(*graph, collection=collection, k=k, extend=extend).equal(expected)
        assert extract_paths(*graph, collection=collection, k=k, extend=extend, max_paths=None).equal(expected)


@pytest.fixture
def threads():
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
    assert n > cpu.SMALL
    if route == "counts":
        monkeypatch.setattr(extract, "TRUST_BOUND", -1)
        monkeypatch.setattr(cpu, "TABLE_BYTES", -1)
    results = []
    for number in (1, 2, 3):
        threads(number)
        assert (len(cpu._ranges(n)) > 1) == (number > 1)
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
