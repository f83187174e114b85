"""`pathnn paths`: right numbers, exact JSON keys, pictures, and sentences for everything that cannot be read."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from path_reference import reference_paths
from pathnn.paths.options import COLLECTIONS

KEYS = ["dataset", "collection", "k", "graphs", "mean_paths", "total_paths", "entries", "bytes", "seconds"]

Run = Callable[..., Any]


def write_g6(path: Path, graphs: list[nx.Graph]) -> Path:
    path.write_bytes(b"".join(nx.to_graph6_bytes(graph, header=False) for graph in graphs))
    return path


def write_csv(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("smiles", "y"), *rows])
    return path


def edges_of(graph: nx.Graph) -> torch.Tensor:
    pairs = [pair for u, v in graph.edges for pair in ((u, v), (v, u))]
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seeds=st.lists(st.integers(0, 10**6), min_size=1, max_size=4),
    k=st.integers(1, 4),
    which=st.sampled_from(tuple(COLLECTIONS)),
)
def test_json_equals_the_reference(cli: Run, tmp_path: Path, seeds: list[int], k: int, which: Any) -> None:
    graphs = [nx.gnp_random_graph(2 + seed % 6, 0.5, seed=seed) for seed in seeds]
    path = write_g6(tmp_path / "graphs.g6", graphs)
    result = cli("paths", path, "--collection", which, "--k", k, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert list(found) == KEYS
    expected = [0] * k
    for graph in graphs:
        for i, paths in enumerate(reference_paths(edges_of(graph), len(graph), collection=which, k=k)):
            expected[i] += len(paths)
    assert found["mean_paths"] == {str(i + 1): n / len(graphs) for i, n in enumerate(expected)}
    assert found["total_paths"] == sum(expected)
    assert (found["collection"], found["k"], found["graphs"]) == (which, k, len(graphs))
    assert found["dataset"] == "graphs.g6"
    assert result.stderr == ""


def test_the_table_says_the_same(cli: Run, tmp_path: Path) -> None:
    path = write_g6(tmp_path / "ring.g6", [nx.cycle_graph(6)])
    result = cli("paths", path, "-c", "AP", "-k", 2)
    assert result.exit_code == 0
    assert "1 graph, AP, k = 2" in result.stdout
    assert "24 paths" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_draw_writes_a_picture(cli: Run, tmp_path: Path, suffix: str) -> None:
    path = write_g6(tmp_path / "g.g6", [nx.path_graph(3), nx.petersen_graph()])
    out = tmp_path / f"out.{suffix}"
    result = cli("paths", path, "--draw", out, "--graph", 1, "--source", 9, "--k", 3, "--json")
    assert result.exit_code == 0, result.stderr
    assert out.stat().st_size > 1000
    assert list(json.loads(result.stdout)) == KEYS


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--graph", 2), "expected 0 to 1"),
        (("--graph", 0, "--source", 3), "expected an integer from 0 to 2"),
        (("--graph", 1, "--k", 4), "nodes, too many to draw"),
    ],
)
def test_what_cannot_be_drawn(cli: Run, tmp_path: Path, options: tuple[Any, ...], says: str) -> None:
    path = write_g6(tmp_path / "g.g6", [nx.path_graph(3), nx.complete_graph(9)])
    result = cli("paths", path, "--draw", tmp_path / "out.svg", *options)
    assert_fails(result, says)
    assert not (tmp_path / "out.svg").exists()


def test_a_picture_needs_a_known_format_and_a_folder(cli: Run, tmp_path: Path) -> None:
    path = write_g6(tmp_path / "g.g6", [nx.path_graph(3)])
    assert_fails(cli("paths", path, "--draw", tmp_path / "out.exe"), ".svg, .pdf, .png")
    assert_fails(cli("paths", path, "--draw", tmp_path / "no" / "out.svg"), "the folder does not exist")


def test_empty_and_edgeless_graphs_have_no_paths(cli: Run, tmp_path: Path) -> None:
    path = write_g6(tmp_path / "g.g6", [nx.empty_graph(0), nx.empty_graph(4)])
    for which in COLLECTIONS:
        result = cli("paths", path, "--collection", which, "--k", 3, "--json")
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        assert (found["graphs"], found["total_paths"], found["mean_paths"]["3"]) == (2, 0, 0.0)


def test_a_large_k_on_a_small_graph_is_fine(cli: Run, tmp_path: Path) -> None:
    path = write_g6(tmp_path / "g.g6", [nx.path_graph(4)])
    result = cli("paths", path, "--k", 255, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["total_paths"] == 12


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--k", 0), "k=0 "),
        (("--k", -1), "k=-1 "),
        (("--k", 256), "255"),
        (("--k", 10**30), "255"),
        (("--k", "two"), "--k"),
        (("--collection", "paths"), "'sp', 'sp+', 'ap'"),
        (("--graph", -1), "--graph"),
        (("--max-paths", 0), "max_paths=0"),
    ],
)
def test_wrong_usage(cli: Run, options: tuple[Any, ...], says: str) -> None:
    result = cli("paths", "atlas", *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    words = " ".join(result.stderr.replace("│", " ").split())
    assert says in words
    assert "Traceback" not in words


def assert_fails(result: Any, says: str) -> None:
    """Exit 1, nothing on standard output, one line on standard error that says what is expected."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
    assert "Traceback" not in result.stderr


