"""`max_paths_per_source`: a seeded uniform sample."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from path_checks import clique, cycle, levels_of, path_set, union
from path_strategies import collections, graph_lists, graphs, lengths, quick
from pathnn.paths import PathOptions, PathTrie, count, extract_paths, list_paths, sample
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


@settings(some, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs(), collection=collections, k=lengths, most=most_kept, piece=st.sampled_from([1, 3, 10]))
def test_in_pieces_of_any_size(monkeypatch, graph, collection, k, most, piece):
    chosen = {"collection": collection, "k": k, "max_paths_per_source": most, "seed": 5}
    expected = extract_paths(*graph, **chosen)
    with monkeypatch.context() as patch:
        patch.setattr(sample, "PIECE", piece)
        patch.setattr(count, "PIECE", piece)
        assert extract_paths(*graph, **chosen).equal(expected)


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


def test_uniform_over_seeds():
    """Each of the 12 paths of length 2 from a vertex of a 5-clique stays, one of 3, in a quarter of the seeds."""
    trials, kept, each = 240, 3, 12
    paths = list_paths(*clique(5), collection="ap", k=2)[1].tolist()
    number = {tuple(path): i for i, path in enumerate(paths)}
    chosen = torch.zeros(trials, len(paths))
    for seed in range(trials):
        rows = sample.sample_paths(to_csr(*clique(5)), PathOptions("ap", 2, max_paths_per_source=kept, seed=seed))[
            1
        ].tolist()
        chosen[seed, [number[tuple(row)] for row in rows]] = 1
    assert chosen.view(trials, 5, each).sum(dim=2).eq(kept).all()
    share = kept / each
    statistic = float(((chosen.sum(dim=0) - trials * share) ** 2).sum() / (trials * share * (1 - share)))
    assert statistic * (each - 1) / each < 93.2  # chi-square, 5 * 11 degrees of freedom: exceeded once in a thousand
    pairs = torch.einsum("tsi,tsj->sij", *[chosen.view(trials, 5, each)] * 2)[:, *torch.triu_indices(each, each, 1)]
    expected = trials * kept * (kept - 1) / (each * (each - 1))
    assert float((pairs - expected).abs().max()) < 5 * expected**0.5  # no two paths of a source follow each other


def test_sources_do_not_follow_each_other():
    """In a cycle each source keeps one of two directions; over seeds, neighbours agree half of the time."""
    turns = torch.zeros(240, 7)
    for seed in range(240):
        paths = sample.sample_paths(to_csr(*cycle(7)), PathOptions("ap", 2, max_paths_per_source=1, seed=seed))[
            1
        ].long()
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


@pytest.mark.parametrize("seed", [None, 0.5, "1", 2**63])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match="seed"):
        extract_paths(*clique(4), collection="ap", k=2, max_paths_per_source=1, seed=seed)
