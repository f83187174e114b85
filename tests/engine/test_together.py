"""Runs together, as far as it goes without a GPU. See also test_cuda_together.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine_tasks import one_thread, tiny_config, tiny_task
from torch import nn

from pathnn.engine import make_fabric, run
from pathnn.engine.graphs_batch import Capacity, graph_sizes
from pathnn.engine.run import prepare
from pathnn.engine.run_folder import RunFolder
from pathnn.engine.stacked_steps import StackedAdam
from pathnn.engine.together import TogetherError, most_together, run_together
from pathnn.nn import PathNN
from pathnn.nn.stacked import Stack

__all__ = ["one_thread"]


def test_without_a_gpu_runs_are_done_one_by_one(tmp_path: Path) -> None:
    configs, outs = [tiny_config(seed=seed) for seed in (0, 1)], [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(TogetherError, match="not on an NVIDIA GPU"):
        list(run_together(configs, outs, task=tiny_task()))
    assert run(configs[0], outs[0], task=tiny_task(), resume=True, curves=False)["epochs"] == 3  # nothing is locked


def test_other_options_are_refused(tmp_path: Path) -> None:
    configs = [tiny_config(), tiny_config(lr=0.1)]
    with pytest.raises(TogetherError, match="more than fold, seed and dropout"):
        list(run_together(configs, [tmp_path / "a", tmp_path / "b"], task=tiny_task()))


def test_how_many_the_memory_holds(tmp_path: Path) -> None:
    config = tiny_config(max_entries=20_000)
    ready = prepare(config, tiny_task(), RunFolder(tmp_path), make_fabric(config), resume=False)
    entries = sum(Capacity.of_sizes(graph_sizes(ready.loaders.train.graphs), 8, margin=4.5).levels)
    assert most_together(ready) == 20_000 // (2 * entries) > 1
    ready.loaders.train.max_entries = entries
    assert most_together(ready) == 0
    ready.loaders.train.max_entries = None
    assert most_together(ready) == 64


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
