"""`reproduce sr`: the exact test by length, rows that resume, the page."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

from pathnn.cli.app import app
from pathnn.data import load_dataset
from pathnn.theory.fingerprints import hashed_annotations
from pathnn.theory.graphs import edges_to_index
from pathnn.theory.isomorphism import as_graphs, untrained_models
from pathnn.theory.merged import merged_embeddings
from pathnn_reproduction.experiments import sr
from pathnn_reproduction.experiments.sr import exact_at, summarize, table
from pathnn_reproduction.pages import expressive_page, sr_chart
from pathnn_reproduction.results import Results
from tiny_experiments import InlinePool

ROOT = Path(__file__).parents[2]


def regular_graphs(count: int):
    return [(edges_to_index(list(nx.random_regular_graph(3, 10, seed=i).edges)), 10) for i in range(count)]


@pytest.mark.parametrize("distances", [True, False])
def test_by_length_is_the_same_as_all_at_once(distances):
    graphs = regular_graphs(40)
    rows = list(sr.exact_by_length(graphs, 7, distances=distances, first=1))
    found = hashed_annotations(graphs, collection="ap", k=7, distances=distances)
    prints = np.stack([one.fingerprints() for one in found])
    for row in rows:
        assert row["confused"] == sr.pairs_in(prints[:, row["k"]])
    assert all(a["confused"] >= b["confused"] for a, b in pairwise(rows))
    assert rows[0]["confused"] == 780 > rows[-1]["confused"] > 0  # some of them are isomorphic


def test_two_families_by_command(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pathnn_reproduction.cli._pool", lambda settings, ray: InlinePool(settings))
    arguments = ["reproduce", "sr", "--only", "sr16622,sr281264,k=0-4", "--results", str(tmp_path), "--device", "cpu"]
    whole = [*arguments[:3], "sr16622,sr281264,exact", *arguments[4:], "--json"]
    first = CliRunner().invoke(app, [*arguments, "--json"])
    assert first.exit_code == 0, first.stderr
    assert len(json.loads(first.stdout)["ran"]) == 14
    second = json.loads(CliRunner().invoke(app, whole).stdout)
    assert second["ran"] == ["sr16622-exact-k8-distancesTrue", "sr281264-exact-k8-distancesTrue"]
    small, other = second["tables"][0]["rows"]
    assert (small["pairs"], small["network"], small["exact"]["4"], small["without"]) == (1, [0] * 5, 0, [1] * 5)
    assert (other["pairs"], other["network"], other["sum"], other["closed"]) == (6, [1] * 5, 1, [0] * 5)
    assert other["wl3"] == other["wl1"] == other["exact_without"] == 6
    again = json.loads(CliRunner().invoke(app, whole).stdout)
    assert again["ran"] == []
    assert again["tables"] == second["tables"]
    page = expressive_page(tmp_path)
    assert "SR(28,12,6,4): all pairs are distinguished from K = 4 on" in page
    assert sr_chart(Results.open(tmp_path / "sr.jsonl").rows) is not None
    assert summarize([]) == []


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
    assert sr.pairs_in(np.stack([one.total() for one in found])) == confused
    assert sr.pairs_in(np.stack([one.fingerprints()[5] for one in found])) == 0


def test_what_the_page_says_of_a_relu(mirror: Path):
    """No sign differs between vertices: in each layer, a channel is positive at all of them or at none."""
    models = untrained_models(collection="ap", k=4, seeds=5, phi="relu")
    read = []
    for model in models:
        for conv in model.convs:
            conv.phi.register_forward_hook(lambda module, inputs, output: read.append(inputs[0] > 0))
    merged_embeddings(models, as_graphs(load_dataset("sr281264").graphs))
    assert len(read) == 20
    assert all(bool((positive == positive[0]).all()) for positive in read)


def test_the_report_is_one_json_document(tmp_path: Path):
    (tmp_path / "results").mkdir()
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    arguments = ["reproduce", "sr", "--report", "--json", "--results", str(tmp_path / "results")]
    nothing = CliRunner().invoke(app, arguments)
    assert nothing.exit_code == 1
    assert "has neither sr.jsonl nor brec.jsonl" in nothing.stderr
    assert not (tmp_path / "docs" / "expressive.md").exists()
    (tmp_path / "results" / "sr.jsonl").write_text((ROOT / "results" / "sr.jsonl").read_text())
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
    rows = summarize(Results.open(ROOT / "results" / "sr.jsonl").rows)
    assert rows
    for row in rows:
        assert row["wl1"] == row["wl3"] == row["pairs"]
        for name in ("network", "relu", "closed"):
            assert row[name] is None or all(count >= exact_at(row, 4) for count in row[name])
        counts = list(row["exact"].values())
        assert counts == sorted(counts, reverse=True)
