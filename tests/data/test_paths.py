"""Paths of a whole dataset: limits, samples, options."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch_geometric.data import Data

from data_strategies import complete, data_lists
from pathnn.data import PackedGraphs, PackedLoader, from_pyg
from pathnn.data.paths import build_paths
from pathnn.paths import PathExplosionError
from pathnn.paths.options import PathOptions

MODULE = sys.modules["pathnn.data.paths"]


def test_too_many_paths_are_refused_before_they_are_extracted(graphs: PackedGraphs) -> None:
    with pytest.raises(PathExplosionError, match="graph 2"):
        replace(graphs, tries=None).with_paths(collection="ap", k=4, max_paths=300)


def test_an_error_names_the_graph_wherever_the_counting_began(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [2, 2, 3, 6, 2]
    graphs = PackedGraphs.from_edges([complete(n) for n in sizes], sizes)
    for nodes in (1, 5, 200_000):
        monkeypatch.setattr(MODULE, "COUNT_NODES", nodes)
        with pytest.raises(PathExplosionError, match=r"^graph 3 has 360 simple paths of length 3"):
            graphs.with_paths(collection="ap", k=3, max_paths=100)


def test_without_a_limit_paths_have_to_fit_into_memory(graphs: PackedGraphs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "free_memory", lambda device: 1000)
    with pytest.raises(PathExplosionError):
        replace(graphs, tries=None).with_paths(collection="ap", k=3)


@pytest.mark.parametrize("collection", ["sp", "ap"])
def test_paths_have_distances_where_they_are_asked_for(graphs: PackedGraphs, collection: str) -> None:
    plain = replace(graphs, tries=None)
    found = [plain.with_paths(collection=collection, k=2, distances=asked).trie() for asked in (None, False, True)]
    assert [trie.distance is not None for trie in found] == [collection == "ap", False, True]


def test_the_limit_is_of_all_graphs_however_many_are_counted_at_once(
    graphs: PackedGraphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, total = replace(graphs, tries=None), graphs.trie().num_paths
    for nodes in (1, 8, 200_000):
        monkeypatch.setattr(MODULE, "COUNT_NODES", nodes)
        assert plain.with_paths(collection="ap", k=3, max_paths=total).trie().equal(graphs.trie())
        with pytest.raises(PathExplosionError, match=rf"; {total:,} in all\), over max_paths={total - 1:,}\."):
            plain.with_paths(collection="ap", k=3, max_paths=total - 1)


def test_a_sample_does_not_depend_on_how_graphs_are_cut(graphs: PackedGraphs) -> None:
    options = PathOptions("ap", 3, max_paths_per_source=2)
    expected = build_paths(graphs, options).trie()
    assert build_paths(graphs, options, chunk_bytes=300).trie().equal(expected)


@given(data=st.data(), graphs=data_lists(), extend=st.booleans())
@settings(max_examples=25, deadline=None)
def test_batches_that_are_extracted_equal_batches_of_stored_paths(
    data: st.DataObject, graphs: list[Data], extend: bool
) -> None:
    index = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))
    packed = from_pyg(graphs)
    options = {"collection": "ap", "k": 3, "extend": extend}
    stored = packed.with_paths(**options).select(index)
    extracted = packed.with_paths(**options, store=False).select(index)
    assert stored.trie is not None
    assert extracted.trie is not None
    assert extracted.trie.equal(stored.trie)
    assert torch.equal(extracted.edge_index, stored.edge_index)


def test_a_loader_extracts_paths_that_are_not_stored(graphs: PackedGraphs) -> None:
    lazy = replace(graphs, tries=None).with_paths(collection="ap", k=3, store=False)
    assert lazy.nbytes < graphs.nbytes
    for one, other in zip(PackedLoader(graphs, batch_size=3), PackedLoader(lazy, batch_size=3), strict=True):
        assert one.trie.equal(other.trie)
    with pytest.raises(PathExplosionError, match="max_paths=3"):
        lazy.with_paths(collection="ap", k=3, max_paths=3, store=False).select([0, 1])


def test_a_sample_is_bounded_too(graphs: PackedGraphs) -> None:
    with pytest.raises(PathExplosionError, match="max_paths=3"):
        replace(graphs, tries=None).with_paths(collection="ap", k=3, max_paths_per_source=2, max_paths=3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_paths": "x"}, "max_paths='x': expected an integer"),
        ({"max_paths": 0}, "max_paths=0: expected an integer of at least 1"),
        ({"max_paths_per_source": 0}, "max_paths_per_source=0: expected"),
        ({"seed": "one"}, "seed='one': expected"),
        ({"extend": True, "max_paths_per_source": 2}, "one of the two"),
    ],
)
def test_options_of_paths_are_checked(graphs: PackedGraphs, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(graphs, tries=None).with_paths(collection="ap", k=2, **options)
