"""A joined trie has every path once, next to its prefixes, with distances to the far end."""

from __future__ import annotations

import networkx
import pytest
import torch

from nn_graphs import graph
from pathnn import extract_paths
from pathnn.paths.prefixes import is_joined, join_lengths, prefixes_of

EDGE_INDEX, N = graph()


@pytest.mark.parametrize("collection", ["ap", "sp+"])
def test_entries_are_the_paths(collection):
    trie = extract_paths(EDGE_INDEX, N, collection=collection, k=4, distances=False)
    joined = join_lengths(trie)
    assert is_joined(joined)
    assert not is_joined(trie)
    levels = prefixes_of(joined).levels
    distances = dict(networkx.all_pairs_shortest_path_length(networkx.Graph(EDGE_INDEX.t().tolist())))
    rows = levels[0].vertex[:, None]
    for length, level in enumerate(levels[1:], start=1):
        steps = torch.stack([levels[length - 1].vertex[level.parent.long()], level.vertex])
        assert torch.equal(EDGE_INDEX[:, level.edge.long()], steps.long())
        rows = torch.cat([level.vertex[:, None], rows[level.parent.long()]], dim=1)  # source first
        expected = trie.to_paths()[length - 1]
        assert sorted(rows.tolist()) == sorted(expected.tolist())
        assert level.distance.tolist() == [distances[row[0]][row[-1]] for row in rows.tolist()]
        assert bool((level.parent.diff() >= 0).all())  # children of a parent lie together
    assert joined.num_entries == trie.num_paths + len(levels[0])


@pytest.mark.parametrize("options", [{}, {"distances": False, "extend": True}, {"distances": False, "directed": True}])
def test_other_tries_are_refused(options):
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=2, **options)
    with pytest.raises(ValueError, match="distances=False"):
        join_lengths(trie)
    with pytest.raises(ValueError, match="expected all paths"):
        join_lengths(extract_paths(EDGE_INDEX, N, collection="sp", k=2))
