"""The gradient in parts is the gradient."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pathnn.nn.backends.triton.ops import MANY, MOST_PARTS, PART, grad_of_weight, tall_linear
from pathnn.nn.cuda_graphs.padded_modules import TallLinear


@pytest.mark.parametrize("rows", [0, 1, 127, 128, 255, 256, 300, 1024])
@pytest.mark.parametrize("bias", [True, False])
def test_any_number_of_rows(rows: int, bias: bool):
    linear = nn.Linear(5, 3, bias=bias).double()
    x = torch.randn(rows, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(rows, 3, dtype=torch.float64)
    leaves = [x, *linear.parameters()]
    ours, theirs = (torch.autograd.grad((layer(x) * weights).sum(), leaves) for layer in (TallLinear(linear), linear))
    for value, truth in zip(ours, theirs, strict=True):
        torch.testing.assert_close(value, truth)


def test_autocast_is_torch_s():
    linear = nn.Linear(5, 3)
    x = torch.randn(300, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert TallLinear(linear)(x).dtype == torch.bfloat16


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(("rows", "wide", "deep"), [(MANY + 5, 122, 122), (MANY, 512, 128), (MANY + 300, 3, 40)])
def test_many_rows_on_a_gpu(rows: int, wide: int, deep: int) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(deep, wide).cuda()
    x = torch.randn(rows, deep, device="cuda", requires_grad=True)
    grad = torch.randn(rows, wide, device="cuda")
    leaves = [x, linear.weight, linear.bias]
    value = TallLinear(linear)(x)
    truth = F.linear(x.double(), linear.weight.double(), linear.bias.double())
    assert (value - truth).norm() <= 1e-6 * truth.norm()
    ours, theirs = torch.autograd.grad(value, leaves, grad), torch.autograd.grad(truth, leaves, grad.double())
    for one, other in zip(ours, theirs, strict=True):
        assert (one - other).norm() <= 1e-6 * other.norm()


def test_backward_under_autocast():
    linear, x = nn.Linear(5, 3), torch.randn(300, 5)
    value = tall_linear(x, linear.weight, linear.bias).sum()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (grad,) = torch.autograd.grad(value, linear.weight)
    torch.testing.assert_close(grad, x.sum(dim=0).expand(3, 5))


def test_parts_are_never_very_many():
    grad, x = torch.ones(PART * MOST_PARTS * 2 + 7, 1), torch.ones(PART * MOST_PARTS * 2 + 7, 2)
    assert grad_of_weight(grad, x).unique().tolist() == [PART * MOST_PARTS * 2 + 7]
