"""Runs together, as far as it goes without a GPU. See also test_cuda_together.py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engine_tasks import one_thread, tiny_config, tiny_task
from pathnn.data import PackedGraphs
from pathnn.nn import PathNN
from pathnn.nn.stack import Stack
from pathnn.training import RunFolder, RunStoppedError, fabric_for, run
from pathnn.training.cuda_graphs.padded_batch import PaddedShape, graph_sizes
from pathnn.training.loop import Epoch
from pathnn.training.runs import CheckpointWriter, prepare
from pathnn.training.scoring import Evaluation
from pathnn.training.stacked_steps import StackedAdam
from pathnn.training.together import TogetherError, most_together, run_together
from stacked_stub import StubTrainer, saved_epoch, stub_training

__all__ = ["one_thread"]


def test_without_a_gpu_runs_are_done_one_by_one(tmp_path: Path) -> None:
    configs, outs = [tiny_config(seed=seed) for seed in (0, 1)], [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(TogetherError, match="not on an NVIDIA GPU"):
        list(run_together(configs, outs, task=tiny_task()))
    assert run(configs[0], outs[0], task=tiny_task(), resume=True)["epochs"] == 3  # nothing is locked


@pytest.mark.parametrize("number", [0, 2])
def test_as_many_folders_as_configs_are_wanted(tmp_path: Path, number: int) -> None:
    configs = [tiny_config(seed=seed) for seed in range(number)]
    with pytest.raises(ValueError, match=f"{number} configs and {min(number, 1)} folders"):
        list(run_together(configs, [tmp_path / "a"][:number], task=tiny_task()))
    assert not (tmp_path / "a").exists()


def test_other_options_are_refused(tmp_path: Path) -> None:
    configs = [tiny_config(), tiny_config(lr=0.1)]
    with pytest.raises(TogetherError, match="more than fold, seed and dropout"):
        list(run_together(configs, [tmp_path / "a", tmp_path / "b"], task=tiny_task()))


def test_how_many_are_worth_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config(max_entries=20_000)
    ready = prepare(config, tiny_task(), RunFolder(tmp_path), fabric_for(config), resume=False)
    entries = sum(PaddedShape.shapes(graph_sizes(ready.loaders.train.graphs), 8)[-1].levels)
    assert most_together(ready) == 20_000 // (2 * entries) > 1
    ready.loaders.train.max_entries = entries
    assert most_together(ready) == 0
    ready.loaders.train.max_entries = None
    assert most_together(ready) == 64
    monkeypatch.setattr("pathnn.training.together.BUSY", entries)
    assert most_together(ready) == 1  # one keeps the GPU busy


def test_the_paces_are_those_of_adam() -> None:
    """Step by step with torch's Adam, where the second of three networks rests in the second step."""
    torch.manual_seed(0)
    models = [PathNN(3, 4, 2, collection="sp", k=1) for _ in range(3)]
    adam = StackedAdam(Stack(models), weight_decay=0.0)
    takes_part = torch.tensor([[True, True, True], [True, False, True], [True, True, True]])
    lrs = [1e-3, 2e-3, 1e-3]
    paces = adam.paces(takes_part, lrs)
    assert adam.steps == [3, 2, 3]
    for i in range(3):
        weight, value = nn.Parameter(torch.zeros(4)), torch.zeros(4)
        optimizer = torch.optim.Adam([weight], lr=lrs[i])
        mean, square = torch.zeros(4), torch.zeros(4)
        assert paces[:, i, 2].tolist() == takes_part[:, i].float().tolist()
        for size, root, on in paces[:, i].tolist():
            if not on:
                continue
            grad = torch.randn(4)
            weight.grad = grad.clone()
            optimizer.step()
            mean, square = 0.9 * mean + 0.1 * grad, 0.999 * square + 0.001 * grad**2
            value -= size * mean / (square.sqrt() / root + adam.eps)
            torch.testing.assert_close(value, weight.detach())


