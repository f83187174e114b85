"""Fast 1-WL and 3-WL against colours that never collide."""

import networkx as nx
from hypothesis import given, strategies as st

from exact_theory import ColorTable, wl_colors, wl_distinguishes
from pathnn.theory.examples import hexagon, two_triangles
from pathnn.theory.fingerprints import folklore_fingerprints, wl_fingerprints
from pathnn.theory.graphs import edges_to_index, neighbors
from theory_strategies import atlas, from_networkx, graphs, relabelled, relaxed


def slow_folklore(graph, rounds, table):
    """2-FWL by its definition: the multiset of colours of all pairs after so many rounds."""
    edge_index, n = graph
    adjacent = neighbors(edge_index, n)
    colors = {
        (u, v): table.color("same" if u == v else "edge" if v in adjacent[u] else "none")
        for u in range(n)
        for v in range(n)
    }
    for _ in range(rounds):
        colors = {
            (u, v): table.color((color, tuple(sorted((colors[u, w], colors[w, v]) for w in range(n)))))
            for (u, v), color in colors.items()
        }
    return tuple(sorted(colors.values()))


def same_partition(first, second) -> bool:
    return len(set(first)) == len(set(second)) == len(set(zip(first, second, strict=True)))


def rows(prints):
    return [tuple(row) for row in prints.tolist()]


@given(chosen=st.lists(graphs(6), min_size=2, max_size=4))
@relaxed
def test_folklore_agrees_with_its_definition(chosen):
    table = ColorTable()
    rounds = max(n for _, n in chosen) + 2
    assert same_partition([slow_folklore(g, rounds, table) for g in chosen], rows(folklore_fingerprints(chosen)))


@given(first=graphs(7), second=graphs(7))
@relaxed
def test_wl_agrees_with_its_definition(first, second):
    prints = rows(wl_fingerprints([first, second]))
    assert (prints[0] != prints[1]) == wl_distinguishes(first, second)


def test_all_graphs_to_seven_vertices():
    """1-WL's classes agree with colours that never collide; 3-WL tells all these graphs apart."""
    chosen = atlas(7)
    table = ColorTable()
    exact = [tuple(sorted(wl_colors(*graph, 7, table=table)[-1])) for graph in chosen]
    assert same_partition(exact, rows(wl_fingerprints(chosen)))
    assert len(set(exact)) < len(chosen)
    assert len(set(rows(folklore_fingerprints(chosen)))) == len(chosen)


@given(pair=relabelled())
@relaxed
def test_isomorphic_graphs_are_equal(pair):
    for prints in (wl_fingerprints(pair[:2]), folklore_fingerprints(pair[:2])):
        assert (prints[0] == prints[1]).all()


def test_three_wl_does_not_tell_strongly_regular_graphs_apart():
    rook = from_networkx(nx.line_graph(nx.complete_bipartite_graph(4, 4)))
    steps = {(0, 1), (1, 0), (1, 1), (0, 3), (3, 0), (3, 3)}
    shrikhande = (
        edges_to_index(
            [
                (4 * a + b, 4 * c + d)
                for a in range(4)
                for b in range(4)
                for c in range(4)
                for d in range(4)
                if ((c - a) % 4, (d - b) % 4) in steps and 4 * a + b < 4 * c + d
            ]
        ),
        16,
    )
    for prints in (wl_fingerprints([rook, shrikhande]), folklore_fingerprints([rook, shrikhande])):
        assert (prints[0] == prints[1]).all()
    prints = folklore_fingerprints([hexagon(), two_triangles()])
    assert (prints[0] != prints[1]).any()


def test_graphs_without_vertices():
    empty = edges_to_index([]), 0
    assert wl_fingerprints([]).shape == folklore_fingerprints([]).shape == (0, 2)
    assert (wl_fingerprints([empty]) != wl_fingerprints([(edges_to_index([]), 1)])).any()
