"""The options of an extraction, and the table of collections."""

from dataclasses import replace

import pytest

from path_checks import clique
from pathnn import PathOptions, extract_paths
from pathnn.paths.cpu.walks import AP, SP, SP_PLUS
from pathnn.paths.options import COLLECTIONS, DEFAULT_MAX_PATHS, UNLIMITED


def test_the_table_has_the_rules_of_the_compiled_loops():
    assert {name: entry.rule for name, entry in COLLECTIONS.items()} == {"sp": SP, "sp+": SP_PLUS, "ap": AP}


def test_distances_are_resolved_once():
    assert [PathOptions(name, 2).distances for name in COLLECTIONS] == [False, False, True]
    assert PathOptions("ap", 2) == PathOptions("ap", 2, distances=True)
    assert replace(PathOptions("ap", 2, distances=False), k=3) == PathOptions("ap", 3, distances=False)


def test_values_become_plain():
    numpy = pytest.importorskip("numpy")
    options = PathOptions("sp", numpy.int64(3), numpy.bool_(True), 0, None, numpy.int32(4), numpy.int64(9))
    assert [type(value) for value in options.to_dict().values()] == [
        *(str, int, bool, bool, type(None), int, int, bool, type(None))
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"collection": "all"}, "collection='all' is unknown"),
        ({"k": 0}, "k=0 is no path length"),
        ({"k": True}, "k=True is no path length"),
        ({"k": 256}, "k=256 is too large"),
        ({"distances": "no"}, "distances='no'"),
        ({"extend": 2}, "extend=2"),
        ({"max_paths_per_source": 0}, "max_paths_per_source=0"),
        ({"max_paths": -1}, "max_paths=-1"),
        ({"seed": 2**63}, "seed="),
        ({"extend": True, "max_paths_per_source": 2}, "Use one of the two"),
    ],
)
def test_wrong_options_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        PathOptions(**{"collection": "ap", "k": 2, **wrong})


def test_max_paths_does_not_determine_the_tries():
    few, all_ = PathOptions("ap", 2, max_paths=5), PathOptions("ap", 2, max_paths=None)
    assert few.key() == all_.key()
    assert PathOptions(**few.key()).max_paths == DEFAULT_MAX_PATHS
    assert (few.limit, all_.limit) == (5, UNLIMITED)
    assert few.difference(all_) is None


@pytest.mark.parametrize(
    "more", [{}, {"distances": False}, {"extend": True}, {"max_paths_per_source": 1, "seed": 3}, {"max_paths": None}]
)
def test_options_of_a_trie(more):
    found = PathOptions.of_trie(extract_paths(*clique(4), collection="ap", k=2, **more))
    expected = PathOptions("ap", 2, **more)
    assert found.difference(expected) is None
    assert found.difference(replace(expected, k=3)) == "k=2 instead of 3"
