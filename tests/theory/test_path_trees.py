from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathnn.paths.options import COLLECTIONS
from pathnn.paths.reference import reference_paths
from pathnn.theory import ColorTable, path_tree, path_trees, wl_trees
from pathnn.theory.examples import figure_graph
from pathnn.theory.graphs import edges_to_index
from theory_strategies import atlas, graphs, relabelled, relaxed


@pytest.mark.parametrize("collection", COLLECTIONS)
@given(graph=graphs(), k=st.integers(1, 4))
@relaxed
def test_nodes_are_paths(collection, graph, k):
    """Every node below the root is a path of the collection, and every path is a node."""
    trees = path_trees(*graph, collection=collection, k=k)
    found = [walk for tree in trees for walk in tree.walks() if len(walk) > 1]
    expected = [p for paths in reference_paths(*graph, collection=collection, k=k) for p in paths]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_lemma_3_2(height):
    """A Path-Tree is a subtree of the WL-tree; SP-trees of SP+-trees, these of AP-trees."""
    for graph in atlas(5):
        chain = [path_trees(*graph, collection=c, k=height) for c in COLLECTIONS]
        chain.append(wl_trees(*graph, height))
        for v in range(graph[1]):
            for small, large in pairwise(chain):
                assert small[v].is_subtree_of(large[v])


@pytest.mark.parametrize("collection", ["sp+", "ap"])
@given(pair=relabelled())
@relaxed
def test_shapes_follow_the_vertices(collection, pair):
    first, second, new = pair
    table = ColorTable()
    before, after = (
        [tree.color(table) for tree in path_trees(*graph, collection=collection, k=4)] for graph in (first, second)
    )
    assert all(before[v] == after[new[v]] for v in range(first[1]))


def test_lower_heights_are_pruned_trees():
    for graph in atlas(5):
        for collection in COLLECTIONS:
            highest = path_trees(*graph, collection=collection, k=4)
            for k in (1, 2, 3):
                lower = path_trees(*graph, collection=collection, k=k)
                assert lower == [tree.prune(k) for tree in highest]


def test_figure_graph_satisfies_the_captions():
    graph = figure_graph()
    shortest = reference_paths(*graph, collection="sp+", k=5)
    from_v1 = [path for paths in shortest for path in paths if path[0] == 0]
    assert graph[1] == 6
    assert max(map(len, from_v1)) == 3
    ends = [path[-1] for path in from_v1]
    assert sorted(ends) == [1, 2, 3, 3, 4, 5]  # v4 twice: two SP-trees of height 2 are possible
    sp, sp_plus, ap = (path_tree(*graph, 0, collection=c, k=k) for c, k in (("sp", 2), ("sp+", 2), ("ap", 3)))
    assert sp.levels() == [[0], [1, 2, 5], [3, 4]]
    assert sp_plus.levels() == [[0], [1, 2, 5], [3, 3, 4]]
    assert ap.levels() == [[0], [1, 2, 5], [3, 3, 4], [2, 1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"collection": "all"}, "collection='all'"),
        ({"k": 0}, "k=0"),
        ({"source": 2}, "source=2"),
        ({"num_nodes": 1, "source": 0}, "num_nodes=1"),
    ],
)
def test_refuses(arguments, message):
    given_arguments = {"num_nodes": 2, "source": 0, "collection": "ap", "k": 2} | arguments
    with pytest.raises(ValueError, match=message):
        path_tree(edges_to_index([(0, 1)]), **given_arguments)
