"""The fast exact test against the slow one, and what must hold of any test of isomorphism."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

from exact_theory import annotated_path_sets
from pathnn.paths import PathExplosionError
from pathnn.paths.options import COLLECTIONS
from pathnn.theory.examples import hexagon, triangle
from pathnn.theory.fingerprints import classes, hashed_annotations
from pathnn.theory.graphs import edges_to_index
from theory_strategies import atlas, from_networkx, graphs, relabelled, relaxed

OPTIONS = [
    {"residual": residual, "extend": extend, "distances": distances}
    for residual, extend, distances in product([False, True], repeat=3)
]


def path_fingerprints(graphs, **options):
    """The multiset of annotations of each graph at each level, `[graphs, k + 1, 2]`."""
    return np.stack([one.fingerprints() for one in hashed_annotations(graphs, **options)])


def same_partition(first, second) -> bool:
    return len(set(first)) == len(set(second)) == len(set(zip(first, second, strict=True)))


def check_levels(chosen, collection, k, **options):
    slow = annotated_path_sets(chosen, collection=collection, k=k, **options)
    fast = hashed_annotations(chosen, collection=collection, k=k, **options)
    prints = path_fingerprints(chosen, collection=collection, k=k, **options)
    for level in range(k + 1):
        exact = [x for levels in slow for x in levels[level]]
        hashed = [tuple(column) for one in fast for column in one.levels[level].T.tolist()]
        assert same_partition(exact, hashed)
        multisets = [tuple(sorted(levels[level])) for levels in slow]
        assert same_partition(multisets, [tuple(row) for row in prints[:, level].tolist()])


@pytest.mark.parametrize("collection", COLLECTIONS)
@given(chosen=st.lists(graphs(7), min_size=1, max_size=3), options=st.sampled_from(OPTIONS), k=st.integers(1, 6))
@relaxed
def test_agrees_with_annotated_path_sets(collection, chosen, options, k):
    check_levels(chosen, collection, k, **options)


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("extend", [False, True])
def test_agrees_on_all_graphs_to_six_vertices(collection, extend):
    check_levels(atlas(6), collection, 4, residual=True, extend=extend, distances=collection == "ap")


@pytest.mark.parametrize("collection", ["sp+", "ap"])
@given(pair=relabelled(), options=st.sampled_from(OPTIONS))
@relaxed
def test_isomorphic_graphs_have_equal_fingerprints(collection, pair, options):
    first, second, new = pair
    before, after = hashed_annotations([first, second], collection=collection, k=5, **options)
    assert (before.levels == after.levels[:, :, new]).all()
    prints = path_fingerprints([first, second], collection=collection, k=5, **options)
    assert (prints[0] == prints[1]).all()


def test_relabelled_graphs_of_real_size():
    graph = nx.random_regular_graph(5, 40, seed=1)
    copies = [from_networkx(nx.relabel_nodes(graph, dict(zip(graph, order, strict=True)))) for order in orders(40, 3)]
    for collection in ("sp+", "ap"):
        prints = path_fingerprints(copies, collection=collection, k=5)
        assert (prints == prints[:1]).all()


def orders(n, count):
    generator = np.random.default_rng(0)
    return [generator.permutation(n).tolist() for _ in range(count)]


def test_long_shortest_paths_cost_no_enumeration():
    """Two to the power of 40 shortest paths from end to end of a chain of squares."""
    edges = []
    for i in range(0, 120, 3):
        edges += [(i, i + 1), (i, i + 2), (i + 1, i + 3), (i + 2, i + 3)]
    chain = edges_to_index(edges), 121
    longer = edges_to_index([*edges, (119, 121)]), 122
    prints = path_fingerprints([chain, longer], collection="sp+", k=80)
    assert (prints[0, 80] != prints[1, 80]).any()


def test_fingerprints_know_the_number_of_vertices():
    """Single vertices have no paths; two of them are not one."""
    prints = path_fingerprints([(edges_to_index([]), n) for n in (0, 1, 2)], collection="ap", k=2)
    assert len({tuple(row) for row in prints[:, 2].tolist()}) == 3


def complete(n):
    return edges_to_index([(u, v) for u in range(n) for v in range(u)]), n


def test_levels_without_paths_cost_nothing():
    graphs = [complete(8), complete(7)]
    steps = 1_000_000  # enough for the paths of up to 7 edges; 192 levels more of such walks would take 13 million
    longest = path_fingerprints(graphs, collection="ap", k=8, max_steps=steps)
    many = path_fingerprints(graphs, collection="ap", k=200, max_steps=steps)
    assert (many[:, :9] == longest).all()
    assert len({tuple(row) for row in many[0].tolist()}) == 201  # levels differ in their number, not in what is known


def test_walks_that_end_early_are_counted():
    with pytest.raises(PathExplosionError, match="max_steps"):
        path_fingerprints([complete(8)], collection="ap", k=100, extend=True, max_steps=1_000_000)


def test_steps_are_limited():
    with pytest.raises(PathExplosionError, match=r"graph 1 takes more than max_steps=1,000 steps at k=6"):
        path_fingerprints([hexagon(), complete(12)], collection="ap", k=6, max_steps=1000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"collection": "paths"}, "collection='paths'"),
        ({"k": 0}, "k=0"),
    ],
)
def test_hashed_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        path_fingerprints(**{"graphs": [triangle()], "collection": "ap", "k": 2} | arguments)


def test_classes_of_nothing():
    assert classes(np.zeros((0, 2), np.uint64)).size == 0
