"""Input that is no simple undirected graph, and arguments that make no sense."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from path_checks import clique, line
from pathnn.paths import PathTrie, count_paths, extract_paths, list_paths
from pathnn.paths.csr import check_edge_index

EDGES, N = clique(3)
FUNCTIONS = [extract_paths, count_paths, list_paths]


@pytest.fixture(params=FUNCTIONS, ids=lambda function: function.__name__)
def function(request):
    return request.param


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "came", "expected"),
    [
        (torch.tensor([[0, 1], [1, 3]]), 3, "vertex 3", "ids from 0 to 2"),
        (torch.tensor([[0, -1], [-1, 0]]), 3, "vertex -1", "ids from 0 to 2"),
        (EDGES, 0, "num_nodes=0", "no edges"),
        (EDGES, 2, "vertex 2", "ids from 0 to 1"),
        (EDGES.float(), N, "torch.float32", "torch.int64"),
        (EDGES.bool(), N, "torch.bool", "torch.int64"),
        (EDGES.t(), N, r"\[6, 2\]", r"\[2, num_edges\]"),
        (EDGES[0], N, r"\[6\]", r"\[2, num_edges\]"),
        (EDGES[None], N, r"\[1, 2, 6\]", r"\[2, num_edges\]"),
        (EDGES.tolist(), N, "list", "tensor"),
        (EDGES.numpy(), N, "ndarray", "tensor"),
        (None, N, "NoneType", "tensor"),
        (Data(edge_index=EDGES), N, "Data", "tensor"),
        (HeteroData(), N, "HeteroData", "to_homogeneous"),
        (EDGES, -1, "num_nodes=-1", "integer of at least 0"),
        (EDGES, 3.0, "num_nodes=3.0", "integer of at least 0"),
        (EDGES, None, "num_nodes=None", "integer of at least 0"),
        (EDGES, True, "num_nodes=True", "integer of at least 0"),
    ],
)
def test_graphs(function, edge_index, num_nodes, came, expected):
    with pytest.raises(ValueError, match=f"(?s){came}.*{expected}"):
        function(edge_index, num_nodes, collection="ap", k=2)


def test_more_vertices_than_ids_have_bits():
    with pytest.raises(ValueError, match=r"2,147,483,648 vertices.*fewer than 2\^31"):
        check_edge_index(EDGES, 2**31)
    check_edge_index(EDGES, 2**31 - 1)


def test_a_missing_reverse_edge_names_the_way_out(function):
    with pytest.raises(ValueError, match=r"2 -> 1 but not 1 -> 2.*expected an undirected graph.*to_undirected"):
        function(torch.tensor([[0, 1, 2], [1, 0, 1]]), 3, collection="sp", k=1)


def test_the_way_out_works(function):
    from torch_geometric.utils import to_undirected

    function(to_undirected(torch.tensor([[0, 1, 2], [1, 0, 1]])), 3, collection="sp", k=1)


@pytest.mark.parametrize("k", [0, -1, 2.0, 1.5, "2", None, True, torch.tensor(2)])
def test_k(function, k):
    with pytest.raises(ValueError, match=r"k=.*expected an integer of at least 1"):
        function(EDGES, N, collection="ap", k=k)


def test_k_beyond_a_byte(function):
    with pytest.raises(ValueError, match="k=256 is too large: expected at most 255"):
        function(EDGES, N, collection="ap", k=256)


@pytest.mark.parametrize("collection", ["AP", "sp ", "all", "", None, 3, ["ap"]])
def test_collection(function, collection):
    with pytest.raises(ValueError, match=r"collection=.*expected one of 'sp', 'sp\+'(,| or) 'ap'"):
        function(EDGES, N, collection=collection, k=2)


@pytest.mark.parametrize("name", ["max_paths", "max_paths_per_source"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "many", True])
def test_limits(name, value):
    with pytest.raises(ValueError, match=f"{name}=.*expected an integer of at least 1"):
        extract_paths(EDGES, N, collection="ap", k=2, **{name: value})


@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(2, dtype=torch.int64),
        torch.zeros(3),
        torch.zeros(3, 1, dtype=torch.int64),
        torch.tensor([0, -1, 0]),
        torch.tensor([True, False, True]),
        [0, 0, 0],
    ],
    ids=["short", "float", "column", "negative", "bool", "list"],
)
@pytest.mark.parametrize("options", [{}, {"max_paths_per_source": 1}], ids=["all", "sample"])
def test_batch(batch, options):
    with pytest.raises(ValueError, match=r"batch.*expected"):
        extract_paths(EDGES, N, collection="ap", k=2, batch=batch, **options)
    if not options:
        with pytest.raises(ValueError, match=r"batch.*expected"):
            count_paths(EDGES, N, collection="ap", k=2, batch=batch)


def paths(*rows, dtype=torch.int64):
    return [torch.tensor(rows, dtype=dtype)]


@pytest.mark.parametrize(
    ("given", "came", "expected"),
    [
        (paths([0, 1, 2]), r"\[1, 3\]", r"\[n, 2\]"),
        ([torch.tensor([0, 1])], r"\[2\]", r"\[n, 2\]"),
        (paths([0, 1], dtype=torch.float32), "float32", "int64"),
        (paths([0, 3]), "outside 0..2", "dummy"),
        (paths([0, -2]), "outside 0..2", "dummy"),
        (paths([1, 1]), "twice", "simple"),
        (paths([0, 1], [0, 1]), "more than once", "once"),
        (paths([-1, 1]), "before a vertex", "end"),
        ([[[0, 1]]], "list", "tensor"),
        ([np.array([[0, 1]])], "ndarray", "tensor"),
        ([], "paths|k=0", "expected"),
    ],
)
def test_explicit_paths(given, came, expected):
    with pytest.raises(ValueError, match=f"(?s)({came}).*{expected}"):
        PathTrie.from_paths(given, EDGES, N, collection="ap")


def test_explicit_paths_with_dummies_that_are_said_not_to_be_extended():
    with pytest.raises(ValueError, match="extended=False, but there are dummy"):
        PathTrie.from_paths(paths([0, -1]), EDGES, N, collection="sp", extended=False)


def test_an_explicit_path_that_leaves_the_graph():
    with pytest.raises(ValueError, match=r"length 2.*no edge"):
        PathTrie.from_paths([torch.tensor([[0, 1]]), torch.tensor([[0, 2, 1]])], *line(3), collection="ap")


def test_an_explicit_path_that_comes_twice_and_ends_early():
    rows = torch.tensor([[0, 1, -1], [0, 1, -1]])
    with pytest.raises(ValueError, match="more than once"):
        PathTrie.from_paths([torch.tensor([[0, 1]]), rows], *line(3), collection="ap")


def test_input_is_left_alone(function):
    edge_index = torch.cat([EDGES, torch.tensor([[1, 0], [1, 1]])], dim=1)
    before = edge_index.clone()
    function(edge_index, N, collection="ap", k=2)
    assert torch.equal(edge_index, before)
