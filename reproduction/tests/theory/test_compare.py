"""The smallest examples, found by sorting, against all pairs."""

from itertools import combinations

import numpy as np
import pytest

from pathnn_reproduction.theory.compare import (
    SCOPES,
    smallest_merged,
    smallest_missing,
    smallest_non_walk,
    smallest_split,
)
from pathnn_reproduction.theory.partitions import PathLevels, path_levels
from pathnn_reproduction.theory.small_graphs import name_multisets, small_graphs

UNIVERSE = small_graphs(4, all_up_to=3, copies=1, seed=2)


def things(scope):
    """Index, graph and kind of what a scope compares."""
    universe = UNIVERSE
    pairs = enumerate(universe.graph.tolist()) if scope.vertices else ((g, g) for g in range(len(universe)))
    kind = universe.orbit if scope.vertices else universe.kind
    return [(i, g, int(kind[i])) for i, g in pairs if universe.connected[g] or not scope.connected]


def names(partition, scope):
    return partition if scope.vertices else name_multisets(UNIVERSE.graph, partition, len(UNIVERSE))


def size_of(scope, first, second):
    graphs = [first] if scope.one_graph else [first, second]
    return int(UNIVERSE.sizes[graphs].sum()), int(UNIVERSE.edges[graphs].sum())


def random_partitions(seed, classes):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, classes, UNIVERSE.num_nodes) for _ in range(2)]


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.name)
@pytest.mark.parametrize(("seed", "classes"), [(0, 2), (1, 5), (2, 30), (3, 500)])
def test_merged_agrees_with_all_pairs(scope, seed, classes):
    fine, coarse = random_partitions(seed, classes), random_partitions(seed + 10, classes)
    found = []
    for height in (1, 2):
        alike, apart = names(fine[height - 1], scope), names(coarse[height - 1], scope)
        for (i, g, _), (j, h, _) in combinations(things(scope), 2):
            if (g == h or not scope.one_graph) and alike[i] == alike[j] and apart[i] != apart[j]:
                found.append((size_of(scope, g, h), height))
    example = smallest_merged(UNIVERSE, fine, coarse, scope)
    assert (None if example is None else (example.size, example.height)) == min(found, default=None)


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.name)
@pytest.mark.parametrize(("seed", "classes"), [(0, 3), (1, 8), (2, 60)])
def test_split_agrees_with_all_pairs(scope, seed, classes):
    """Kinds are told apart when no numbering of one has the name of a numbering of the other."""
    known = random_partitions(seed, classes)
    coarse = [UNIVERSE.sizes[UNIVERSE.graph]] * 2
    found = []
    for height in (1, 2):
        seen, alike = names(known[height - 1], scope), names(coarse[0], scope)
        of_kind = {}
        for i, g, kind in things(scope):
            of_kind.setdefault((g if scope.one_graph else None, kind), set()).add(int(seen[i]))
        for (i, g, a), (j, h, b) in combinations(things(scope), 2):
            if a == b or alike[i] != alike[j] or (scope.one_graph and g != h):
                continue
            key = g if scope.one_graph else None
            if not of_kind[key, a] & of_kind[key, b]:
                found.append((size_of(scope, g, h), height))
    example = smallest_split(UNIVERSE, known, coarse, scope)
    assert (None if example is None else (example.size, example.height)) == min(found, default=None)


def test_lemma_finds_what_is_wrong():
    levels = path_levels(UNIVERSE, "ap", 3)
    assert smallest_non_walk(UNIVERSE, levels) is None
    vertex = int(UNIVERSE.first[-1])
    for wrong in ([vertex, vertex], levels.paths[0][0].tolist()):  # no edge; a path that is there already
        paths = [np.concatenate([levels.paths[0], [wrong]]), *levels.paths[1:]]
        example = smallest_non_walk(UNIVERSE, PathLevels(paths, levels.parent, levels.shown))
        assert example is not None
        assert example.height == 1
        assert example.vertices == (wrong[0] - int(UNIVERSE.first[UNIVERSE.graph[wrong[0]]]),)


def test_missing_paths():
    shortest, every = path_levels(UNIVERSE, "sp+", 3), path_levels(UNIVERSE, "ap", 3)
    assert smallest_missing(UNIVERSE, shortest, every) is None
    example = smallest_missing(UNIVERSE, every, shortest)
    assert (example.size, example.height) == ((3, 3), 2)  # a triangle: the long way round
