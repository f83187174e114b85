"""`pathnn bench`: the contestants make the same batches, and the results are whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pathnn.paths.trie import PathTrie
from pathnn_reproduction.bench import batch, extract

Run = Callable[..., Any]


def test_all_contestants_make_the_same_batches() -> None:
    graphs, origin = batch.zinc_graphs(20)
    assert origin in ("ZINC12k", "ZINC-shaped")
    indices = [torch.tensor([3, 0, 19]), torch.tensor([5])]
    methods = batch.contestants(graphs, graphs.with_paths(collection="ap", k=3))
    made = [list(methods[name](indices)) for name in (batch.OURS, batch.PER_LEVEL, batch.ADD_PATHS)]
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
    result = batch.run(graphs=20, batch_size=5, k=2, rounds=1)
    assert [row["method"] for row in result["rows"]] == [batch.OURS, batch.PER_LEVEL, batch.ADD_PATHS]
    ours = result["rows"][0]
    assert ours["ratio"] == 1.0
    assert all(row["ratio"] == row["ms"] / ours["ms"] for row in result["rows"])
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
    assert "igraph, ms" in table.stdout
    found = json.loads(cli("bench", "extract", "--json").stdout)
    assert [row["collection"] for row in found["compare"]] == ["sp", "sp+", "ap"]
    assert {"commit", "device", "versions", "time"} <= set(found)


def test_the_gpu_part_needs_a_gpu(cli: Run) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    result = cli("bench", "extract", "--part", "gpu")
    assert result.exit_code == 1
    assert "CUDA" in result.stderr


USER_ROWS = [
    {"workload": "zinc-ap, ZINC12k", "phase": phase, "way": way, "ms": ms, "graphs": graphs, "parameters": 500_000}
    for phase, graphs, times in (
        ("step", 128, {"dense": 90.0, "trie": 30.0, "edge_index": 45.0, "pathnn train": 10.0, "gine": 6.0}),
        ("epoch", 1280, {"trie": 310.0, "edge_index": 460.0, "pathnn train": 100.0, "gine": 70.0}),
    )
    for way, ms in times.items()
]


def test_model_as_table_and_as_json(cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pathnn_reproduction.bench import model

    keys = ("dense_ms", "ours_ms", "ratio", "dense_mib", "ours_mib")
    row = {"workload": "zinc-ap", "phase": "train", **dict.fromkeys(keys, 1.25)}
    asked: list[Any] = []
    saved = tmp_path / "model-cpu.json"

    def run(workloads: list[str], *, threads: int, save: Callable[[Any], None]) -> dict[str, Any]:
        asked.append((workloads, threads))
        save({"workloads": [row]})
        if "--save" in options:
            assert json.loads(saved.read_text())["workloads"] == [row]  # before the rest is measured
        result = {"workloads": [row], "user_loop": USER_ROWS}
        save(result)
        return result

    monkeypatch.setattr(model, "run", run)
    options: list[Any] = ["--json", "--workload", "zinc-ap", "--threads", 1, "--save", saved]
    found = cli("bench", "model", *options)
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["workloads"] == [row]
    assert json.loads(found.stdout)["user_loop"] == json.loads(saved.read_text())["user_loop"] == USER_ROWS
    assert asked == [(["zinc-ap"], 1)]
    options = []
    table = cli("bench", "model")
    assert table.exit_code == 0, table.stderr
    for words in ("zinc-ap", "your own loop", "GINE", "3.0x", "9.0x"):
        assert words in table.stdout
    assert cli("bench", "model", "--workload", "nothing").exit_code == 2
    assert cli("bench", "model", "--save", tmp_path / "no" / "a.json").exit_code == 2


def test_a_users_own_loop_is_measured_each_way() -> None:
    from pathnn_reproduction.bench import user_loop

    rows = user_loop.run(graphs=6, batch_size=2, batches=1, rounds=1, epochs=1)
    ways = {phase: {row["way"] for row in rows if row["phase"] == phase} for phase in ("step", "epoch")}
    assert ways["step"] == {"dense", "trie", "edge_index", "pathnn train", "gine"}
    assert ways["epoch"] == ways["step"] - {"dense"}
    assert all(row["ms"] > 0 for row in rows)
    assert {row["graphs"] for row in rows if row["phase"] == "epoch"} == {6}
    parameters = {row["way"]: row["parameters"] for row in rows}
    assert parameters["gine"] == pytest.approx(parameters["trie"], rel=0.02)
    own = {row["phase"]: row["ms"] for row in rows if row["way"] == "pathnn train"}
    assert own["step"] == own["epoch"] / 3


def test_each_way_does_the_same_step() -> None:
    """From the same weights, all three PathNNs have the same weights after a step."""
    import copy

    from torch_geometric.data import Batch

    from pathnn import AddPaths, PathNN
    from pathnn_reproduction.bench import user_loop

    torch.manual_seed(0)
    model = PathNN.from_paper("zinc", collection="ap", hidden_channels=8)
    graphs, _ = batch.zinc_graphs(4)
    collated = Batch.from_data_list([AddPaths("ap", 4)(data) for data in graphs])
    collated.ready = PathTrie.from_data(collated)
    outs = []
    for way in (user_loop.DENSE, user_loop.TRIE, user_loop.EDGE_INDEX):
        twin = copy.deepcopy(model)
        twin.lstm.backend = "dense" if way == user_loop.DENSE else "auto"
        user_loop.user_step(twin, way)(collated)
        outs.append(twin.eval()(collated.x, collated.edge_index, batch=collated.batch, edge_attr=collated.edge_attr))
    assert not torch.allclose(outs[0], model.eval()(collated.x, trie=collated.ready, batch=collated.batch,
                                                    edge_attr=collated.edge_attr), atol=1e-3)  # fmt: skip
    torch.testing.assert_close(outs[1], outs[2])
    torch.testing.assert_close(outs[0], outs[1], rtol=1e-2, atol=1e-2)


def test_a_gpu_benchmark_looks_for_all_its_files_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from pathnn.data import DatasetNotFoundError
    from pathnn_reproduction.bench import model, model_gpu

    asked: list[str] = []

    def fetch(name: str) -> Path:
        asked.append(name)
        if name in ("peptides-func", "imdb-binary"):
            raise DatasetNotFoundError(f"{name}.zip was not found.")
        return Path(name)

    monkeypatch.setattr(model, "fetch", fetch)
    monkeypatch.setattr(model_gpu, "Bench", lambda *_: pytest.fail("measured before all files were there"))
    with pytest.raises(DatasetNotFoundError, match="nothing was measured: peptides-func, imdb-binary are not") as error:
        model_gpu.run([*model_gpu.WORKLOADS])
    assert "imdb-binary.zip was not found" in str(error.value)
    assert asked == ["zinc", "dd", "peptides-func", "imdb-binary"]


def test_the_result_is_saved_after_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    from pathnn_reproduction.bench import model, user_loop

    monkeypatch.setattr(model, "prepare_datasets", lambda names, *, required: None)
    monkeypatch.setattr(model, "_measure", lambda name, phase, *_: {"workload": name, "phase": phase})
    monkeypatch.setattr(user_loop, "run", lambda **_: USER_ROWS)
    saved: list[dict[str, int]] = []
    model.run(("dd-ap", "zinc-ap"), save=lambda result: saved.append({key: len(rows) for key, rows in result.items()}))
    assert saved == [{"workloads": 2}, {"workloads": 4}, {"workloads": 4, "user_loop": len(USER_ROWS)}]


def test_a_gpu_step_is_not_taken_for_a_plain_call(tmp_path: Path) -> None:
    """README and page say which loop a row is of, and compare each with the dense side of its own run."""
    from pathnn_reproduction.bench.report import benchmark_page, headline
    from pathnn_reproduction.results import provenance

    row = {"workload": "zinc-ap", "phase": "train", "dense_ms": 36.0, "ours_ms": 3.0, "ratio": 12.0, "dense_mib": 2.0,
           "ours_mib": 1.0, "plain_trie_ms": 4.5, "plain_edge_index_ms": 7.2, "gine_ms": 13.0, "ours_busy_ms": 3.0,
           "floor_share": 0.2}  # fmt: skip
    gpu = {**provenance(), "device": "NVIDIA H200", "workloads": [row], "user_loop": USER_ROWS}
    paths = {"workload": "zinc", "collection": "ap", "threads": 1, "igraph_ms": 500, "trie_ms": 20, "trie_ratio": 25}
    for name, result in (("model-gpu", gpu), ("model-cpu", gpu), ("extract-cpu", {"compare": [paths]})):
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    lines = headline(tmp_path).splitlines()
    assert any("your own loop, `edge_index`" in line and "2.0x" in line and "6.0 ms" in line for line in lines)
    assert headline(tmp_path).count("your own loop, `trie=`") == 2
    assert sum(line.startswith("|") for line in lines) <= 2 + 7
    (tmp_path / "extract-cpu.json").unlink()
    page = benchmark_page(tmp_path)
    assert "| zinc-ap | train | 36.00 | 4.50 | 8.0x | 7.20 | 5.0x | 13.00 |" in page
    assert "| `pathnn train`, ms |" in page


def test_rows_of_other_workloads_stay_with_their_commit(tmp_path: Path) -> None:
    from pathnn_reproduction.bench.report import benchmark_page
    from pathnn_reproduction.results import with_other_workloads, write_result

    def rows(ms: float, *names: str) -> list[dict[str, object]]:
        numbers = {"dense_ms": ms, "ours_ms": 1.0, "ratio": ms, "dense_mib": 2.0, "ours_mib": 1.0}
        return [{"workload": name, "phase": "train", **numbers} for name in names]

    file = tmp_path / "model-gpu.json"
    assert with_other_workloads(file, {"workloads": []}) == {"workloads": []}
    write_result(file, {"commit": "old", "workloads": rows(1.0, "dd-ap", "zinc-ap")})
    write_result(file, {"commit": "new", **with_other_workloads(file, {"workloads": rows(2.0, "zinc-ap")})})
    found = {row["workload"]: row for row in json.loads(file.read_text())["workloads"]}
    assert (found["zinc-ap"]["dense_ms"], found["dd-ap"]["dense_ms"], found["dd-ap"]["commit"]) == (2.0, 1.0, "old")
    assert "commit new, old" in benchmark_page(tmp_path)


def test_gin_is_not_measured_until_it_is_measured_again(tmp_path: Path) -> None:
    from pathnn_reproduction.bench.report import benchmark_page

    results = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
    rows = (results / "runtime.jsonl").read_text()
    (tmp_path / "runtime.jsonl").write_text(rows)
    page = benchmark_page(tmp_path)
    missing = "| DD | GIN | 1 | — | — | 0.36 | not measured |"
    assert missing in page
    gin = {**json.loads(rows.splitlines()[0]), "model": "gin", "collection": None, "k": 1}
    (tmp_path / "runtime.jsonl").write_text(json.dumps(gin) + "\n" + rows)
    assert missing not in benchmark_page(tmp_path)


def test_without_a_gpu_a_benchmark_on_it_is_refused(cli: Run) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    for target in ("model", "epoch"):
        result = cli("bench", target, "--device", "cuda")
        assert result.exit_code == 1
        assert "--device cpu" in result.stderr


def test_an_epoch_of_ours_and_of_dense(cli: Run, mirror: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pathnn_reproduction.bench import epoch

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
