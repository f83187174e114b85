"""BREC's own protocol: merged training is training on the copies, and copies are never told apart."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
import torch
from typer.testing import CliRunner

from pathnn.cli.app import app
from pathnn.nn import PathNN
from pathnn.paths import PathExplosionError
from pathnn.theory.examples import hexagon, two_triangles
from pathnn.theory.fingerprints import hashed_annotations
from pathnn.theory.graphs import edges_to_index
from pathnn_reproduction.experiments.brec import protocol_rows, relabelled, table
from pathnn_reproduction.experiments.brec_protocol import (
    Copy,
    disjoint_union,
    hotelling,
    make_batches,
    merged_batch,
    outputs,
    plain_batch,
    protocol_model,
    relabelled_copies,
    run_block,
    run_pair,
)
from pathnn_reproduction.pages import brec_section
from pathnn_reproduction.results import Results
from tiny_experiments import InlinePool


def copies_of(graph, seeds, model):
    return relabelled_copies(graph, seeds, model.config)


def annotated(copy, model):
    """Return a copy with annotations that are found in the copy itself."""
    options = {"collection": model.config.collection, "k": model.config.k, "distances": bool(model.config.distances)}
    return Copy(copy.graph, hashed_annotations([copy.graph], **options)[0])


def prism():
    return edges_to_index(list(nx.circular_ladder_graph(5).edges)), 10


def petersen():
    return edges_to_index(list(nx.petersen_graph().edges)), 10


@pytest.mark.parametrize("collection", ["sp+", "ap"])
def test_merged_outputs_and_gradients_are_the_network_s(collection):
    model = protocol_model(collection, 3, seed=0)
    graphs = [
        copy for i, g in enumerate([prism(), petersen(), hexagon(), prism()]) for copy in copies_of(g, [i], model)
    ]
    merged = merged_batch(graphs, model.config)(model)
    edge_index, num_nodes, batch = disjoint_union([copy.graph for copy in graphs])
    plain = model(torch.ones(num_nodes, 1).double(), edge_index, batch=batch)
    torch.testing.assert_close(merged, plain, rtol=1e-9, atol=1e-9)
    weights = torch.rand_like(plain)
    ours, theirs = (
        torch.autograd.grad((out * weights).sum(), model.lstm.weight_hh_l0, retain_graph=True)[0]
        for out in (merged, plain)
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


def test_every_path_is_read_or_equal_tokens_are_merged():
    """One output both ways; on SP in batches of 16 graphs, copy i of one graph beside copy i of the other."""
    model = protocol_model("ap", 3, seed=0)
    graphs = [copy for i, g in enumerate([prism(), petersen()]) for copy in copies_of(g, [i], model)]
    merged, plain = (make(graphs, model.config)(model) for make in (merged_batch, plain_batch))
    torch.testing.assert_close(merged, plain, rtol=1e-9, atol=1e-9)
    model = protocol_model("sp", 3, seed=0)
    ours, theirs = (copies_of(graph, range(10), model) for graph in (prism(), petersen()))
    batches = make_batches(ours, theirs, model.config)
    assert [len(batch(model)) for batch in batches] == [16, 4]
    last = merged_batch([annotated(copy, model) for copy in [*ours[8:], *theirs[8:]]], model.config)(model)
    torch.testing.assert_close(batches[1](model), last, rtol=1e-9, atol=1e-9)
    for found, part in zip(outputs(model, batches), last.chunk(2), strict=True):
        torch.testing.assert_close(found[8:], part, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("collection", ["sp+", "ap"])
def test_annotations_of_a_graph_serve_its_copies(collection):
    model = protocol_model(collection, 4, seed=0)
    tree = edges_to_index([*nx.random_labeled_tree(9, seed=1).edges, (0, 4), (2, 7)]), 9  # vertices differ
    for copy in copies_of(tree, range(3), model):
        searched = annotated(copy, model).annotations
        assert copy.graph[0].tolist() != tree[0].tolist()
        assert (copy.annotations.levels == searched.levels).all()
        assert (copy.annotations.sums == searched.sums).all()


def test_paths_are_read_as_the_config_says():
    config = replace(protocol_model("sp", 3, seed=0).config, extend=True)
    graphs, model = [prism(), petersen()], PathNN.from_config(config).double()
    edge_index, num_nodes, batch = disjoint_union(graphs)
    plain = model(torch.ones(num_nodes, 1).double(), edge_index, batch=batch)
    torch.testing.assert_close(plain_batch([Copy(graph, None) for graph in graphs], config)(model), plain)


def test_the_tie_rule_of_sp_blurs_the_test():
    """Copies of one graph have different outputs, and yet are not told apart."""
    found = run_pair(prism(), petersen(), collection="sp", k=3, copies=32)
    assert found["reliable"] is True
    same = run_pair(prism(), relabelled(prism(), 99), collection="sp", k=3, copies=32)
    assert same["told_apart"] is False


def test_different_graphs_and_copies():
    found = run_pair(prism(), petersen(), collection="ap", k=3, copies=8)
    assert found["told_apart"] is found["reliable"] is True
    assert found["statistic"] > 72.34 > found["statistic_of_copies"]
    same = run_pair(prism(), relabelled(prism(), 99), collection="ap", k=3, copies=8)
    assert same["told_apart"] is False
    assert same["reliable"] is True
    blind = run_pair(hexagon(), two_triangles(), collection="ap", k=1, copies=8)
    assert blind["told_apart"] is False


def test_too_many_paths_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pathnn_reproduction.experiments.brec_protocol.MAX_STEPS", 10)
    with pytest.raises(PathExplosionError):
        run_pair(prism(), petersen(), collection="ap", k=3, copies=2)
    assert run_block([prism(), petersen()], [0], collection="ap", k=3)["pairs"] == []  # the rest of a block is run


def test_hotelling_grows_with_the_difference():
    generator = torch.Generator().manual_seed(0)
    first, noise = (torch.randn(64, 16, generator=generator, dtype=torch.float64) for _ in range(2))
    near, far = (hotelling(first, first + 0.1 * noise + shift) for shift in (0.0, 2.0))
    assert near < 72.34 < far


def test_rows_of_the_protocol():
    raw = [
        {"test": "protocol", "collection": "ap", "k": 4, "told_apart": [0, 1], "unreliable": [], "pairs": [*range(10)]},
        {
            "test": "protocol",
            "collection": "ap",
            "k": 4,
            "told_apart": [],
            "unreliable": [12],
            "pairs": [*range(10, 20)],
        },
        {"test": "protocol", "collection": "sp+", "k": 6, "told_apart": [3], "unreliable": [], "pairs": [*range(10)]},
    ]
    other, row = protocol_rows(raw)
    assert (row["name"], row["total"], row["over"], row["unreliable"]) == ("AP, trained", 2, 380, 1)
    assert (other["name"], other["k"], other["total"], other["over"]) == ("SP+, trained", 6, 1, 390)
    _, lines = table([other, row])
    assert lines[0] == ["SP+, trained", "6", "1 of 10", *["—"] * 6, "1", "390"]  # not tested is not zero
    (whole,) = protocol_rows([{**raw[0], "pairs": [*range(60)]}] * 2)  # a block that was done twice counts once
    assert table([whole])[1][0][2:4] == ["2", "—"]
    assert whole["over"] == 340


def test_command(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done = []

    def run_block(_graphs, pairs, *, collection, k):
        done.append((collection, k, pairs[0], pairs[-1]))
        return {"told_apart": [], "unreliable": [], "pairs": list(pairs), "seconds": 0.0}

    monkeypatch.setattr("pathnn_reproduction.experiments.brec_protocol.run_block", run_block)
    monkeypatch.setattr("pathnn_reproduction.experiments.brec.wl_row", lambda _: {"wl1": [], "wl3": [1], "seconds": 0})
    monkeypatch.setattr(
        "pathnn_reproduction.experiments.brec.invariance_row",
        lambda *_: {"copies": 1, "unstable": [3], "consistent": [], "seconds": 0.0},
    )
    monkeypatch.setattr("pathnn_reproduction.cli._pool", lambda settings, ray: InlinePool(settings))
    for only in ("wl", "copies,sp", "exact,k=1", "protocol,ap,k=5,first=10-20"):
        arguments = ["reproduce", "brec", "--only", only, "--results", str(tmp_path), "--json"]
        found = CliRunner().invoke(app, arguments)
        assert found.exit_code == 0, found.stderr
    assert done == [("ap", 5, 10, 19), ("ap", 5, 20, 29)]
    rows = {row["name"]: row for row in json.loads(found.stdout)["tables"][0]["rows"]}
    assert {name: row["total"] for name, row in rows.items()} == {
        "1-WL": 0, "3-WL": 1, "SP": 0, "SP+": 0, "AP": 0, "AP, no distances": 0, "AP, trained": 0,
    }  # fmt: skip
    assert rows["AP, trained"]["over"] == 380
    assert "1 of 800 graphs differ" in brec_section(Results.open(tmp_path / "brec.jsonl").rows)
