"""Kernel ridge regression on features of graphs, against a slow version of its definition, and in models and files."""

from __future__ import annotations

from math import exp, log1p
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from pathnn.nn import PathNN
from pathnn.nn.kernel_regression import PRIOR, RIDGES, SHARE, KernelRegression
from pathnn.nn.model_file import load_pretrained
from pathnn.nn.readout import COUNTS

COUNTED, OTHERS = 6, 3


def slow_similarity(a: list[float], b: list[float]) -> float:
    """Tanimoto similarity of two multisets, and a Gaussian of the distance of the other features."""
    both = sum(min(x, y) for x, y in zip(a[:COUNTED], b[:COUNTED], strict=True))
    either = sum(max(x, y) for x, y in zip(a[:COUNTED], b[:COUNTED], strict=True))
    far = sum((x - y) ** 2 for x, y in zip(a[COUNTED:], b[COUNTED:], strict=True))
    return (both / max(either, 1) + exp(-far / (2 * OTHERS))) / 2


def slow_predict(
    rows: list[list[float]], y: list[float], kept: list[int], query: list[list[float]], ridge: float
) -> np.ndarray:
    """Predict with the graphs in `kept`, by the formula; the constant is the mean of all targets."""
    mean = float(np.mean(y))
    matrix = np.array([[slow_similarity(rows[i], rows[j]) for j in kept] for i in kept])
    weights = np.linalg.solve(matrix + ridge * np.eye(len(kept)), [y[i] - mean for i in kept])
    return mean + np.array([[slow_similarity(row, rows[j]) for j in kept] for row in query]) @ weights


def slow_left_out(rows: list[list[float]], y: list[float], i: int, ridge: float) -> float:
    kept = [j for j in range(len(rows)) if j != i]
    return float(slow_predict(rows, y, kept, [rows[i]], ridge)[0])


