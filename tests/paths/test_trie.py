"""`PathTrie` as a container: there and back, what it says of itself, and what `validate` finds."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from hypothesis import given, strategies as st
from torch_geometric.utils import scatter

from path_checks import clique, cycle, line
from path_strategies import collections, graphs, lengths, quick
from pathnn.paths import PathTrie, extract_paths


@quick
@given(graph=graphs(), collection=collections, k=lengths, distances=st.booleans(), extend=st.booleans())
def test_from_paths_undoes_to_paths(graph, collection, k, distances, extend):
    trie = extract_paths(*graph, collection=collection, k=k, distances=distances, extend=extend)
    paths = trie.to_paths()
    assert all(rows.dtype == torch.int64 and rows.shape[1] == i + 2 for i, rows in enumerate(paths))
    order = torch.Generator().manual_seed(k)
    shuffled = [rows[torch.randperm(len(rows), generator=order)] for rows in paths]
    again = PathTrie.from_paths(shuffled, *graph, collection=collection, distances=distances).validate()
    # paths do not say that they would have been extended had one of them ended
    assert again.extended == any(bool((rows < 0).any()) for rows in paths)
    assert replace(again, extended=extend).equal(trie)
    assert again.num_edges == trie.num_edges
    if extend:
        same = PathTrie.from_paths(shuffled, *graph, collection=collection, distances=distances, extended=True)
        assert same.validate().equal(trie)


@quick
@given(graph=graphs(), k=lengths, seed=st.integers(0, 99), distances=st.booleans())
def test_from_paths_takes_any_paths(graph, k, seed, distances):
    generator = torch.Generator().manual_seed(seed)
    paths = extract_paths(*graph, collection="ap", k=k).to_paths()
    some = [rows[torch.rand(len(rows), generator=generator) < 0.4] for rows in paths]
    trie = PathTrie.from_paths(some, *graph, collection="ap", distances=distances).validate()
    assert [sorted(rows.tolist()) for rows in trie.to_paths()] == [sorted(rows.tolist()) for rows in some]


def test_lengths_sizes_and_sources():
    trie = extract_paths(*cycle(5), collection="ap", k=3)
    assert [t.length for t in trie.lengths()] == [1, 2, 3]
    assert trie.num_paths == sum(t.num_paths for t in trie.lengths()) == 30
    assert trie.num_entries == sum(t.num_entries for t in trie.lengths()) == trie.vertex.numel()
    assert sum(levels[0] for levels in trie.sizes) == trie.num_entries - trie.parent.numel()
    for t, paths in zip(trie.lengths(), trie.to_paths(), strict=True):
        assert torch.equal(t.source.long(), paths[:, 0])
        for level, child in zip(t.levels, t.levels[1:], strict=False):
            assert child.parent.unique().tolist() == list(range(len(level)))  # every inner entry leads on
        far_ends = t.levels[0].vertex[t.ancestors()[0]]
        assert torch.equal(far_ends.long(), paths[:, -1])


@pytest.mark.parametrize("length", [0, -1, 4])
def test_a_length_that_is_not_there(length):
    with pytest.raises(ValueError, match=f"length={length} is not in this trie: expected 1 to 3"):
        extract_paths(*line(3), collection="sp", k=3).length(length)


def test_length_is_a_view():
    trie = extract_paths(*clique(4), collection="ap", k=2)
    assert trie.length(1).levels[0].vertex.data_ptr() == trie.vertex.data_ptr()


def test_repr_says_what_it_is():
    graph = clique(4)
    trie = extract_paths(*graph, collection="ap", k=2)
    entries = trie.num_entries
    assert repr(trie) == f"PathTrie(collection='ap', k=2, num_paths=36, entries={entries}, device='cpu')"
    assert "extended=True" in repr(extract_paths(*graph, collection="ap", k=2, extend=True))
    assert "sampled=1 per source" in repr(extract_paths(*graph, collection="ap", k=2, max_paths_per_source=1))


def test_frozen():
    trie = extract_paths(*line(3), collection="sp", k=1)
    with pytest.raises(FrozenInstanceError):
        trie.collection = "ap"  # type: ignore[misc]


def test_to_the_same_device_and_equal():
    trie = extract_paths(*clique(4), collection="ap", k=2)
    assert trie.to("cpu").equal(trie)
    assert not trie.equal(extract_paths(*clique(4), collection="ap", k=2, distances=False))
    assert not trie.equal(extract_paths(*clique(4), collection="ap", k=3))
    assert not trie.equal(extract_paths(*clique(5), collection="ap", k=2))
    assert not trie.equal(replace(trie, vertex=trie.vertex.flip(0)))
    assert not trie.equal(replace(trie, collection="sp"))
    assert not trie.equal(replace(trie, extended=True))
    assert not trie.equal(replace(trie, sampled=3))


def test_equal_knows_the_number_of_edges():
    edge_index, n = clique(4)
    messy = torch.cat([edge_index, edge_index], dim=1)
    a, b = (extract_paths(e, n, collection="ap", k=2) for e in (edge_index, messy))
    assert not a.equal(b)  # all ids agree, but those of PathTrie.cat([a, a]) and PathTrie.cat([b, b]) do not


# what validate() has to find: a name, what is changed, and what the message says


def changed(name: str, at: int | slice, value: int):
    def change(trie: PathTrie) -> PathTrie:
        tensor = getattr(trie, name).clone()
        tensor[at] = value
        return replace(trie, **{name: tensor})

    return change


CORRUPT = {
    "vertex too large": (changed("vertex", 0, 99), "vertex"),
    "a dummy that is none": (changed("vertex", 0, -1), "dummy"),
    "parent too large": (changed("parent", 0, 99), "parent"),
    "parent negative": (changed("parent", 0, -1), "parent"),
    "edge too large": (changed("edge", 0, 99), "edge"),
    "edge negative": (changed("edge", 0, -1), "edge"),
    "edge far below zero": (changed("edge", -1, -7), "edge"),
    "distance too large": (changed("distance", 0, 9), "distance"),
    "distance negative": (changed("distance", 0, -1), "distance"),
    "source not at distance 0": (changed("distance", -1, 1), "distance"),
    "entries out of order": (lambda t: replace(t, vertex=t.vertex.flip(0)), "sorted|child|parent"),
    "an entry without children": (changed("parent", slice(3, 6), 0), "child"),
    "vertex too short": (lambda t: replace(t, vertex=t.vertex[1:]), r"vertex.*shape"),
    "edge too short": (lambda t: replace(t, edge=t.edge[1:]), r"edge.*shape"),
    "distance too short": (lambda t: replace(t, distance=t.distance[1:]), r"distance.*shape"),
    "wrong dtype": (lambda t: replace(t, parent=t.parent.long()), r"parent.*int32"),
    "a level too many": (lambda t: replace(t, sizes=((*t.sizes[0], 0), *t.sizes[1:])), "sizes"),
    "sizes that do not add up": (lambda t: replace(t, sizes=((4, 13), *t.sizes[1:])), "shape"),
    "collection": (lambda t: replace(t, collection="all"), "collection"),
}


@pytest.mark.parametrize("kind", CORRUPT)
def test_validate_finds(kind):
    change, message = CORRUPT[kind]
    trie = extract_paths(*clique(4), collection="ap", k=2).validate()
    with pytest.raises(ValueError, match=message):
        change(trie).validate()


def test_validate_finds_in_extended_tries():
    trie = extract_paths(*line(2), collection="sp", k=3, extend=True, distances=True).validate()
    with pytest.raises(ValueError, match="edge"):
        changed("edge", 0, -2)(trie).validate()
    beside_a_dummy = int((trie.edge < 0).nonzero()[0])
    for edge in (0, -2):
        with pytest.raises(ValueError, match="an edge that is negative, or at a dummy token"):
            changed("edge", beside_a_dummy, edge)(trie).validate()
    with pytest.raises(ValueError, match="vertex"):
        changed("vertex", int((trie.vertex < 0).nonzero()[0]), -9)(trie).validate()
    with pytest.raises(ValueError, match="dummy"):
        replace(trie, extended=False).validate()


def test_validate_finds_a_dummy_at_a_source():
    trie = extract_paths(*line(2), collection="sp", k=1, extend=True).validate()
    vertex = torch.tensor([0, 1, ~1, ~0], dtype=torch.int32)
    with pytest.raises(ValueError, match="dummy"):
        replace(trie, vertex=vertex).validate()


def test_validate_returns_the_trie():
    trie = extract_paths(*clique(4), collection="ap", k=2)
    assert trie.validate() is trie


def test_sources_work_with_scatter():
    trie = extract_paths(*clique(4), collection="ap", k=2)
    source = trie.length(2).source
    assert source.dtype == torch.int64
    assert scatter(torch.ones(trie.length(2).num_paths), source).tolist() == [6.0] * 4


def test_equal_compares_the_sampling():
    whole = extract_paths(*clique(4), collection="ap", k=2)
    kept = extract_paths(*clique(4), collection="ap", k=2, max_paths_per_source=100)
    assert torch.equal(kept.vertex, whole.vertex)
    assert not kept.equal(whole)
