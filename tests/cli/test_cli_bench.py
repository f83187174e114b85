"""`pathnn bench`: the contestants make the same batches, and the results are whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pathnn.bench import batch, extract
from pathnn.paths.trie import PathTrie

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def contest() -> batch.Contest:
    graphs, origin = batch.zinc_graphs(20)
    assert origin in ("ZINC12k", "ZINC-shaped")
    return batch.Contest.of(graphs, collection="ap", k=3)


def test_all_contestants_make_the_same_batches(contest: batch.Contest) -> None:
    indices = [torch.tensor([3, 0, 19]), torch.tensor([5])]
    made = [list(method(indices)) for method in (contest.ours, contest.per_level, contest.add_paths)]
    for ours, by_level, by_graph in zip(*made, strict=True):
        for name in ("x", "edge_index", "edge_attr", "y", "batch", "ptr"):
            assert torch.equal(getattr(ours, name), by_level[name])
            assert torch.equal(getattr(ours, name), by_graph[name])
        assert by_graph.trie.equal(ours.trie)
        _assert_same_levels(by_level, ours.trie)


def _assert_same_levels(data: Any, trie: PathTrie) -> None:
    for length, one in enumerate(trie.lengths(), start=1):
        for t, level in enumerate(one.levels):
            assert torch.equal(data[f"vertex_{length}_{t}"], level.vertex)
            assert level.distance is not None
            assert torch.equal(data[f"distance_{length}_{t}"], level.distance)
            if level.parent is not None and level.edge is not None:
                assert torch.equal(data[f"parent_{length}_{t}"], level.parent)
                assert torch.equal(data[f"edgeid_{length}_{t}"], level.edge)


def test_the_result_has_a_ratio_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = torch.get_num_threads()
    steps: list[int] = []
    result = batch.run(graphs=20, batch_size=5, k=2, rounds=1, step=lambda: steps.append(1))
    assert [row["method"] for row in result["rows"]] == [batch.OURS, batch.PER_LEVEL, batch.ADD_PATHS]
    ours = result["rows"][0]
    assert ours["ratio"] == 1.0
    assert all(row["ratio"] == row["ms"] / ours["ms"] for row in result["rows"])
    assert len(steps) == 2
    assert torch.get_num_threads() == threads


def test_batch_as_table_and_as_json(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    result = batch.run(graphs=20, batch_size=5, k=2, rounds=1)
    monkeypatch.setattr(batch, "run", lambda **_: result)
    table = cli("bench", "batch")
    assert table.exit_code == 0, table.stderr
    assert batch.PER_LEVEL in table.stdout
    found = json.loads(cli("bench", "batch", "--json").stdout)
    assert found["rows"] == result["rows"]
    assert {"commit", "device", "versions", "time"} <= set(found)


def test_extract_as_table_and_as_json(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("igraph")
    monkeypatch.setattr(extract, "WORKLOADS", {"zinc": (2, 8, 2)})
    table = cli("bench", "extract", "--part", "compare")
    assert table.exit_code == 0, table.stderr
    assert "trie ratio" in table.stdout
    found = json.loads(cli("bench", "extract", "--json").stdout)
    assert [row["collection"] for row in found["compare"]] == ["sp", "sp+", "ap"]
    assert {"commit", "device", "versions", "time"} <= set(found)


def test_the_gpu_part_needs_a_gpu(cli: Run) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    result = cli("bench", "extract", "--part", "gpu")
    assert result.exit_code == 1
    assert "CUDA" in result.stderr


def test_model_as_table_and_as_json(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathnn.bench import model

    keys = ("dense_ms", "ours_ms", "ratio", "dense_mib", "ours_mib")
    row = {"workload": "zinc-ap", "phase": "train", **dict.fromkeys(keys, 1.25)}
    asked: list[Any] = []

    def run(workloads: tuple[str, ...], *, threads: int) -> list[dict[str, Any]]:
        asked.append((workloads, threads))
        return [row]

    monkeypatch.setattr(model, "run", run)
    found = cli("bench", "model", "--json", "--workload", "zinc-ap", "--threads", 1)
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["workloads"] == [row]
    assert asked == [(("zinc-ap",), 1)]
    table = cli("bench", "model")
    assert table.exit_code == 0, table.stderr
    assert "zinc-ap" in table.stdout
    assert cli("bench", "model", "--workload", "nothing").exit_code == 2


def test_without_a_gpu_a_benchmark_on_it_is_refused(cli: Run) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    for target in ("model", "epoch"):
        result = cli("bench", target, "--device", "cuda")
        assert result.exit_code == 1
        assert "--device cpu" in result.stderr


def test_an_epoch_of_ours_and_of_dense(cli: Run, mirror: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pathnn.bench import epoch

    def small(config: Any) -> Any:
        task = load_task(config)
        few = torch.arange(40)
        split = replace(task.splits[0], train=few[:24], val=few[24:32], test=few[32:])
        return replace(task, graphs=task.graphs.subset(few), splits=(split,))

    load_task = epoch.load_task
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path))
    monkeypatch.setattr(epoch, "load_task", small)
    result = cli("bench", "epoch", "--device", "cpu", "--epochs", 1, "--graphs", 16, "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["workloads"]
    assert [row["phase"] for row in rows] == ["train", "inference"]
    assert all(row["ratio"] == row["dense_ms"] / row["ours_ms"] for row in rows)
    assert rows[0]["graphs"] == 16
    assert rows[0]["steps"] == 1