def test_a_state_is_saved_with_the_weights_of_its_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on while an epoch is noted down: whenever the state is saved, its weights are brought first."""
    stub_training(monkeypatch)
    clock = count()
    monkeypatch.setattr(sys.modules[CheckpointWriter.__module__], "monotonic", lambda: float(next(clock)))
    configs, outs, seen = [tiny_config(seed=seed, epochs=20) for seed in (0, 1)], [tmp_path / "a", tmp_path / "b"], []

    def report(number: int, epoch: Epoch) -> None:
        if (outs[number] / "last.ckpt").exists():
            seen.append(saved_epoch(outs[number]))

    list(run_together(configs, outs, task=tiny_task(), report=report, checkpoint_every=4.0))
    assert len({epoch for epoch, _ in seen}) > 3
    assert all(weights == {float(epoch)} for epoch, weights in seen)
    assert saved_epoch(outs[1]) == (20, {20.0})


def test_runs_that_end_in_the_epoch_of_a_stop_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_training(monkeypatch, lambda run: float("nan") if run.config.seed == 2 else 1.0)
    outs, asked = [tmp_path / str(seed) for seed in range(3)], iter([False, True])
    found: dict[int, object] = {}
    configs = [tiny_config(seed=seed, epochs=3) for seed in range(3)]
    with pytest.raises(RunStoppedError):
        list(run_together(configs[1:2], outs[1:2], task=tiny_task(), stop=lambda: True))
    with pytest.raises(RunStoppedError, match="1 runs were stopped"):
        found.update(run_together(configs, outs, task=tiny_task(), stop=lambda: next(asked)))
    assert sorted(found) == [1, 2]
    assert "not a finite number in epoch 1" in str(found[2])
    assert (outs[1] / "result.json").exists()
    assert saved_epoch(outs[0]) == (2, {2.0})


def test_fewer_networks_are_trained_when_half_of_them_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = stub_training(monkeypatch, lambda run: float("nan") if run.state.epoch == run.config.seed else 1.0)
    outs = [tmp_path / str(seed) for seed in range(4)]
    found = dict(run_together([tiny_config(seed=s, epochs=9) for s in range(4)], outs, task=tiny_task()))
    assert sorted(found) == [0, 1, 2, 3]
    assert made == [4, 2, 1]


def test_a_run_that_cannot_begin_leaves_the_others_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_training(monkeypatch)
    outs, told = [tmp_path / str(seed) for seed in range(3)], set()
    configs = [tiny_config(seed=seed) for seed in range(3)]
    run(replace(configs[1], epochs=1), outs[1], task=tiny_task())
    (outs[1] / "last.ckpt").write_bytes(b"damaged")
    found = dict(run_together(configs, outs, task=tiny_task(), report=lambda number, epoch: told.add(number)))
    assert "last.ckpt is damaged" in str(found[1])
    assert [found[i]["epochs"] for i in (0, 2)] == [3, 3]  # type: ignore[index]
    assert told == {0, 2}
    with RunFolder(outs[0]).lock():
        again = dict(run_together(configs[:2], outs[:2], task=tiny_task()))
    assert "being written by another process" in str(again[0])


def test_paths_are_made_once_for_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_training(monkeypatch)
    made, extract = [], PackedGraphs.with_paths

    def with_paths(self: PackedGraphs, **options: Any) -> PackedGraphs:
        made.append(1)
        return extract(self, **options)

    monkeypatch.setattr(PackedGraphs, "with_paths", with_paths)
    list(run_together([tiny_config(seed=s) for s in (0, 1)], [tmp_path / "a", tmp_path / "b"], task=tiny_task()))
    assert len(made) == 1


def test_rates_fall_and_seconds_add_up_as_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_training(monkeypatch)
    configs = [tiny_config(seed=seed, epochs=4, plateau_factor=0.5, plateau_patience=0) for seed in (0, 1)]
    told: dict[int, list[Epoch]] = {0: [], 1: []}
    report = partial(_note_down, told)
    found = dict(run_together(configs, [tmp_path / "a", tmp_path / "b"], task=tiny_task(), report=report))
    for number, epochs in told.items():
        lr = configs[number].lr
        assert [epoch.lr for epoch in epochs] == pytest.approx([lr, lr, lr / 2, lr / 4])  # the score stays as it is
        assert found[number]["seconds"] == pytest.approx(sum(epoch.seconds for epoch in epochs))  # type: ignore[index]


def test_the_test_score_does_not_choose_the_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The better the validation score, the worse the test score."""
    val = {1: 0.5, 2: 0.3, 3: 0.4}

    def evaluate(self: StubTrainer, part: str, which: Sequence[int]) -> dict[int, Evaluation]:
        scores = {i: val[self.trained[i]] for i in which}
        return {i: Evaluation(1.0, score if part == "val" else 1 - score, 1) for i, score in scores.items()}

    stub_training(monkeypatch)
    monkeypatch.setattr(StubTrainer, "evaluate", evaluate)
    configs, told = [tiny_config(seed=seed, epochs=3) for seed in (0, 1)], {0: [], 1: []}
    outs = [tmp_path / "a", tmp_path / "b"]
    found = dict(run_together(configs, outs, task=tiny_task(), report=partial(_note_down, told)))
    for number, epochs in told.items():
        assert [epoch.best for epoch in epochs] == [True, True, False]
        assert (found[number]["val_score"], found[number]["test_score"]) == (0.3, 0.7)  # type: ignore[index]


def _note_down(told: dict[int, list[Epoch]], number: int, epoch: Epoch) -> None:
    told[number].append(epoch)
