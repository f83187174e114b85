"""`sources=`: only the paths of some vertices."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import k_hop_subgraph

from path_checks import clique, cycle, levels_of, path_set, random_graph
from path_strategies import collections, graphs, lengths, quick
from pathnn.nn import PathNN
from pathnn.paths import PathExplosionError, PathTrie, extract, extract_paths


def starting_at(paths: list[Tensor], sources: Tensor) -> list[Tensor]:
    return [rows[torch.isin(rows[:, 0], sources)] for rows in paths]


@settings(quick, max_examples=120)
@given(
    graph=graphs(), collection=collections, k=lengths, some=st.randoms(use_true_random=False), directed=st.booleans(),
    extend=st.booleans(), distances=st.booleans(), kept=st.sampled_from([None, 1, 3]),
)  # fmt: skip
def test_gives_what_filtering_all_paths_gives(graph, collection, k, some, directed, extend, distances, kept):
    edge_index, n = graph
    if directed:
        edge_index = edge_index[:, : edge_index.size(1) // 2]
    sources = torch.tensor([v for v in some.sample(range(n), n) if some.random() < 0.5], dtype=torch.int64)
    options = {"collection": collection, "k": k, "directed": directed, "distances": distances}
    whole = extract_paths(edge_index, n, **options, extend=extend and kept is None, max_paths_per_source=kept)
    trie = extract_paths(
        edge_index, n, **options, extend=extend and kept is None, max_paths_per_source=kept, sources=sources
    ).validate()
    expected = starting_at(whole.to_paths(), sources)
    assert path_set(trie.to_paths()) == path_set(expected)
    again = PathTrie.from_paths(
        expected, edge_index, n, collection=collection, distances=distances, extended=whole.extended, directed=directed
    )
    assert levels_of(trie) == levels_of(again)
    assert (trie.extended, trie.sampled, trie.directed) == (whole.extended, whole.sampled, whole.directed)


def test_only_their_paths_count(monkeypatch):
    monkeypatch.setattr(extract, "TRUST_BOUND", -1)
    chosen = {"collection": "ap", "k": 4, "sources": torch.tensor([5, 2])}
    assert extract_paths(*clique(8), **chosen, max_paths=2 * (7 + 42 + 210 + 840)).num_paths == 2 * 1099
    with pytest.raises(PathExplosionError, match="2,198 of all lengths"):
        extract_paths(*clique(8), **chosen, max_paths=2197)


def test_a_sample_of_a_source_is_the_same_with_and_without_others():
    options = {"collection": "ap", "k": 4, "max_paths_per_source": 3}
    alone = extract_paths(*clique(12), **options, sources=torch.tensor([7])).to_paths()
    together = starting_at(extract_paths(*clique(12), **options).to_paths(), torch.tensor([7]))
    assert path_set(alone) == path_set(together)


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ([0, 1], "sources is list: expected a flat torch.int64 tensor"),
        (torch.tensor([0.5]), "sources is torch.float32"),
        (torch.tensor([[0]]), "expected a flat"),
        (torch.tensor([True]), "sources is torch.bool"),
        (torch.tensor([5]), "outside 0..4"),
        (torch.tensor([-1]), "outside 0..4"),
        (torch.tensor([1, 2, 1]), "a vertex twice"),
    ],
)
def test_bad_sources(sources, words):
    with pytest.raises(ValueError, match=words):
        extract_paths(*cycle(5), collection="ap", k=2, sources=sources)


def test_paths_of_seeds_in_the_subgraph_around_them_are_those_in_the_graph():
    """What a mini-batch relies on: a path of k edges stays within k steps of its source."""
    edge_index, n = random_graph(5, n=300, edges=420)
    seeds = torch.arange(20, 30)
    nodes, near, at, _ = k_hop_subgraph(seeds, 3, edge_index, relabel_nodes=True, num_nodes=n)
    assert nodes.numel() < n
    for collection in ("sp", "sp+", "ap"):  # "sp" follows the order of ids, which relabelling keeps here
        found = extract_paths(near, nodes.numel(), collection=collection, k=3, sources=at).to_paths()
        expected = extract_paths(edge_index, n, collection=collection, k=3, sources=seeds).to_paths()
        assert path_set([nodes[rows] for rows in found]) == path_set(expected)


def test_data_and_batches_are_graphs():
    edge_index, n = cycle(5)
    data = Data(edge_index=edge_index, num_nodes=n)
    trie = extract_paths(edge_index, n, collection="ap", k=3)
    assert extract_paths(data, collection="ap", k=3).equal(trie)
    batch = Batch.from_data_list([data, Data(edge_index=clique(6)[0], num_nodes=6)])
    assert extract_paths(batch[0], collection="ap", k=3).equal(trie)
    assert extract_paths(batch, collection="ap", k=3).num_nodes == 11
    with pytest.raises(PathExplosionError, match=r"^graph 1 has"):
        extract_paths(batch, collection="ap", k=3, max_paths=50)
    with pytest.raises(ValueError, match="edge_index is a Data"):
        extract_paths(Data(num_nodes=3), collection="ap", k=3)
    with pytest.raises(ValueError, match="num_nodes=None: expected an integer"):
        extract_paths(edge_index, collection="ap", k=3)


def test_a_subgraph_with_all_its_paths_gives_the_output_of_the_graph():
    """As docs/paths.md says: k (k + 1) / 2 steps, here 3 for two layers; seeds alone as sources give another output."""
    edge_index, n = random_graph(8, n=200, edges=230, messy=False)
    model = PathNN(4, 8, 2, collection="ap", k=2, readout=None).eval()
    x, seeds = torch.rand(n, 4), torch.arange(5)
    nodes, near, at, _ = k_hop_subgraph(seeds, 3, edge_index, relabel_nodes=True, num_nodes=n)
    assert nodes.numel() < n
    expected = model(x, edge_index)[seeds]
    assert torch.allclose(model(x[nodes], near)[at], expected, atol=1e-6)
    alone = model(x[nodes], trie=extract_paths(near, nodes.numel(), collection="ap", k=2, sources=at))[at]
    assert not torch.allclose(alone, expected, atol=1e-6)
