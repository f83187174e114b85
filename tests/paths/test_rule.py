"""What holds for the collections themselves: reversal, subpaths, new numbers, edge ids."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given

from path_checks import cycle, path_set
from path_strategies import collections, graphs, lengths, quick, relabelled, thorough
from pathnn.paths import count_paths, extract_paths, list_paths


@thorough
@given(graph=graphs(), collection=collections, k=lengths)
def test_closed_under_reversal_and_subpaths(graph, collection, k):
    paths = path_set(list_paths(*graph, collection=collection, k=k))
    assert {path[::-1] for path in paths} == paths
    assert {path[:-1] for path in paths if len(path) > 2} <= paths
    assert {path[1:] for path in paths if len(path) > 2} <= paths


@quick
@given(graph=graphs(), k=lengths)
def test_sp_has_one_path_per_pair_out_of_sp_plus_out_of_ap(graph, k):
    sp, sp_plus, ap = (path_set(list_paths(*graph, collection=c, k=k)) for c in ("sp", "sp+", "ap"))
    assert sp <= sp_plus <= ap
    pairs = [(path[0], path[-1]) for path in sp]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {(path[0], path[-1]) for path in sp_plus}


@quick
@given(graph=graphs(), k=lengths)
def test_sp_avoids_the_largest_vertices(graph, k):
    chosen = {(path[0], path[-1]): path for path in path_set(list_paths(*graph, collection="sp", k=k))}
    for path in path_set(list_paths(*graph, collection="sp+", k=k)):
        assert sorted(chosen[path[0], path[-1]], reverse=True) <= sorted(path, reverse=True)


@pytest.mark.parametrize(
    ("cycle_order", "expected"),
    [([0, 1, 2, 3], (0, 1, 2)), ([0, 3, 2, 1], (0, 1, 2)), ([0, 1, 3, 2], (0, 1, 3))],
)
def test_sp_on_a_square(cycle_order, expected):
    edge_index = torch.tensor(cycle_order)[cycle(4)[0]]
    paths = path_set(list_paths(edge_index, 4, collection="sp", k=2))
    assert expected in paths
    assert sum(len(path) == 3 for path in paths) == 4


@thorough
@given(pair=relabelled(), k=lengths)
def test_new_numbers_give_the_renumbered_paths(pair, k):
    graph, other, number = pair
    for collection in ("sp+", "ap"):
        paths = path_set(list_paths(*graph, collection=collection, k=k))
        renumbered = {tuple(number[v] for v in path) for path in paths}
        assert path_set(list_paths(*other, collection=collection, k=k)) == renumbered
    before = count_paths(*graph, collection="sp", k=k)
    assert torch.equal(before, count_paths(*other, collection="sp", k=k))


@quick
@given(graph=graphs(), k=lengths)
def test_sp_depends_only_on_the_order_of_the_numbers(graph, k):
    edge_index, n = graph
    paths = path_set(list_paths(edge_index, n, collection="sp", k=k))
    stretched = list_paths(3 * edge_index + 2, 3 * n + 2, collection="sp", k=k)
    assert path_set(stretched) == {tuple(3 * v + 2 for v in path) for path in paths}


@thorough
@given(graph=graphs(), collection=collections, k=lengths)
def test_edge_ids_are_the_first_row_of_the_step(graph, collection, k):
    edge_index, _ = graph
    first_row: dict[tuple[int, int], int] = {}
    for row, (u, v) in enumerate(edge_index.t().tolist()):
        first_row.setdefault((u, v), row)
    for length in extract_paths(*graph, collection=collection, k=k).lengths():
        assert length.levels[0].edge is None
        assert length.levels[0].parent is None
        for before, level in zip(length.levels, length.levels[1:], strict=False):
            step = torch.stack([before.vertex[level.parent], level.vertex])
            assert torch.equal(edge_index[:, level.edge], step.long())
            assert level.edge.tolist() == [first_row[u, v] for u, v in step.t().tolist()]


@quick
@given(graph=graphs(messy=False), collection=collections, k=lengths)
def test_self_loops_and_repeated_rows_change_nothing(graph, collection, k):
    edge_index, n = graph
    loops = torch.arange(n).expand(2, -1)
    messy = torch.cat([edge_index, loops, edge_index.flip(1), edge_index], dim=1)
    trie = extract_paths(messy, n, collection=collection, k=k)
    clean = extract_paths(edge_index, n, collection=collection, k=k)
    assert trie.num_edges == messy.size(1)
    assert replace(trie, num_edges=clean.num_edges).equal(clean)  # the first rows are the same rows
