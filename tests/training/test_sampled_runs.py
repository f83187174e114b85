"""Runs that read a sample of paths, and runs that log."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from typing import Any

import pytest
import torch

from engine_tasks import assert_same_files, one_thread as one_thread, tiny_config, tiny_task
from pathnn.training import (
    RunConfig,
    RunError,
    RunStoppedError,
    build_model,
    load_model,
    make_loaders,
    predict,
    run,
)

SAMPLE: dict[str, Any] = {"collection": "ap", "k": 3, "max_paths_per_source": 2}


def tries_of_epochs(config: RunConfig, epochs: int) -> list[Any]:
    task = tiny_task()
    loaders = make_loaders(task, config, build_model(config, task), device="cpu")
    found = []
    for epoch in range(epochs):
        loaders.draw(config, epoch)
        found.append((loaders.train.batch(torch.arange(8)).trie, loaders.val.batch(torch.arange(8)).trie))
    return found


def test_training_reads_other_paths_in_each_epoch_and_validation_the_same():
    config = tiny_config(**SAMPLE, redraw=True)
    (first, val), (second, again) = tries_of_epochs(config, 2)
    assert first.sampled == val.sampled == 2
    assert not first.equal(second)
    assert val.equal(again)
    (again, _), (after, _) = tries_of_epochs(config, 2)
    assert first.equal(again)
    assert second.equal(after)
    (other, same), _ = tries_of_epochs(tiny_config(**SAMPLE, redraw=True, seed=1), 2)
    assert not other.equal(first)
    assert same.equal(val)


def test_without_redraw_every_epoch_reads_the_sample_of_evaluation():
    (first, val), (second, _) = tries_of_epochs(tiny_config(**SAMPLE), 2)
    assert first.equal(second)
    assert first.equal(val)


@pytest.mark.parametrize("redraw", [False, True])
def test_a_stopped_run_ends_as_a_whole_one(tmp_path, redraw):
    config = tiny_config(**SAMPLE, redraw=redraw, logger="csv")
    result = run(config, tmp_path / "whole", task=tiny_task())
    assert result["max_paths_per_source"] == 2
    with pytest.raises(RunStoppedError):
        run(config, tmp_path / "parts", task=tiny_task(), stop=lambda: True)
    run(config, tmp_path / "parts", task=tiny_task(), resume=True)
    assert_same_files(tmp_path / "whole", tmp_path / "parts")
    assert len(log_of(tmp_path / "parts")) == 3


def test_predictions_read_the_sample_of_evaluation(tmp_path):
    run(tiny_config(**SAMPLE, redraw=True), tmp_path / "run", task=tiny_task())
    trained = load_model(tmp_path / "run" / "model.safetensors")
    out = predict(trained, tiny_task())
    task = tiny_task()
    sampled = task.with_graphs(task.graphs.with_paths(collection="ap", k=3, max_paths_per_source=2, seed=0))
    whole = task.with_graphs(task.graphs.with_paths(collection="ap", k=3))
    assert torch.equal(out, predict(trained, sampled))
    assert torch.equal(out, predict(trained, whole)), "the paths that are given are more than the model reads"
    trained.model.path_options = trained.model.config.paths
    assert not torch.equal(out, predict(trained, whole))


def test_redraw_needs_a_sample():
    with pytest.raises(RunError, match="max_paths_per_source"):
        tries_of_epochs(tiny_config(redraw=True), 1)
    with pytest.raises(RunError, match="max_paths_per_source=0"):
        tiny_config(max_paths_per_source=0)


def log_of(folder):
    with (folder / "logs" / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_log_has_the_epochs_of_the_run(tmp_path):
    run(tiny_config(epochs=2, logger="csv"), tmp_path / "run", task=tiny_task())
    before = log_of(tmp_path / "run")
    assert [line["step"] for line in before] == ["1", "2"]
    assert before[0]["test_score"]
    run(tiny_config(epochs=4, logger="csv"), tmp_path / "run", task=tiny_task(), resume=True)
    lines = log_of(tmp_path / "run")
    assert [line["step"] for line in lines] == ["1", "2", "3", "4"]
    assert lines[:2] == before
    run(tiny_config(epochs=1), tmp_path / "run", task=tiny_task(), overwrite=True)
    assert not (tmp_path / "run" / "logs").exists()


def test_a_log_can_begin_later(tmp_path):
    run(tiny_config(epochs=1), tmp_path / "run", task=tiny_task())
    run(tiny_config(epochs=2, logger="csv"), tmp_path / "run", task=tiny_task(), resume=True)
    assert [line["step"] for line in log_of(tmp_path / "run")] == ["1", "2"]


@pytest.mark.skipif(any(map(find_spec, ("tensorboard", "tensorboardX"))), reason="TensorBoard is installed")
def test_a_missing_tensorboard_is_named_before_training(tmp_path):
    with pytest.raises(RunError, match="pip install tensorboard"):
        run(tiny_config(logger="tensorboard"), tmp_path / "run", task=tiny_task())
    assert not (tmp_path / "run").exists()
