"""`reproduce sr`: the exact test by length, rows that resume, the page."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

from pathnn.cli.app import app
from pathnn.data import load_dataset
from pathnn.theory.fingerprints import hashed_annotations, path_fingerprints, stack_lanes
from pathnn.theory.graphs import edges_to_index
from pathnn.theory.isomorphism import as_graphs
from pathnn.theory.untrained import embeddings, untrained_models
from pathnn_reproduction.experiments import sr
from pathnn_reproduction.experiments.sr import exact_at, summarize, table
from pathnn_reproduction.pages import expressive_page, sr_chart
from pathnn_reproduction.results import add_row, missing, read_rows

ROOT = Path(__file__).parents[2]


def regular_graphs(count: int):
    return [(edges_to_index(list(nx.random_regular_graph(3, 10, seed=i).edges)), 10) for i in range(count)]


@pytest.mark.parametrize("distances", [True, False])
def test_by_length_is_the_same_as_all_at_once(distances):
    graphs = regular_graphs(40)
    rows = list(sr.exact_by_length(graphs, 7, distances=distances, first=1))
    prints = path_fingerprints(graphs, collection="ap", k=7, distances=distances)
    for row in rows:
        assert row["confused"] == sr.pairs_in(prints[:, row["k"]])
    assert all(a["confused"] >= b["confused"] for a, b in pairwise(rows))
    assert rows[0]["confused"] == 780 > rows[-1]["confused"] > 0  # some of them are isomorphic


def test_rows_resume(tmp_path: Path):
    path = tmp_path / "results" / "rows.json"
    assert missing(path, [{"k": 1}, {"k": 2}]) == [{"k": 1}, {"k": 2}]
    add_row(path, {"k": 1}, {"seconds": 1.0})
    add_row(path, {"k": 2}, {"seconds": 2.0})
    row = add_row(path, {"k": 1}, {"seconds": 3.0})
    assert {"commit", "time", "device", "versions"} <= set(row)
    assert [row["seconds"] for row in read_rows(path)] == [2.0, 3.0]
    assert missing(path, [{"k": 1}, {"k": 3}]) == [{"k": 3}]


def test_several_may_add_rows_at_once(tmp_path: Path):
    path = tmp_path / "rows.json"
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda k: add_row(path, {"k": k}, {"seconds": 1.0}), range(40)))
    assert sorted(row["k"] for row in read_rows(path)) == list(range(40))
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.json"]


def test_two_families_by_command(mirror: Path, tmp_path: Path):
    path = tmp_path / "sr.json"
    arguments = [
        "reproduce",
        "sr",
        "--families",
        "sr16622,sr281264",
        "--longest",
        "4",
        "--results",
        str(path),
        "--json",
    ]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.stderr
    found = json.loads(first.stdout)
    assert found["ran"] == 16
    small, other = found["rows"]
    assert (small["pairs"], small["network"], small["exact"]["4"], small["without"]) == (1, [0] * 5, 0, [1] * 5)
    assert (other["pairs"], other["network"], other["sum"], other["closed"]) == (6, [1] * 5, 1, [0] * 5)
    assert other["wl3"] == other["wl1"] == other["exact_without"] == 6
    again = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert again["ran"] == 0
    assert again["rows"] == found["rows"]
    page = expressive_page(tmp_path)
    assert "SR(28,12,6,4): all pairs are distinguished from K = 4 on" in page
    assert sr_chart(tmp_path) is not None
    assert summarize(tmp_path / "none.json") == []


def test_unknown_family():
    result = CliRunner().invoke(app, ["reproduce", "sr", "--families", "sr1"])
    assert result.exit_code == 1
    assert "'sr1' is unknown" in result.stderr


def test_what_is_zero_stays_zero():
    assert exact_at({"exact": {4: 2}}, 5) is None
    rows = [{"family": "f", "pairs": 4, "exact": {4: 1, 5: 0}, "without": None, "network": [1, 2], "sum": 1,
             "closed": [1, 1], "wl1": 4, "wl3": 4}]  # fmt: skip
    head, lines = table(rows)
    assert lines == [["f", "4", "not run", "37.50", "25.00", "25.00", "25.00", "0", "100.00", "100.00"]]
    assert len(head) == len(lines[0])


@pytest.mark.parametrize(("family", "confused"), [("sr16622", 0), ("sr251256", 0), ("sr261034", 1), ("sr281264", 0)])
def test_what_the_page_says_of_networks_at_k_5(mirror: Path, family: str, confused: int):
    """Adding up confuses one pair there; what the networks confuse beyond it, they do for lack of digits."""
    graphs = as_graphs(load_dataset(family).graphs)
    found = hashed_annotations(graphs, collection="ap", k=5)
    assert sr.pairs_in(stack_lanes([one.total() for one in found], (2,))) == confused
    assert sr.pairs_in(stack_lanes([one.fingerprints()[5] for one in found], (2,))) == 0


def test_what_the_page_says_of_a_relu(mirror: Path):
    """No sign differs between vertices: in each layer, a channel is positive at all of them or at none."""
    models = untrained_models(collection="ap", k=4, seeds=5, phi="relu")
    read = []
    for model in models:
        for conv in model.convs:
            conv.phi.register_forward_hook(lambda module, inputs, output: read.append(inputs[0] > 0))
    embeddings(models, as_graphs(load_dataset("sr281264").graphs))
    assert len(read) == 20
    assert all(bool((positive == positive[0]).all()) for positive in read)


def test_the_report_is_one_json_document(tmp_path: Path):
    (tmp_path / "results").mkdir()
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    arguments = ["reproduce", "sr", "--report", "--json", "--results", str(tmp_path / "results" / "sr.json")]
    nothing = CliRunner().invoke(app, arguments)
    assert nothing.exit_code == 1
    assert "has neither sr.json nor brec.json" in nothing.stderr
    assert not (tmp_path / "docs" / "expressive.md").exists()
    (tmp_path / "results" / "sr.json").write_text((ROOT / "results" / "sr.json").read_text())
    for target in ("sr", "brec"):
        written = CliRunner().invoke(app, [arguments[0], target, *arguments[2:]])
        assert written.exit_code == 0, written.stderr
        assert json.loads(written.stdout)["written"] == [
            str(tmp_path / "docs" / "expressive.md"), str(tmp_path / "docs" / "figures" / "sr.png"),
        ]  # fmt: skip
    shutil.rmtree(tmp_path / "docs")
    outside = CliRunner().invoke(app, arguments)
    assert outside.exit_code == 1
    assert "has no folder docs: --report writes docs/expressive.md of a clone" in outside.stderr


def test_the_page_is_generated():
    assert (ROOT / "docs" / "expressive.md").read_text() == expressive_page(ROOT / "results")


def test_the_results_are_consistent():
    """What must hold whatever was measured: a network is never stronger than the exact test of its kind."""
    rows = summarize(ROOT / "results" / "sr.json")
    assert rows
    for row in rows:
        assert row["wl1"] == row["wl3"] == row["pairs"]
        for name in ("network", "relu", "closed"):
            assert row[name] is None or all(count >= exact_at(row, 4) for count in row[name])
        counts = list(row["exact"].values())
        assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"lines": []}'])
def test_a_file_without_rows_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "sr.json").write_text(text)
    with pytest.raises(ValueError, match=r"sr\.json holds no results that can be read"):
        read_rows(tmp_path / "sr.json")
    assert (tmp_path / "sr.json").read_text() == text


def test_a_folder_in_place_of_a_results_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder: expected a file for results"):
        missing(tmp_path, [{"k": 1}])
