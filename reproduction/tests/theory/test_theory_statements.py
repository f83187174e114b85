"""Section 3.2 on all graphs with up to 6 vertices: the table of docs/theory.md."""

from functools import cache

import pytest

from exact_theory import (
    ColorTable,
    annotated_path_sets,
    path_trees_distinguish,
    paths_distinguish,
    wl_colors,
    wl_distinguishes,
)
from pathnn.paths.options import COLLECTIONS
from pathnn.theory import path_tree
from pathnn.theory.examples import triangle
from pathnn.theory.graphs import edges_to_index
from pathnn_reproduction.theory.examples import path_of_five
from slow_trees import path_trees, prune, tree_color
from theory_strategies import atlas

HEIGHT = 5


@cache
def wl_levels():
    table = ColorTable()
    return [wl_colors(*graph, HEIGHT, table=table) for graph in atlas(6)]


def tree_levels(collection):
    table = ColorTable()
    result = []
    for graph in atlas(6):
        trees = path_trees(*graph, collection=collection, k=HEIGHT)
        result.append([tuple(tree_color(prune(t, h), table) for t in trees) for h in range(HEIGHT + 1)])
    return result


def determines(known, wanted) -> bool:
    """Whether equal `known` values always come with equal `wanted` values."""
    return len(set(known)) == len(set(zip(known, wanted, strict=True)))


def refines_wl(levels) -> tuple[bool, bool]:
    """Whether vertices, and whether graphs, that 1-WL tells apart are told apart at every height."""
    vertices = graphs = True
    for height in range(1, HEIGHT + 1):
        fine, coarse = [one[height] for one in levels], [one[height] for one in wl_levels()]
        vertices &= determines([x for one in fine for x in one], [x for one in coarse for x in one])
        graphs &= determines([tuple(sorted(x)) for x in fine], [tuple(sorted(x)) for x in coarse])
    return vertices, graphs


@pytest.mark.parametrize(
    ("collection", "expected"), [("sp", (False, False)), ("sp+", (False, True)), ("ap", (False, True))]
)
def test_trees(collection, expected):
    assert refines_wl(tree_levels(collection)) == expected


@pytest.mark.parametrize(
    ("collection", "options", "expected"),
    [
        *((collection, {}, (False, False)) for collection in COLLECTIONS),
        ("sp", {"residual": True}, (False, True)),
        ("sp+", {"residual": True}, (False, True)),
        ("ap", {"residual": True}, (True, True)),
        *((collection, {"extend": True}, (True, True)) for collection in COLLECTIONS),
    ],
)
def test_annotated_sets(collection, options, expected):
    assert refines_wl(annotated_path_sets(atlas(6), collection=collection, k=HEIGHT, **options)) == expected


def test_the_smallest_pair_against_theorem_3_3():
    table = ColorTable()
    corner, middle = (path_tree(*g, 0, collection="ap", k=6) for g in (triangle(), path_of_five()))
    assert corner.form() == middle.form()
    corner, middle = (wl_colors(*g, 3, table=table) for g in (triangle(), path_of_five()))
    assert corner[2][0] == middle[2][0]
    assert corner[3][0] != middle[3][0]


def graph_of(edges):
    """A graph of seven vertices from pairs of digits."""
    return edges_to_index([(int(u), int(v)) for u, v in edges.split()]), 7


def test_sp_plus_trees_of_whole_graphs_fail_with_seven_vertices():
    first = graph_of("02 03 06 12 13 14 15 16 23 25 34 45 46")
    second = graph_of("04 05 06 13 15 16 23 24 25 34 36 46 56")
    assert wl_distinguishes(first, second)
    assert not path_trees_distinguish(first, second, collection="sp+", k=6)


def test_sp_with_residual_fails_on_whole_graphs_with_seven_vertices():
    first = graph_of("01 05 06 12 15 23 24 34 45")
    second = graph_of("01 05 06 12 14 23 25 34 45")
    assert wl_distinguishes(first, second)
    assert not paths_distinguish(first, second, collection="sp", k=6, residual=True)
    assert paths_distinguish(first, second, collection="sp", k=6, residual=True, extend=True)