def features(number: int, seed: int = 0) -> tuple[list[list[float]], Tensor]:
    """Counts from 0 to 8 and other numbers, plain and as a `GraphScale` returns them."""
    draw = np.random.default_rng(seed)
    counts, others = draw.integers(0, 9, (number, COUNTED)), draw.normal(size=(number, OTHERS))
    scaled = np.concatenate([COUNTS * np.log1p(counts), others], axis=1)
    return np.concatenate([counts, others], axis=1).tolist(), torch.tensor(scaled, dtype=torch.float32)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_it_is_ridge_regression_with_the_penalty_of_the_least_leave_one_out_error(noise: float) -> None:
    (rows, inputs), (query, asked) = features(25), features(7, seed=1)
    y = [row[0] + row[COUNTED] + noise * float(i % 5) for i, row in enumerate(rows)]
    kernel = KernelRegression.fitted(inputs, torch.tensor(y)[:, None], counts=COUNTED, factor=COUNTS)
    best = min(RIDGES, key=lambda ridge: sum((slow_left_out(rows, y, i, ridge) - y[i]) ** 2 for i in range(25)))
    left_out = [slow_left_out(rows, y, i, best) for i in range(25)]
    expected = slow_predict(rows, y, list(range(25)), query, best)
    np.testing.assert_allclose(kernel(asked).flatten().numpy(), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(kernel.left_out.flatten().numpy(), left_out, rtol=1e-4, atol=1e-4)


def test_an_unknown_target_leaves_out_the_graph_for_this_target_only() -> None:
    _, inputs = features(20)
    y = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y[:5, 1] = torch.nan
    all_targets = KernelRegression.fitted(inputs, y, counts=COUNTED, factor=COUNTS)
    _, asked = features(4, seed=2)
    for target, rows in enumerate((slice(None), slice(5, None), slice(None))):
        known = y[rows, target : target + 1]
        alone = KernelRegression.fitted(inputs[rows], known, counts=COUNTED, factor=COUNTS)
        if target == 1:
            torch.testing.assert_close(all_targets(asked)[:, 1:2], alone(asked), rtol=1e-4, atol=1e-4)
        else:  # the others share their penalty
            assert (all_targets(asked)[:, target : target + 1] - alone(asked)).abs().max() < 1.0


@pytest.mark.parametrize("counts", [0, COUNTED + OTHERS])
def test_features_may_be_counts_or_other_numbers_alone(counts: int) -> None:
    inputs = torch.rand(12, COUNTED + OTHERS)
    kernel = KernelRegression.fitted(inputs, inputs.sum(dim=1, keepdim=True), counts=counts)
    assert kernel(inputs).shape == (12, 1)
    found = kernel.similarity(inputs)
    assert float(found.min()) >= 0
    assert float(found.max()) <= 1 + 1e-6


def test_copies_of_a_graph_do_not_fail() -> None:
    _, inputs = features(10)
    inputs = torch.cat([inputs] * 5)
    y = torch.arange(50.0)[:, None]
    assert KernelRegression.fitted(inputs, y, counts=COUNTED, factor=COUNTS)(inputs).isfinite().all()


def test_the_share_is_the_best_one_pulled_towards_a_constant() -> None:
    kernel = KernelRegression(1, 1, 1, 0, 3)
    number = 30
    y = torch.randn(number, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y[0, 0] = torch.nan
    wrong = y.nan_to_num() + 1.0
    out, own = (
        torch.stack([y[:, 0].nan_to_num(), wrong[:, 1], y[:, 2] - 1], 1),
        torch.stack([wrong[:, 0], y[:, 1], y[:, 2] + 3], 1),
    )
    kernel.fit_share(out, own, y)
    known = torch.tensor([number - 1, number, number])
    best = torch.tensor([0.0, 1.0, 0.25])  # the network is right; the kernel is; one part of the kernel to three
    torch.testing.assert_close(kernel.share, (known * best + PRIOR * SHARE) / (known + PRIOR))


def model_with_kernel() -> tuple[PathNN, dict[str, Tensor]]:
    torch.manual_seed(0)
    _, inputs = features(15)
    inputs[:, :COUNTED] /= COUNTS  # as descriptors have them: the logarithm of 1 + a count
    model = PathNN(2, 8, 2, collection="sp", k=2, graph_channels=COUNTED + OTHERS)
    model.graph_scale.fit(inputs, counts=COUNTED)
    model.fit_kernel(inputs, torch.randn(15, 2), counts=COUNTED)
    data = {"x": torch.rand(3, 2), "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), "graph_attr": inputs[:1]}
    return model.eval(), data


def test_a_model_averages_in_evaluation_mode_only() -> None:
    model, data = model_with_kernel()
    kernel = model.kernel
    assert kernel is not None
    network, own = model(**data), kernel(model.graph_scale(data["graph_attr"]))
    kernel.share.copy_(torch.tensor([0.25, 1.0]))
    torch.testing.assert_close(model(**data), torch.stack([0.75 * network[:, 0] + 0.25 * own[:, 0], own[:, 1]], 1))
    model.train()
    model(**data).sum().backward()
    assert all(parameter.grad is not None for parameter in model.head.parameters())
    assert model.kernel is not None
    assert not model.kernel.weight.requires_grad


@pytest.mark.parametrize("double", [False, True])
def test_a_file_has_the_kernel(tmp_path: Path, double: bool) -> None:
    model, data = model_with_kernel()
    assert model.kernel is not None
    model.kernel.share.fill_(0.5)
    if double:
        model.double()
        data = {name: part.double() if part.is_floating_point() else part for name, part in data.items()}
    model.save_pretrained(tmp_path)
    again = load_pretrained(tmp_path)
    torch.testing.assert_close(again(**data), model(**data), rtol=0, atol=0)
    assert again.config.kernel == model.config.kernel


def test_the_counts_are_those_of_the_descriptors() -> None:
    """`GraphScale` multiplies logarithms of counts, and the kernel recovers the counts exactly."""
    model, data = model_with_kernel()
    kernel = model.kernel
    assert kernel is not None
    similar = kernel.similarity(model.graph_scale(data["graph_attr"]))
    assert float(similar[0, 0]) == pytest.approx(1.0, abs=1e-5)
    rows, _ = features(15)
    expected = [slow_similarity([*rows[0][:COUNTED], 0, 0, 0], [*row[:COUNTED], 0, 0, 0]) for row in rows]
    alone = KernelRegression.fitted(
        model.graph_scale(torch.tensor([[*map(log1p, row[:COUNTED]), *row[COUNTED:]] for row in rows]))[:, :COUNTED],
        torch.zeros(15, 1), counts=COUNTED, factor=COUNTS,
    )  # fmt: skip
    found = alone.similarity(model.graph_scale(data["graph_attr"])[:, :COUNTED])[0]
    np.testing.assert_allclose(found.numpy(), 2 * np.array(expected) - 1, atol=1e-5)


def test_what_has_no_features_has_no_kernel() -> None:
    with pytest.raises(ValueError, match="graph_channels"):
        PathNN(2, 8, 1, collection="sp", k=2).fit_kernel(torch.rand(3, 2), torch.rand(3, 1))
    model = PathNN(2, 8, 1, collection="sp", k=2, graph_channels=2, head="linear")
    with pytest.raises(ValueError, match="head='mlp'"):
        model.fit_kernel(torch.rand(3, 2), torch.rand(3, 1))
    model = PathNN(2, 8, 1, collection="sp", k=2, graph_channels=2)
    with pytest.raises(ValueError, match=r"expected shape \(3, 1\)"):
        model.fit_kernel(torch.rand(3, 2), torch.rand(3, 2))
