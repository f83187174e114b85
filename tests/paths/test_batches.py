"""Many graphs: batches and ragged selections."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st

from path_checks import clique, cycle, line, random_graph, union
from path_strategies import collections, graph_lists, lengths, quick
from pathnn.paths import PathTrie, RaggedTries, extract_paths

options = st.fixed_dictionaries(
    {"collection": collections, "k": lengths, "distances": st.booleans(), "extend": st.booleans()}
)


@quick
@given(graph_list=graph_lists, chosen=options)
def test_extracting_a_batch_is_concatenating_extractions(graph_list, chosen):
    tries = [extract_paths(*graph, **chosen) for graph in graph_list]
    whole = union(graph_list)
    batched = extract_paths(*whole.graph, batch=whole.batch, **chosen)
    assert PathTrie.cat(tries).validate().equal(batched)
    assert PathTrie.cat(tries).num_edges == batched.num_edges


@quick
@given(graph_list=graph_lists, chosen=options, data=st.data())
def test_any_selection_from_either_form(graph_list, chosen, data):
    index = data.draw(st.lists(st.integers(0, len(graph_list) - 1), max_size=6))
    whole = union(graph_list)
    selected = union([graph_list[i] for i in index])
    expected = extract_paths(*selected.graph, **chosen)
    from_list = RaggedTries.from_tries([extract_paths(*graph, **chosen) for graph in graph_list])
    batched = extract_paths(*whole.graph, **chosen)
    from_batch = RaggedTries.from_trie(batched, whole.node_ptr, whole.edge_ptr)
    assert from_batch.trie().equal(batched)
    assert torch.equal(from_list.sizes, from_batch.sizes)
    assert from_list.nbytes == from_batch.nbytes == batched.nbytes
    assert len(from_list) == len(from_batch) == len(graph_list)
    for ragged in (from_list, from_batch):
        trie = ragged.select(torch.tensor(index, dtype=torch.int64))
        assert trie.equal(expected)
        assert (trie.num_edges, trie.extended) == (expected.num_edges, expected.extended)
        if trie.num_entries:
            trie.validate()


def test_a_selection_keeps_that_it_is_a_sample():
    trie = extract_paths(*clique(5), collection="ap", k=3, max_paths_per_source=2)
    ragged = RaggedTries.from_tries([trie, trie])
    assert ragged.select(torch.tensor([1])).equal(trie)
    assert ragged.trie().sampled == 2


def test_sizes_of_a_selection_are_sums():
    graph_list = [random_graph(i) for i in range(5)]
    ragged = RaggedTries.from_tries([extract_paths(*graph, collection="ap", k=3) for graph in graph_list])
    index = torch.tensor([4, 0, 4])
    flat = [n for levels in ragged.select(index).sizes for n in levels]
    assert flat == ragged.sizes[index].sum(dim=0).tolist()
    assert "graphs=5" in repr(ragged)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"collection": "sp"}, "collection"),
        ({"k": 3}, "k="),
        ({"distances": False}, "distances"),
        ({"extend": True}, "extend="),
        ({"max_paths_per_source": 3}, "max_paths_per_source="),
    ],
)
def test_tries_that_do_not_belong_together(other, name):
    chosen = {"collection": "ap", "k": 2, "distances": True}
    tries = [extract_paths(*line(3), **chosen), extract_paths(*line(3), **{**chosen, **other})]
    with pytest.raises(ValueError, match=name):
        PathTrie.cat(tries)


def test_no_tries():
    with pytest.raises(ValueError, match="at least one"):
        PathTrie.cat([])


@pytest.mark.parametrize("node_ptr", [[0, 3, 8], [0, 9, 7], [1, 3, 7], [3, 7]])
def test_pointers_that_are_not_the_graphs(node_ptr):
    whole = union([line(3), cycle(4)])
    trie = extract_paths(*whole.graph, collection="sp", k=2)
    with pytest.raises(ValueError, match="node_ptr"):
        RaggedTries.from_trie(trie, torch.tensor(node_ptr), whole.edge_ptr)
