"""BREC: ever longer paths, and relabelled copies that are never told apart."""

from __future__ import annotations

from pathlib import Path

import networkx as nx

from pathnn.data.datasets.synthetic import BREC_CATEGORIES as CATEGORIES
from pathnn.paths import count_paths
from pathnn.theory.examples import hexagon, two_triangles
from pathnn.theory.graphs import edges_to_index
from pathnn_reproduction.experiments import brec, get_experiment
from pathnn_reproduction.experiments.brec import summarize, table
from pathnn_reproduction.results import Results
from pathnn_reproduction.spec import select
from tiny_experiments import do_missing

ROOT = Path(__file__).parents[2]
AP, SP_PLUS, SP = brec.VARIANTS[2], brec.VARIANTS[1], brec.VARIANTS[0]


def pairs():
    """Told apart at K = 2; never (a relabelled copy); too large."""
    complete = edges_to_index([(u, v) for u in range(30) for v in range(u)]), 30
    ring = edges_to_index(list(nx.cycle_graph(5).edges)), 5
    return [hexagon(), two_triangles(), ring, brec.relabelled(ring, 3), complete, brec.relabelled(complete, 1)]


def test_only_pairs_that_are_left_are_tested_at_the_next_k():
    rows = []
    for k in range(1, 5):
        key = AP.key("exact", k)
        rows.append({**key, **brec.exact_row(pairs(), key, rows, max_steps=20_000)})
    found = summarize(rows)
    assert [row["total"] for row in found] == [0, 1, 1, 1]
    assert [row["over"] for row in found] == [0, 0, 1, 1]
    head, lines = table(found)
    assert [line[1] for line in lines] == ["1", "2", "3", "4"]
    assert lines[-1][:3] == ["AP", "4", "1"]
    assert len(head) == len(lines[0])


def test_relabelled_copies():
    graphs = pairs()[:4]
    for variant in (AP, SP_PLUS):
        row = brec.invariance_row(graphs, variant.key("copies", 3), copies=4)
        assert row["unstable"] == []
        assert row["consistent"] == [0]
    square_with_tail = edges_to_index([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4)]), 5
    row = brec.invariance_row([square_with_tail, hexagon()], SP.key("copies", 2), copies=8)
    assert row["unstable"] == [0]
    assert row["consistent"] == []


def test_three_wl_on_brec(mirror: Path):
    """What BREC's authors list: all of basic, regular and extension, 60 of CFI."""
    row = brec.wl_row(brec.brec_graphs())
    assert row["wl1"] == []
    by_category = {name: len(set(row["wl3"]) & set(where)) for name, where in CATEGORIES.items()}
    assert list(by_category.values()) == [60, 50, 0, 100, 60, 0, 0]


def test_short_paths_on_brec(mirror: Path, tmp_path: Path):
    graphs, brec_experiment = brec.brec_graphs(), get_experiment("brec")
    specs = select(brec_experiment.specs, "exact,ap,distances=true,k=1-3")
    progress = do_missing(brec_experiment, tmp_path / "brec.jsonl", specs=specs)
    assert (progress.left, progress.failed) == (0, [])
    assert [row["total"] for row in summarize(Results.open(tmp_path / "brec.jsonl").rows)] == [0, 104, 199]
    sample = [graph for pair in (0, 70, 120, 200, 300) for graph in graphs[2 * pair : 2 * pair + 2]]
    assert brec.invariance_row(sample, AP.key("copies", 3), copies=2)["unstable"] == []


def test_the_results_on_copies():
    rows = [row for row in Results.open(ROOT / "results" / "brec.jsonl") if row["test"] == "copies"]
    assert {row["collection"] for row in rows} == {"sp", "sp+", "ap"}
    assert all(row["unstable"] == [] for row in rows if row["collection"] != "sp")


def test_paths_are_between_their_bounds():
    graphs = [
        *pairs()[:4],
        *(brec.relabelled((edges_to_index(list(nx.petersen_graph().edges)), 10), i) for i in (0, 1)),
    ]
    row = brec.bounds_row(graphs, {"collection": "ap", "k": 6})
    exact = [int(count_paths(*graph, collection="ap", k=5)[:, 4].sum()) for graph in graphs]
    largest = [max(exact[i : i + 2]) for i in range(0, len(exact), 2)]
    assert all(a <= b <= c for a, b, c in zip(row["least"], largest, row["most"], strict=True))
    assert row["most"][0] > 0


def test_pairs_with_too_many_paths_are_named():
    least, most = [0] * 400, [10] * 400
    least[110], most[110], most[115] = 200, 300, 150
    bounds = {"test": "bounds", "collection": "ap", "k": 8, "least": least, "most": most, "max_steps": 100}
    done = {"test": "protocol", "collection": "ap", "k": 8, "pairs": [111, 112]}
    lines = {line[0]: line[1:] for line in brec.bounds_table([done], bounds)[1]}
    assert lines["strongly regular"] == ["110-159", "111-112", "0 to 3e+02", "110", "115", "113-159"]
    assert lines["basic"] == ["0-59", "—", "0 to 10", "—", "—", "0-59"]
