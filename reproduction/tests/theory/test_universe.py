from itertools import permutations

import networkx as nx
import numpy as np
import pytest

from path_reference import to_graph
from pathnn_reproduction.theory.small_graphs import LARGEST, distance_table, small_graphs
from slow_trees import member


def test_each_labelled_graph_once():
    universe = small_graphs(5, all_up_to=5)
    assert np.bincount(universe.sizes).tolist() == [0] + [2 ** (n * (n - 1) // 2) for n in range(1, 6)]
    labelled = {(int(universe.sizes[g]), tuple(universe.edge_list(g))) for g in range(len(universe))}
    assert len(labelled) == len(universe)


def test_the_seed_determines_the_copies():
    a, b, c = (small_graphs(4, all_up_to=2, copies=3, seed=seed) for seed in (1, 1, 2))
    assert a.edge_index.tolist() == b.edge_index.tolist()
    assert a.edge_index.tolist() != c.edge_index.tolist()
    assert np.array_equal(a.sizes, c.sizes)


def test_the_whole_atlas():
    universe = small_graphs()
    assert len(universe) == 1252
    assert np.bincount(universe.sizes).tolist() == [0, 1, 2, 4, 11, 34, 156, 1044]
    assert np.bincount(universe.sizes[universe.connected]).tolist() == [0, 1, 1, 2, 6, 21, 112, 853]


def test_kinds_and_orbits_are_isomorphism():
    """Two vertices have one orbit exactly when some permutation takes graph to graph and vertex to vertex."""
    universe = small_graphs(4, all_up_to=3, copies=2, seed=1)
    keys = {}
    for graph in range(len(universe)):
        n, edges = int(universe.sizes[graph]), universe.edge_list(graph)
        for v in range(n):
            forms = (
                tuple(sorted((min(new[a], new[b]), max(new[a], new[b])) for a, b in edges))
                for new in permutations(range(n))
                if new[v] == 0
            )
            keys[int(universe.first[graph]) + v] = n, min(forms)
    orbits = universe.orbit.tolist()
    assert len(set(orbits)) == len(set(keys.values())) == len(set(zip(orbits, keys.values(), strict=True)))


def test_copies_are_isomorphic_and_the_first_is_the_atlas():
    universe, atlas = small_graphs(5, copies=2, seed=3), small_graphs(5)
    for kind in range(len(atlas)):
        copies = np.flatnonzero(universe.kind == kind)
        assert universe.edge_list(int(copies[0])) == atlas.edge_list(kind)
        assert len(copies) == 3
        first, *others = (to_graph(*member(universe, int(g))) for g in copies)
        assert all(nx.is_isomorphic(first, other) for other in others)
        assert bool(atlas.connected[kind]) == nx.is_connected(first)


def test_distances():
    universe = small_graphs(5)
    table = distance_table(universe)
    for graph in range(len(universe)):
        reference = to_graph(*member(universe, graph))
        for source, found in nx.all_pairs_shortest_path_length(reference):
            row = table[int(universe.first[graph]) + source].tolist()
            assert row == [found.get(v, LARGEST) for v in range(LARGEST)]


@pytest.mark.parametrize("size", [0, 8])
def test_refuses(size):
    with pytest.raises(ValueError, match=f"max_vertices={size}: expected 1 to 7"):
        small_graphs(size)
