"""`max_paths_per_source`: a seeded uniform sample."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from itertools import combinations

import networkx as nx
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import chi2
from torch import Tensor

from path_checks import (
    Graph,
    clique,
    cycle,
    from_networkx,
    layered,
    levels_of,
    path_set,
    random_graph,
    undirected,
    union,
)
from path_strategies import COLLECTIONS, collections, graph_lists, graphs, lengths, quick
from pathnn.paths import PathOptions, PathTrie, extract_paths, list_paths
from pathnn.paths.cpu import extract as cpu
from pathnn.paths.csr import to_csr

some = settings(quick, max_examples=30)
most_kept = st.integers(1, 5)
seeds = st.integers(0, 2**32)


@some
@given(graph=graphs(), collection=collections, k=lengths, most=most_kept, seed=seeds)
def test_keeps_as_many_as_it_may_and_only_paths(graph, collection, k, most, seed):
    trie = extract_paths(*graph, collection=collection, k=k, max_paths_per_source=most, seed=seed).validate()
    assert trie.sampled == most
    everything = list_paths(*graph, collection=collection, k=k)
    counts, _ = cpu.count_per_source(to_csr(*graph), PathOptions(collection, k))
    for length, (kept, whole) in enumerate(zip(trie.to_paths(), everything, strict=True)):
        assert path_set([kept]) <= path_set([whole])
        per_source = torch.bincount(kept[:, 0], minlength=graph[1])
        assert torch.equal(per_source, counts[:, length].clamp(max=most))
    again = PathTrie.from_paths(trie.to_paths(), *graph, collection=collection)
    assert levels_of(again) == levels_of(trie)


@some
@given(graph=graphs(), collection=collections, k=lengths, distances=st.booleans())
def test_a_large_sample_is_everything(graph, collection, k, distances):
    whole = extract_paths(*graph, collection=collection, k=k, distances=distances)
    kept = extract_paths(*graph, collection=collection, k=k, distances=distances, max_paths_per_source=10**6)
    assert replace(kept, sampled=None).equal(whole)


@some
@given(graph_list=graph_lists, collection=collections, k=lengths, most=most_kept, seed=seeds)
def test_commutes_with_batching(graph_list, collection, k, most, seed):
    chosen = {"collection": collection, "k": k, "max_paths_per_source": most, "seed": seed}
    whole = union(graph_list)
    together = extract_paths(*whole.graph, **chosen)
    assert together.equal(PathTrie.cat([extract_paths(*graph, **chosen) for graph in graph_list]))


def test_the_seed_determines_it():
    chosen = {"collection": "ap", "k": 3, "max_paths_per_source": 2}
    a, b, c = (extract_paths(*clique(7), **chosen, seed=seed) for seed in (1, 1, 2))
    assert a.equal(b)
    assert not a.equal(c)
    assert extract_paths(*clique(7), **chosen).equal(extract_paths(*clique(7), **chosen, seed=0))


def test_the_sample_does_not_depend_on_the_order_of_rows():
    edge_index, n = clique(6)
    chosen = {"collection": "ap", "k": 3, "max_paths_per_source": 2}
    shuffled = edge_index[:, torch.randperm(edge_index.size(1), generator=torch.Generator().manual_seed(0))]
    paths = (extract_paths(e, n, **chosen).to_paths() for e in (edge_index, shuffled))
    assert path_set(next(paths)) == path_set(next(paths))


def draws(graph: Graph, collection: str, length: int, kept: int, seeds: int) -> tuple[Tensor, list[list[int]]]:
    """Whether each path of a length from vertex 0 was kept, per seed: `[seeds, paths]`; and the paths."""
    csr = to_csr(*graph)
    paths = [path for path in list_paths(*graph, collection=collection, k=length)[-1].tolist() if path[0] == 0]
    number = {tuple(path): i for i, path in enumerate(paths)}
    chosen = torch.zeros(seeds, len(paths))
    for seed in range(seeds):
        options = PathOptions(collection, length, max_paths_per_source=kept)
        rows = cpu.sample_paths(csr, options, seed, torch.tensor([0]))[-1].tolist()
        chosen[seed, [number[tuple(row)] for row in rows]] = 1
    return chosen, paths


def assert_uniform(chosen: Tensor, kept: int) -> None:
    """Chi-square of how often each path was kept, exceeded once in a thousand; and how often each two were."""
    seeds, paths = chosen.shape
    assert chosen.sum(dim=1).eq(kept).all()
    share = kept / paths
    assert seeds * share > 10
    statistic = float(((chosen.sum(dim=0) - seeds * share) ** 2).sum() / (seeds * share * (1 - share)))
    assert statistic * (paths - 1) / paths < chi2.ppf(0.999, paths - 1)
    pairs = (chosen.t() @ chosen)[*torch.triu_indices(paths, paths, 1)]
    expected = seeds * kept * (kept - 1) / (paths * (paths - 1))
    if kept > 1:  # no two paths follow each other
        assert expected > 5
        assert float((pairs - expected).abs().max()) <= 6 * expected**0.5


def lopsided() -> Graph:
    """A clique, a cycle through one of its vertices, and leaves at another: paths have very different neighbours."""
    edges = [*combinations(range(6), 2), (5, 6), (6, 7), (7, 8), (8, 9), (9, 5), *((4, v) for v in range(10, 14))]
    return undirected(edges), 14


CASES = {  # collection, graph, length, kept, seeds, number of paths
    "enumerated": ("ap", lopsided(), 2, 3, 600, 26),
    "drawn": ("ap", lopsided(), 4, 1, 4000, 202),
    "drawn without replacement": ("ap", lopsided(), 3, 4, 6000, 86),
    "drawn, mostly rejected": ("ap", clique(6), 5, 30, 200, 120),
    "drawn in vain, then enumerated": ("ap", clique(7), 6, 700, 60, 720),
    "few shortest paths": ("sp+", layered(3, 4), 3, 7, 300, 27),
    "shortest paths": ("sp+", layered(3, 4), 3, 2, 2400, 27),
    "single shortest paths": ("sp", layered(7, 3), 2, 1, 600, 13),
}


@pytest.mark.parametrize("case", CASES)
def test_uniform_over_seeds(case):
    collection, graph, length, kept, seeds, number = CASES[case]
    chosen, paths = draws(graph, collection, length, kept, seeds)
    assert len(paths) == number
    assert_uniform(chosen, kept)


def test_shortest_paths_of_different_number_are_uniform():
    """Three ways to one vertex and one to another: a draw that chose the vertex first would not be uniform."""
    edges = [(0, v) for v in (1, 2, 3, 4, 5)] + [(v, 6) for v in (1, 2, 3)] + [(4, 7), (5, 8), (6, 9), (7, 9), (8, 10)]
    chosen, paths = draws((undirected(edges), 11), "sp+", 3, 1, 600)
    assert len(paths) == 5
    assert_uniform(chosen, 1)


def test_a_limit_that_is_hard_to_reach_keeps_everything():
    """Walks that meet themselves are 26 times as many as paths: drawing finds too few of them."""
    whole = extract_paths(*clique(7), collection="ap", k=6)
    for most in (720, 719):
        kept = extract_paths(*clique(7), collection="ap", k=6, max_paths_per_source=most)
        assert kept.num_paths == whole.num_paths - (720 - most) * 7 * 2  # of length 5 and 6
        assert path_set(kept.to_paths()) <= path_set(whole.to_paths())


@pytest.mark.parametrize("collection", ["sp+", "ap"])
def test_a_graph_with_more_paths_than_can_be_counted(collection):
    graph = clique(20) if collection == "ap" else layered(64, 14)
    k = 19 if collection == "ap" else 13
    trie = extract_paths(*graph, collection=collection, k=k, max_paths_per_source=3).validate()
    ends = 20 if collection == "ap" else 2 * 64
    assert [levels[-1] for levels in trie.sizes][-1] == 3 * ends
    for rows in trie.to_paths():
        assert bool((rows.sort(dim=1)[0].diff(dim=1) > 0).all())


def test_lengths_that_no_path_has_are_empty():
    trie = extract_paths(*clique(9), collection="ap", k=12, max_paths_per_source=3)
    assert [levels[-1] for levels in trie.sizes] == [27] * 8 + [0] * 4


def test_a_sample_of_a_length_does_not_depend_on_k():
    graph = random_graph(3, n=40, edges=120)
    for collection in COLLECTIONS:
        short, long = (extract_paths(*graph, collection=collection, k=k, max_paths_per_source=4) for k in (2, 4))
        assert all(torch.equal(a, b) for a, b in zip(short.to_paths(), long.to_paths(), strict=False))


def test_without_a_seed_each_call_draws_again():
    chosen = {"collection": "ap", "k": 3, "max_paths_per_source": 2, "seed": None}
    torch.manual_seed(0)
    a, b = (extract_paths(*clique(7), **chosen) for _ in range(2))
    assert not a.equal(b)
    torch.manual_seed(0)
    assert extract_paths(*clique(7), **chosen).equal(a)


def test_costs_less_than_all_paths():
    """The figures are in docs/paths.md; here only that no part of the work follows from the number of paths."""
    graph = from_networkx(nx.barabasi_albert_graph(3000, 8, seed=0))
    extract_paths(*clique(5), collection="ap", k=5, max_paths_per_source=10)  # compiles
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    trie = extract_paths(*graph, collection="ap", k=5, max_paths_per_source=10)  # of thousands of millions
    assert trie.num_paths == 3000 * 10 * 5 - int((10 - degree(graph).clamp(max=10)).sum())
    assert time.process_time() - start < 8
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024  # KiB


def degree(graph: Graph) -> Tensor:
    return torch.bincount(graph[0][0], minlength=graph[1])


def test_sources_do_not_follow_each_other():
    """In a cycle each source keeps one of two directions; over seeds, neighbours agree half of the time."""
    turns = torch.zeros(240, 7)
    for seed in range(240):
        options = PathOptions("ap", 2, max_paths_per_source=1)
        paths = cpu.sample_paths(to_csr(*cycle(7)), options, seed, torch.arange(7))[1].long()
        turns[seed, paths[:, 0]] = ((paths[:, 1] - paths[:, 0]) % 7 == 1).float()
    assert ((turns.mean(dim=0) - 0.5).abs() < 0.15).all()
    agree = (turns == turns.roll(1, dims=1)).float().mean(dim=0)
    assert ((agree - 0.5).abs() < 0.15).all()


def test_repr_says_so():
    trie = extract_paths(*clique(5), collection="ap", k=2, max_paths_per_source=3)
    assert "sampled=3 per source and length" in repr(trie)


def test_a_sample_is_not_extended():
    with pytest.raises(ValueError, match="extend=True with max_paths_per_source"):
        extract_paths(*clique(5), collection="ap", k=2, max_paths_per_source=3, extend=True)


@pytest.mark.parametrize("seed", [0.5, "1", 2**63])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match="seed"):
        extract_paths(*clique(4), collection="ap", k=2, max_paths_per_source=1, seed=seed)
