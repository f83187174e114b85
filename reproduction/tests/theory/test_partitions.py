"""The fast partitions against the slow, plain objects that they stand for."""

from itertools import product

import pytest

from exact_theory import (
    ColorTable,
    annotated_path_sets,
    distances_from,
    wl_colors,
)
from pathnn.paths.options import COLLECTIONS
from pathnn.theory.graphs import neighbors
from pathnn_reproduction.theory.partitions import annotated_partitions, path_levels, tree_partitions, wl_partitions
from pathnn_reproduction.theory.small_graphs import small_graphs
from slow_trees import member, path_trees, prune, tree_color, wl_trees

HEIGHT = 4
UNIVERSES = {"atlas": small_graphs(5), "numbered": small_graphs(4, all_up_to=3, copies=2)}


def same_partition(first, second) -> bool:
    return len(set(first)) == len(set(second)) == len(set(zip(first, second, strict=True)))


def members(universe):
    return [member(universe, graph) for graph in range(len(universe))]


@pytest.mark.parametrize("name", UNIVERSES)
def test_wl(name):
    universe, table, shapes = UNIVERSES[name], ColorTable(), ColorTable()
    fast = wl_partitions(universe, HEIGHT)
    slow = [wl_colors(*graph, HEIGHT, table=table) for graph in members(universe)]
    for height in range(1, HEIGHT + 1):
        assert same_partition(fast[height - 1].tolist(), [color for levels in slow for color in levels[height]])
    trees = [tree_color(tree, shapes) for graph in members(universe) for tree in wl_trees(*graph, 3)]
    assert same_partition(fast[2].tolist(), trees)


@pytest.mark.parametrize(("name", "collection", "distances"), list(product(UNIVERSES, COLLECTIONS, (False, True))))
def test_trees(name, collection, distances):
    universe, table = UNIVERSES[name], ColorTable()
    fast = tree_partitions(universe, path_levels(universe, collection, HEIGHT, distances=distances))
    slow = [[] for _ in range(HEIGHT)]
    for graph in members(universe):
        adjacent = neighbors(*graph)
        for tree in path_trees(*graph, collection=collection, k=HEIGHT):
            from_root = distances_from(adjacent, tree.vertex)
            mark = from_root.__getitem__ if distances else None
            for height in range(1, HEIGHT + 1):
                slow[height - 1].append(tree_color(prune(tree, height), table, mark=mark))
    assert all(same_partition(a.tolist(), b) for a, b in zip(fast, slow, strict=True))


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_neither_dummies_nor_a_residual_term_change_trees(collection):
    universe = UNIVERSES["atlas"]
    plain = tree_partitions(universe, path_levels(universe, collection, HEIGHT))
    for extend, residual in product((False, True), repeat=2):
        levels = path_levels(universe, collection, HEIGHT, extend=extend)
        variant = tree_partitions(universe, levels, residual=residual)
        assert all(same_partition(a.tolist(), b.tolist()) for a, b in zip(plain, variant, strict=True))


@pytest.mark.parametrize(("name", "collection", "extend"), list(product(UNIVERSES, COLLECTIONS, (False, True))))
def test_annotated_sets(name, collection, extend):
    universe = UNIVERSES[name]
    for residual, distances in product((False, True), repeat=2):
        levels = path_levels(universe, collection, HEIGHT, extend=extend, distances=distances)
        fast = annotated_partitions(universe, levels, residual=residual)
        options = {"extend": extend, "distances": distances, "residual": residual}
        slow = annotated_path_sets(members(universe), collection=collection, k=HEIGHT, **options)
        for height in range(1, HEIGHT + 1):
            assert same_partition(fast[height - 1].tolist(), [x for levels in slow for x in levels[height]])


def test_a_path_without_its_beginning_has_no_tree():
    from pathnn_reproduction.theory.partitions import _parents

    levels = path_levels(UNIVERSES["atlas"], "ap", 3)
    shorter = [levels.paths[0][:-1], *levels.paths[1:]]
    with pytest.raises(ValueError, match="beginning"):
        _parents(shorter, UNIVERSES["atlas"].num_nodes)
