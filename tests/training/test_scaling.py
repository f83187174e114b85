"""Targets in the network's unit: what is learned, and the way back."""

from __future__ import annotations

import pytest
import torch

from engine_tasks import tiny_config, tiny_task
from pathnn.data.task import TargetScale
from pathnn.training import build_model, make_loaders


def test_targets_are_learned_with_mean_0_and_deviation_1():
    y = torch.tensor([[1.0, -4.0], [3.0, 0.0], [8.0, 4.0]], dtype=torch.float64)
    scale = TargetScale.of(y)
    assert scale.mean == pytest.approx((4.0, 0.0))
    assert scale.std == pytest.approx(((26 / 3) ** 0.5, (32 / 3) ** 0.5))
    encoded = scale.encode(y)
    torch.testing.assert_close(encoded.mean(dim=0), y.new_zeros(2))
    torch.testing.assert_close(encoded.std(dim=0, correction=0), y.new_ones(2))
    torch.testing.assert_close(scale.decode(encoded), y)


@pytest.mark.parametrize("y", [[[2.5]], [[2.5], [2.5], [2.5]], [[2.5], [float("nan")]]])
def test_a_constant_target_is_only_shifted(y):
    scale = TargetScale.of(torch.tensor(y))
    assert scale == TargetScale((2.5,), (1.0,))


def test_what_is_not_known_is_passed_over():
    y = torch.tensor([[1.0, 5.0], [float("nan"), 7.0], [3.0, float("nan")]])
    assert TargetScale.of(y) == TargetScale((2.0, 6.0), (1.0, 1.0))


def test_large_targets_keep_their_mean():
    assert TargetScale.of(torch.tensor([[1e8], [1e8 + 8]])) == TargetScale((1e8 + 4,), (4.0,))


def test_without_a_scale_targets_stay_as_they_are():
    y = torch.tensor([[1.0], [3.0]])
    assert TargetScale().encode(y) is y
    assert TargetScale().decode(y) is y


def test_the_scale_is_that_of_the_graphs_to_train_on():
    task, config = tiny_task(), tiny_config(standardize=True)
    loaders = make_loaders(task, config, build_model(config, task), device="cpu")
    assert loaders.scale == TargetScale.of(task.graphs.y[task.splits[0].train])
    assert loaders.scale != TargetScale.of(task.graphs.y)


def test_both_ways_are_computed_in_float64():
    """In float32 a mean of 1e7 leaves whole numbers only."""
    scale = TargetScale((1e7,), (0.5,))
    y = torch.tensor([[1e7 + 0.125]], dtype=torch.float64)
    assert scale.encode(y).item() == 0.25
    assert scale.decode(torch.tensor([[0.25]])).item() == 1e7 + 0.125
