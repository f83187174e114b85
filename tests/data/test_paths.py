"""Paths of a whole dataset: limits, samples, options."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data_strategies import complete
from pathnn.data import (
    PackedGraphs,
    build_shards,
)
from pathnn.paths import PathExplosionError

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


def test_a_sample_does_not_depend_on_how_graphs_are_cut(graphs: PackedGraphs, tmp_path: Path) -> None:
    plain = replace(graphs, tries=None)
    options = {"collection": "ap", "k": 3, "max_paths_per_source": 2}
    expected = plain.with_paths(**options).trie()
    assert build_shards(plain, tmp_path / "paths", max_bytes=300, **options).trie().equal(expected)


def test_a_new_draw_in_each_call_is_not_stored(graphs: PackedGraphs, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seed=None draws other paths"):
        build_shards(graphs, tmp_path, collection="ap", k=2, max_paths_per_source=2, seed=None)


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
