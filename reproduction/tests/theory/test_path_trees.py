from itertools import pairwise

import pytest
from hypothesis import given

from exact_theory import ColorTable, is_subtree
from pathnn.paths.options import COLLECTIONS
from slow_trees import path_trees, prune, tree_color, wl_trees
from theory_strategies import atlas, relabelled, relaxed


@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_lemma_3_2(height):
    """A Path-Tree is a subtree of the WL-tree; SP-trees of SP+-trees, these of AP-trees."""
    for graph in atlas(5):
        chain = [path_trees(*graph, collection=c, k=height) for c in COLLECTIONS]
        chain.append(wl_trees(*graph, height))
        for v in range(graph[1]):
            for small, large in pairwise(chain):
                assert is_subtree(small[v], large[v])


@pytest.mark.parametrize("collection", ["sp+", "ap"])
@given(pair=relabelled())
@relaxed
def test_shapes_follow_the_vertices(collection, pair):
    first, second, new = pair
    table = ColorTable()
    before, after = (
        [tree_color(tree, table) for tree in path_trees(*graph, collection=collection, k=4)]
        for graph in (first, second)
    )
    assert all(before[v] == after[new[v]] for v in range(first[1]))


def test_lower_heights_are_pruned_trees():
    for graph in atlas(5):
        for collection in COLLECTIONS:
            highest = path_trees(*graph, collection=collection, k=4)
            for k in (1, 2, 3):
                lower = path_trees(*graph, collection=collection, k=k)
                assert lower == [prune(tree, k) for tree in highest]
