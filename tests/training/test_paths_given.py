"""Paths that graphs have already, stored or not, or as a sample, are those that a run reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.data import PackedGraphs
from pathnn.data.paths import BatchPaths
from pathnn.inference import score
from pathnn.paths.ragged import RaggedTries
from pathnn.training import (
    RunError,
    RunStoppedError,
    build_model,
    load_ensemble,
    load_model,
    make_loaders,
    predict,
    predict_each,
    run,
    run_ensemble,
)


def refuse(self: PackedGraphs, **options: Any) -> PackedGraphs:
    raise AssertionError(f"extracted again: {options}")


def test_a_run_extracts_paths_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config()
    expected = run(config, tmp_path / "stored", task=tiny_task())
    task = tiny_task()
    task = task.with_graphs(task.graphs.with_paths(collection=config.collection, k=config.k, store=False))
    assert isinstance(task.graphs.tries, BatchPaths)
    monkeypatch.setattr(PackedGraphs, "with_paths", refuse)
    found = run(config, tmp_path / "extracted", task=task)
    assert (found["test_score"], found["val_score"]) == (expected["test_score"], expected["val_score"])


def test_a_sample_stays_one(tmp_path: Path) -> None:
    config = tiny_config()
    task = tiny_task()
    options: dict[str, Any] = {"collection": config.collection, "k": config.k}
    sampled = task.with_graphs(task.graphs.with_paths(max_paths_per_source=1, **options))
    loaders = make_loaders(sampled, config, build_model(config, task), device="cpu")
    tries = loaders.task.graphs.tries
    assert isinstance(tries, RaggedTries)
    assert tries.sampled == 1
    other = task.with_graphs(task.graphs.with_paths(collection="sp", k=1))
    again = make_loaders(other, config, build_model(config, task), device="cpu").task.graphs.tries
    assert isinstance(again, RaggedTries)
    assert (again.collection, again.k, again.sampled) == (config.collection, config.k, None)


def test_scores_and_outputs_are_of_the_paths_that_graphs_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, task = tiny_config(), tiny_task()
    options: dict[str, Any] = {"collection": config.collection, "k": config.k}
    sampled = task.with_graphs(task.graphs.with_paths(max_paths_per_source=1, **options))
    result = run(config, tmp_path / "run", task=sampled)
    assert result["max_paths_per_source"] == 1
    trained, index = load_model(tmp_path / "run" / "model.safetensors"), task.splits[0].test
    extracted = task.with_graphs(task.graphs.with_paths(store=False, **options))
    all_paths = predict(trained, task)
    run_ensemble(config, tmp_path / "two", 2, task=task)
    monkeypatch.setattr(PackedGraphs, "with_paths", refuse)
    assert score(trained, sampled, index).score == pytest.approx(result["test_score"])
    assert torch.allclose(predict(trained, sampled, index), predict(trained, sampled)[index])
    assert torch.allclose(predict(trained, extracted, index), all_paths[index])
    assert not torch.allclose(predict(trained, sampled), all_paths)
    ensemble = load_ensemble(tmp_path / "two")
    assert torch.allclose(predict_each(ensemble, extracted, index), predict_each(ensemble, extracted)[:, index])


def test_a_run_goes_on_with_the_sample_that_it_began_with(tmp_path: Path) -> None:
    config, task = tiny_config(), tiny_task()
    options: dict[str, Any] = {"collection": config.collection, "k": config.k}
    sampled = task.with_graphs(task.graphs.with_paths(max_paths_per_source=1, **options))
    with pytest.raises(RunStoppedError):
        run(config, tmp_path / "run", task=sampled, stop=lambda: True)
    with pytest.raises(RunError, match=r"with max_paths_per_source=1.*now.*max_paths_per_source=None"):
        run(config, tmp_path / "run", task=task, resume=True)
    assert run(config, tmp_path / "run", task=sampled, resume=True)["epochs"] == 3


def test_paths_without_the_distances_that_the_model_reads_are_made_again() -> None:
    config, task = tiny_config(collection="ap"), tiny_task()
    bare = task.with_graphs(task.graphs.with_paths(collection="ap", k=config.k, distances=False))
    tries = make_loaders(bare, config, build_model(config, task), device="cpu").task.graphs.tries
    assert isinstance(tries, RaggedTries)
    assert tries.distance is not None


def test_a_run_follows_directed_edges(tmp_path: Path) -> None:
    task, config = tiny_task(), tiny_config(options={"hidden_channels": 8, "directed": True})
    edge_index = task.graphs.edge_index
    down = edge_index[0] < edge_index[1]
    graphs = PackedGraphs.from_edges(
        [data.edge_index[:, data.edge_index[0] < data.edge_index[1]] for data in task.graphs],
        task.graphs.node_ptr.diff(),
    )
    assert 0 < graphs.num_edges == int(down.sum()) < edge_index.size(1)
    plain = {"x": task.graphs.x, "y": task.graphs.y}
    task = replace(task.with_graphs(replace(graphs, **plain)), edge_features=None)
    result = run(config, tmp_path / "run", task=task)
    trained = load_model(str(tmp_path / "run" / "model.safetensors"))
    assert result["epochs"] == config.epochs
    assert trained.model.config.directed
    assert torch.isfinite(predict(trained, task)).all()
