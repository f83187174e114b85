"""The gradient in parts is the gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pathnn.nn.tall_linear import TallLinear


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
