"""Path-Trees and WL-trees; `reproduction/tests/theory` has the statements about them."""

import pytest
import torch
from hypothesis import given, strategies as st

from path_reference import reference_paths
from pathnn.paths.options import COLLECTIONS
from pathnn.theory import path_tree, wl_tree
from pathnn.theory.examples import figure_graph
from pathnn.theory.graphs import edges_to_index
from theory_strategies import graphs, relaxed


@pytest.mark.parametrize("collection", COLLECTIONS)
@given(graph=graphs(), k=st.integers(1, 4))
@relaxed
def test_nodes_are_paths(collection, graph, k):
    """Every node below the root is a path of the collection, and every path is a node."""
    trees = [path_tree(*graph, source, collection=collection, k=k) for source in range(graph[1])]
    found = [walk for tree in trees for walk in tree.walks() if len(walk) > 1]
    expected = [p for paths in reference_paths(*graph, collection=collection, k=k) for p in paths]
    assert sorted(found) == sorted(expected)


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
def test_path_tree_refuses(arguments, message):
    given_arguments = {"num_nodes": 2, "source": 0, "collection": "ap", "k": 2} | arguments
    with pytest.raises(ValueError, match=message):
        path_tree(edges_to_index([(0, 1)]), **given_arguments)


@given(graphs(), st.integers(0, 4))
@relaxed
def test_wl_tree_lists_all_walks(graph, height):
    adjacency = torch.zeros(graph[1], graph[1], dtype=torch.long)
    adjacency[graph[0][0], graph[0][1]] = 1
    walks = torch.eye(graph[1], dtype=torch.long)
    tree = wl_tree(*graph, 0, height)
    for length in range(height + 1):
        found = tree.levels()[length] if length <= tree.height else []
        assert torch.bincount(torch.tensor(found, dtype=torch.long), minlength=graph[1]).equal(walks[0])
        walks = walks @ adjacency


@pytest.mark.parametrize("source", [-1, 3, True, 0.0])
def test_tree_refuses_what_is_no_vertex(source):
    with pytest.raises(ValueError, match="is not a vertex"):
        wl_tree(edges_to_index([(0, 1)]), 3, source, 2)
