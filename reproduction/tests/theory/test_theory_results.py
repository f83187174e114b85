"""Section 3.2: a fast subset is run, and each example in the result file is confirmed by the slow code."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from exact_theory import (
    ColorTable,
    annotated_path_sets,
    distances_from,
    wl_colors,
)
from pathnn.theory.graphs import edges_to_index, neighbors
from pathnn_reproduction.theory.checks import VARIANTS, Check, PathTest, TheorySettings, theory_checks
from pathnn_reproduction.theory.compare import SCOPES, Example
from pathnn_reproduction.theory.table import from_result, theory_table
from slow_trees import path_trees, tree_color

RESULT = json.loads((Path(__file__).resolve().parents[3] / "results" / "theory.json").read_text())
ONE_CONNECTED, TWO, CONNECTED, ALL = (SCOPES[i].name for i in (0, 2, 3, 4))


@pytest.fixture(scope="module")
def subset():
    parts = list(theory_checks(TheorySettings(max_vertices=5, max_height=4, all_numberings=5, copies=2, few_copies=1)))
    assert len(parts) == 1 + len(VARIANTS)
    return {(c.question, c.test, c.scope): c for part in parts for c in part}


@pytest.fixture(scope="module")
def complete():
    return {(c.question, c.test, c.scope): c for c in from_result(RESULT)}


def test_the_subset_asks_all_that_the_result_file_answers(subset, complete):
    assert subset.keys() == complete.keys()
    assert len(complete) == len(RESULT["checks"])
    settings = RESULT["settings"]
    assert (settings["max_vertices"], settings["max_height"], RESULT["graphs"]) == (7, 6, 1252)


def test_what_fails_in_the_subset_fails_in_the_whole(subset, complete):
    """More graphs and heights can only add counterexamples and witnesses; the smallest stays the smallest."""
    for key, check in subset.items():
        if check.question == "stronger":
            continue
        if check.example is not None:
            found = complete[key].example
            assert found is not None
            assert (found.size, found.height) == (check.example.size, check.example.height), key


def test_known_findings(subset):
    lemma = [check for check in subset.values() if check.question in ("in WL-tree", "in next tree")]
    assert len(lemma) == 5
    assert all(check.holds for check in lemma)
    for extend, residual in ((False, False), (False, True), (True, False), (True, True)):
        trees = PathTest("trees", "ap", extend, residual)
        missed = subset["refines WL", trees, TWO].example  # theorem 3.3: a triangle, a path of five
        assert (missed.size, missed.height) == ((8, 7), 3)
        assert sorted(n for n, _ in missed.graphs) == [3, 5]
        assert subset["refines WL", trees, ALL].holds
        assert subset["refines WL", replace(trees, distances=True), TWO].holds
        for collection in ("sp", "sp+"):  # proposition 3.4: an open triplet, a triangle
            missed = subset["refines WL", PathTest("trees", collection, extend, residual), TWO].example
            assert (missed.size, missed.height) == ((6, 5), 2)
        for collection in ("sp", "sp+", "ap"):  # theorem 3.5
            sets = PathTest("sets", collection, extend, residual)
            holds = extend or (residual and collection == "ap")
            assert subset["refines WL", sets, TWO].holds is holds
            assert subset["refines WL", sets, ALL].holds is (extend or residual)
            assert subset["invariant", sets, TWO].holds is (collection != "sp")


def test_findings_with_seven_vertices(complete):
    trees = PathTest("trees", "ap")
    assert complete["refines WL", trees, ONE_CONNECTED].example.size == (7, 9)
    assert complete["refines WL", trees, CONNECTED].holds
    assert complete["refines WL", PathTest("trees", "sp"), CONNECTED].example.size == (12, 16)
    assert complete["refines WL", PathTest("trees", "sp+"), CONNECTED].example.size == (14, 26)
    assert complete["refines WL", PathTest("sets", "sp", residual=True), ALL].example.size == (14, 18)
    for collection in ("sp", "sp+", "ap"):
        assert complete["refines WL", PathTest("sets", collection, extend=True), TWO].holds
        assert complete["stronger", PathTest("sets", collection, extend=True), ALL].holds is (collection != "sp")
    assert complete["stronger", PathTest("sets", "sp+", residual=True), ALL].holds
    assert not complete["stronger", PathTest("sets", "ap"), ALL].holds


def slow_names(test: PathTest, example: Example):
    """What a test, and WL-trees, know about the vertices of an example, by the plain code; trees without dummies."""
    graphs = [(edges_to_index(edges), n) for n, edges in example.graphs]
    height, table = example.height, ColorTable()
    wl = [wl_colors(*graph, height, table=table)[height] for graph in graphs]
    if test.kind == "sets":
        options = {"residual": test.residual, "extend": test.extend, "distances": test.distances}
        levels = annotated_path_sets(graphs, collection=test.collection, k=height, **options)
        return [level[height] for level in levels], wl
    names = []
    for graph in graphs:
        adjacent = neighbors(*graph)
        trees = path_trees(*graph, collection=test.collection, k=height)
        marks = [distances_from(adjacent, v).__getitem__ if test.distances else None for v in range(graph[1])]
        names.append([tree_color(tree, table, mark=mark) for tree, mark in zip(trees, marks, strict=True)])
    return names, wl


def same(names, example: Example) -> bool:
    if example.vertices:
        first, second = example.vertices
        return names[0][first] == names[-1][second]
    return sorted(names[0]) == sorted(names[1])


@pytest.mark.parametrize(
    ("question", "test_same", "wl_same"), [("refines WL", True, False), ("exceeds WL", False, True)]
)
def test_examples_are_confirmed_by_the_plain_code(complete, question, test_same, wl_same):
    checks: list[Check] = [c for c in complete.values() if c.question == question and c.example is not None]
    assert len({c.example for c in checks}) >= 10
    for check in dict.fromkeys(checks):
        names, wl = slow_names(check.test, check.example)
        assert same(names, check.example) is test_same, check
        assert same(wl, check.example) is wl_same, check


def test_isomorphic_examples_are_confirmed_by_the_plain_code(complete):
    import networkx as nx

    checks = [c for c in complete.values() if c.question == "invariant" and not c.holds]
    assert {c.test.collection for c in checks} == {"sp"}
    for check in checks:
        names, _ = slow_names(check.test, check.example)
        assert not same(names, check.example)
        rooted = []
        for i in range(2):
            n, edges = check.example.graphs[min(i, len(check.example.graphs) - 1)]
            graph = nx.empty_graph(n)
            graph.add_edges_from(edges)
            root = check.example.vertices[i] if check.example.vertices else None
            nx.set_node_attributes(graph, {v: v == root for v in graph}, "root")
            rooted.append(graph)
        assert nx.is_isomorphic(*rooted, node_match=lambda a, b: a["root"] == b["root"])


def test_table_numbers_each_example_once(complete):
    table = theory_table(list(complete.values()))
    numbers = [entry[1] for row in table.rows for entry in row.entries if entry is not None and entry[1] is not None]
    assert list(dict.fromkeys(numbers)) == list(range(1, len(table.examples) + 1))
    assert len(set(table.examples)) == len(table.examples)
    refuted = [row for row in table.rows if row.statement == "Theorem 3.5" and "as defined" in row.about]
    assert [entry[0] for entry in refuted[0].entries] == ["no"] * 5


def test_settings_are_checked():
    with pytest.raises(ValueError, match="max_height=0"):
        TheorySettings(max_height=0)
    with pytest.raises(ValueError, match="max_vertices=9"):
        next(theory_checks(TheorySettings(max_vertices=9)))