FILES: dict[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "empty.csv"),
    "header.csv": (b"smiles,y\n", "header.csv"),
    "columns.csv": (b"a,b\n1,2\n", "SMILES"),
    "bad.csv": (b"smiles,y\nCCO,1\nnonsense,2\n", "row 2"),
    "binary.csv": (bytes(range(256)), "binary.csv"),
    "empty.g6": (b"", "empty.g6"),
    "bad.g6": (b"C~\n\x01\x02\n", "bad.g6"),
    "truncated.csv.gz": (b"\x1f\x8b\x08\x00", "truncated.csv.gz"),
    "no.zip": (b"PK nothing", "no.zip"),
    "what.xyz": (b"1", ".g6"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read(cli: Run, tmp_path: Path, name: str) -> None:
    content, says = FILES[name]
    if name.endswith("bad.csv"):
        pytest.importorskip("rdkit")
    (tmp_path / name).write_bytes(content)
    for flags in ((), ("--json",)):
        assert_fails(cli("paths", tmp_path / name, "--k", 2, *flags), says)


def test_data_that_are_not_there(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))  # where no other test has built anything
    assert_fails(cli("paths", "zink"), "did you mean zinc")
    assert_fails(cli("paths", tmp_path / "missing.csv"), "missing.csv")
    assert_fails(cli("paths", "dd"), "PATHNN_MIRROR")
    (tmp_path / "folder").mkdir()
    assert_fails(cli("paths", tmp_path / "folder"), "folder")


def test_an_explosion_is_refused(cli: Run, tmp_path: Path) -> None:
    path = write_g6(tmp_path / "g.g6", [nx.complete_graph(12)])
    for k in (5, 11, 12, 255):
        assert_fails(cli("paths", path, "--k", k, "--max-paths", 1000), "Lower k")
        assert_fails(cli("paths", path, "--k", k, "--draw", tmp_path / "out.svg"), "Lower k")
    sparse = write_g6(tmp_path / "s.g6", [nx.disjoint_union(nx.path_graph(30), nx.complete_graph(14))])
    assert_fails(cli("paths", sparse, "--k", 100, "--max-paths", 10**6), "Lower k")


def test_bad_rows_are_left_out_when_asked(cli: Run, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    path = write_csv(tmp_path / "m.csv", [("CCO", ""), ("nonsense", "1"), ("CC", "x")])
    result = cli("paths", path, "--k", 2, "--skip-invalid", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["mean_paths"] == {"1": 3.0, "2": 1.0}
    assert "1 row that cannot be read" in result.stderr
    assert_fails(cli("paths", path, "--smiles", "z"), "'z'")


@pytest.mark.parametrize(("which", "mean"), [("sp", 2466), ("sp+", 3583), ("ap", 6581)])
def test_dd_has_the_papers_counts(cli: Run, mirror: Path, which: str, mean: float) -> None:
    result = cli("paths", "dd", "--collection", which, "--k", 2, "--json")
    assert result.exit_code == 0, result.stderr
    assert abs(json.loads(result.stdout)["mean_paths"]["2"] - mean) < 1


def test_a_vertex_without_paths_can_be_drawn(cli: Run, tmp_path: Path) -> None:
    path = write_g6(tmp_path / "g.g6", [nx.empty_graph(3)])
    result = cli("paths", path, "--draw", tmp_path / "out.svg", "--source", 2)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.svg").exists()


def test_a_missing_extra_is_named(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_g6(tmp_path / "g.g6", [nx.path_graph(3)])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert_fails(cli("paths", path, "--draw", tmp_path / "out.svg"), "pip install 'pathnn[plot]'")


def test_atoms_are_drawn_with_their_numbers_in_the_smiles(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rdkit")
    drawn = []

    def draw(edge_index: torch.Tensor, num_nodes: int, source: int, **_: object) -> None:
        drawn.append(sorted(edge_index.t().tolist()))

    monkeypatch.setattr("pathnn.plots.trees.draw_paths_and_tree", draw)
    monkeypatch.setattr("pathnn.plots.trees.save", lambda *_: None)
    path = write_csv(tmp_path / "m.csv", [("C(O)(N)C", "")])  # its canonical SMILES begins with another atom
    assert cli("paths", path, "--k", 2, "--draw", tmp_path / "out.svg").exit_code == 0
    assert drawn == [[[0, 1], [0, 2], [0, 3], [1, 0], [2, 0], [3, 0]]]
