from itertools import product

import networkx as nx
import pytest
from hypothesis import given, strategies as st

from exact_theory import annotated_path_sets, paths_distinguish
from path_reference import reference_paths, to_graph
from pathnn.paths.options import COLLECTIONS
from pathnn.paths.trie import DUMMY
from pathnn.theory.examples import hexagon, open_triplet, triangle, two_triangles
from pathnn.theory.graphs import edges_to_index
from theory_strategies import graphs, relabelled, relaxed

OPTIONS = [
    {"residual": residual, "extend": extend, "distances": distances}
    for residual, extend, distances in product([False, True], repeat=3)
]


def naive_annotations(graph, collection, k, residual, extend, distances):
    """The definition with nested tuples: nothing interned, nothing shared."""
    reference = to_graph(*graph)
    distance = dict(nx.all_pairs_shortest_path_length(reference))
    levels = [[()] * graph[1]]
    for paths in reference_paths(*graph, collection=collection, k=k, extend=extend):
        before, rows = levels[-1], []
        for v in range(graph[1]):
            sequences = [
                tuple("dummy" if u == DUMMY else (repr(before[u]), distance[v][u] if distances else None) for u in path)
                for path in paths
                if path[0] == v
            ]
            rows.append((before[v] if residual else None, tuple(sorted(sequences, key=repr))))
        levels.append(rows)
    return levels


@pytest.mark.parametrize("collection", COLLECTIONS)
@given(pair=st.lists(graphs(5), min_size=2, max_size=2), options=st.sampled_from(OPTIONS))
@relaxed
def test_agrees_with_nested_tuples(collection, pair, options):
    ours = annotated_path_sets(pair, collection=collection, k=3, **options)
    naive = [naive_annotations(graph, collection, 3, **options) for graph in pair]
    for level in range(4):
        first = [x for levels in ours for x in levels[level]]
        second = [repr(x) for levels in naive for x in levels[level]]
        assert len(set(first)) == len(set(second)) == len(set(zip(first, second, strict=True)))


@pytest.mark.parametrize("collection", ["sp+", "ap"])
@given(pair=relabelled(), options=st.sampled_from(OPTIONS))
@relaxed
def test_isomorphic_graphs_are_never_distinguished(collection, pair, options):
    first, second, new = pair
    before, after = annotated_path_sets([first, second], collection=collection, k=4, **options)
    for level in range(5):
        assert all(before[level][v] == after[level][new[v]] for v in range(first[1]))
    assert not paths_distinguish(first, second, collection=collection, k=4, **options)


def test_sp_depends_on_the_numbering():
    """The paper's closing remark: single shortest paths can tell isomorphic graphs apart."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4)]  # a square with a tail at vertex 0
    new = [2, 1, 0, 3, 4]
    first = edges_to_index(edges), 5
    second = edges_to_index([(new[u], new[v]) for u, v in edges]), 5
    assert paths_distinguish(first, second, collection="sp", k=2)
    assert not paths_distinguish(first, second, collection="sp+", k=2)


@pytest.mark.parametrize("collection", ["sp", "sp+"])
def test_triplet_and_triangle(collection):
    """Proposition 3.4's pair: vertices 0 are told apart with dummy tokens only, the graphs always."""
    pair = [open_triplet(), triangle()]
    for options in OPTIONS:
        middle, corner = (levels[2][0] for levels in annotated_path_sets(pair, collection=collection, k=2, **options))
        assert (middle == corner) == (not options["extend"])
        assert paths_distinguish(*pair, collection=collection, k=2, **options)


def test_triplet_and_triangle_with_all_paths():
    middle, corner = (
        levels[2][0] for levels in annotated_path_sets([open_triplet(), triangle()], collection="ap", k=2)
    )
    assert middle != corner


def test_distances_tell_apart_what_paths_of_length_two_do_not():
    pair = hexagon(), two_triangles()
    assert not paths_distinguish(*pair, collection="ap", k=2, residual=True, extend=True)
    assert paths_distinguish(*pair, collection="ap", k=2, distances=True)
    assert paths_distinguish(*pair, collection="ap", k=3)
    assert paths_distinguish(*pair, collection="sp", k=2)


def test_small_graphs_are_fine():
    graphs = [(edges_to_index([]), n) for n in (0, 1, 2)]
    levels = annotated_path_sets(graphs, collection="ap", k=2, extend=True)
    assert [[len(level) for level in one] for one in levels] == [[0] * 3, [1] * 3, [2] * 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"collection": "paths"}, "collection='paths'"),
        ({"k": 0}, "k=0"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        annotated_path_sets(**{"graphs": [triangle()], "collection": "ap", "k": 2} | arguments)
