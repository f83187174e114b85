import networkx as nx
import pytest
import torch
from hypothesis import given, strategies as st

from exact_theory import (
    ColorTable,
    distances_from,
    wl_colors,
    wl_distinguishes,
)
from path_reference import to_graph
from pathnn.theory.examples import hexagon, two_triangles
from pathnn.theory.graphs import edges_to_index, neighbors
from slow_trees import tree_color, wl_trees
from theory_strategies import atlas, graphs, relabelled, relaxed


def same_partition(first, second) -> bool:
    return len(set(first)) == len(set(second)) == len(set(zip(first, second, strict=True)))


def naive_colors(graph, rounds):
    """Colours as nested tuples, with nothing interned."""
    colors = dict.fromkeys(range(len(graph)), ())
    for _ in range(rounds):
        colors = {v: (colors[v], tuple(sorted(colors[u] for u in graph[v]))) for v in graph}
    return [colors[v] for v in range(len(graph))]


@given(graphs(), st.integers(0, 4))
@relaxed
def test_colors_agree_with_nested_tuples(graph, rounds):
    assert same_partition(wl_colors(*graph, rounds)[rounds], naive_colors(to_graph(*graph), rounds))


@given(graphs())
@relaxed
def test_colors_agree_with_networkx(graph):
    reference = to_graph(*graph)
    nx.set_node_attributes(reference, "x", "label")
    hashes = nx.weisfeiler_lehman_subgraph_hashes(reference, node_attr="label", iterations=4)
    colors = wl_colors(*graph, 4)
    for rounds in range(1, 5):
        assert same_partition(colors[rounds], [hashes[v][rounds - 1] for v in range(graph[1])])


def test_colors_are_shapes_of_wl_trees():
    table, shapes = ColorTable(), ColorTable()
    for height in range(4):
        colors, trees = [], []
        for graph in atlas(5):
            colors += wl_colors(*graph, height, table=table)[height]
            trees += [tree_color(tree, shapes) for tree in wl_trees(*graph, height)]
        assert same_partition(colors, trees)


@given(relabelled())
@relaxed
def test_colors_follow_the_vertices(pair):
    first, second, new = pair
    table = ColorTable()
    before, after = (wl_colors(*graph, table=table)[-1] for graph in (first, second))
    assert all(before[v] == after[new[v]] for v in range(first[1]))
    assert not wl_distinguishes(first, second)


@given(graphs())
@relaxed
def test_rounds_none_is_stable(graph):
    assert same_partition(wl_colors(*graph)[-1], wl_colors(*graph, rounds=graph[1] + 3)[-1])


def test_distinguishes():
    assert not wl_distinguishes(hexagon(), two_triangles())
    path, star = (edges_to_index([(0, 1), (1, 2), (2, 3)]), 4), (edges_to_index([(0, 1), (0, 2), (0, 3)]), 4)
    assert not wl_distinguishes(path, star, rounds=0)
    assert wl_distinguishes(path, star, rounds=1)
    assert wl_distinguishes(hexagon(), path)


@given(graphs())
@relaxed
def test_neighbors_and_distances(graph):
    reference = to_graph(*graph)
    adjacent = neighbors(*graph)
    assert adjacent == [tuple(sorted(reference[v])) for v in range(graph[1])]
    for source, expected in nx.all_pairs_shortest_path_length(reference):
        assert distances_from(adjacent, source) == [expected.get(v) for v in range(graph[1])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edge_index": torch.tensor([[0], [1]])}, "to_undirected"),
        ({"edge_index": torch.tensor([[0, 5], [5, 0]])}, "num_nodes=3"),
        ({"rounds": -1}, "rounds=-1"),
        ({"rounds": 1.5}, "rounds=1.5"),
    ],
)
def test_colors_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        wl_colors(**{"edge_index": edges_to_index([(0, 1)]), "num_nodes": 3} | arguments)
