"""The benchmarks run at small sizes, and the page in the docs is what the result files give."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pathnn.paths import list_paths
from pathnn_reproduction.bench import extract
from pathnn_reproduction.bench.choices import choices_page
from pathnn_reproduction.bench.extract import igraph_paths, to_igraph
from pathnn_reproduction.bench.report import benchmark_page, with_headline
from pathnn_reproduction.bench.shapes import SHAPES, graph_set
from pathnn_reproduction.results import provenance, write_result

ROOT = Path(__file__).parents[3]


def test_docs_page_is_generated():
    assert (ROOT / "docs" / "benchmarks.md").read_text() == benchmark_page(ROOT / "benchmarks" / "results")


def test_the_readme_s_table_is_generated():
    readme = (ROOT / "README.md").read_text()
    assert readme == with_headline(readme, ROOT / "benchmarks" / "results")
    assert with_headline(readme.replace("ms |", "s |"), ROOT / "benchmarks" / "results") == readme


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_seeded_and_undirected(shape):
    first, again, other = graph_set(shape, 3), graph_set(shape, 3), graph_set(shape, 3, seed=1)
    assert torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.edge_index, other.edge_index)
    list_paths(first.union(), first.num_nodes, collection="sp", k=1)  # checks that both directions are there
    assert int(first[1].edge_index.max()) < first[1].num_nodes


def test_shape_must_be_known():
    with pytest.raises(ValueError, match="expected one of zinc, dd, peptides"):
        graph_set("qm9", 1)


@pytest.mark.parametrize("collection", ["sp+", "ap"])
def test_peer_finds_the_same_paths(collection):
    pytest.importorskip("igraph")
    graph = graph_set("zinc", 1)
    edge_index, num_nodes = graph.edge_index, graph.num_nodes
    ours = list_paths(edge_index, num_nodes, collection=collection, k=3)
    theirs, distances = igraph_paths(to_igraph(edge_index, num_nodes), collection, 3)
    for mine, other in zip(ours, theirs, strict=True):
        assert sorted(mine.tolist()) == sorted(other.tolist())
    assert bool(distances[0].numel()) == (collection == "ap")


def test_scaling_row():
    once, twice = extract.scale(sizes=(10, 20), chunk_size=10)
    graphs = graph_set("zinc", 10)
    paths = list_paths(graphs.union(), graphs.num_nodes, collection="ap", k=4)
    assert (once["paths"], twice["paths"]) == (sum(map(len, paths)), 2 * sum(map(len, paths)))
    assert once["us_per_graph"] == pytest.approx(1e6 * once["seconds"] / 10)
    assert once["peak_process_bytes"] > 10_000_000


def test_results_say_where_they_come_from(tmp_path):
    write_result(tmp_path / "result.json", {"answer": 42})
    text = (tmp_path / "result.json").read_text()
    assert '"answer": 42' in text
    assert all(f'"{key}"' in text for key in provenance())
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_the_device_is_the_one_that_did_the_work(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"name of {device}")
    assert [provenance(device)["device"] for device in ("cuda:1", "auto")] == ["name of cuda:1", "name of cuda"]
    assert provenance()["device"] == f"{platform.machine()}, {os.cpu_count()} cores"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert provenance("auto")["device"] == provenance("cpu")["device"]


def test_the_commit_says_whether_code_was_changed(monkeypatch):
    """Results that come while results are made do not count as a change."""
    from pathnn import provenance as record

    monkeypatch.delenv("PATHNN_COMMIT", raising=False)
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    monkeypatch.setattr(record, "CODE", ("no-such-folder",))
    clean = record.commit()
    assert clean is not None
    assert len(clean) == 12
    git = record._git

    def changed(*arguments: str):
        return subprocess.CompletedProcess(arguments, 0, "src/a.py\n") if arguments[0] == "diff" else git(*arguments)

    monkeypatch.setattr(record, "_git", changed)
    assert record.commit() == f"{clean}+"
    monkeypatch.setenv("PATHNN_COMMIT", "abc")
    assert record.commit() == "abc"


def test_the_commit_is_of_pathnn_and_of_no_repository_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["pathnn.provenance"]
    monkeypatch.delenv("PATHNN_COMMIT", raising=False)
    installed = tmp_path / "project" / ".venv" / "lib"
    installed.mkdir(parents=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path / "project", check=True)
    monkeypatch.setattr(module, "ROOT", installed)
    assert module.commit() is None
    monkeypatch.setattr(module, "ROOT", tmp_path / "project")
    assert len(str(module.commit())) == 12


def test_the_report_is_written_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from pathnn_reproduction.__main__ import app

    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["bench", "--report"])
    assert refused.exit_code == 1
    assert "in a clone" in refused.stderr
    (tmp_path / "docs").mkdir()
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text().replace(" ms |", " s |"))
    assert CliRunner().invoke(app, ["bench", "--report"]).exit_code == 0
    for name in ("README.md", "docs/benchmarks.md"):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()


def test_the_page_on_collections_is_generated(tmp_path: Path) -> None:
    page = choices_page(ROOT / "benchmarks" / "results", ROOT / "results")
    assert page == (ROOT / "docs" / "which-paths.md").read_text()
    assert choices_page(tmp_path, ROOT / "results") is None
