"""The linear layers of several networks, as products on tensor cores, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from pathnn.nn.backends.triton import tall_linear as module
from pathnn.nn.backends.triton.tall_linear import tall_linear
from triton_on_cpu import Interpreted, difference, large_batches


@pytest.mark.parametrize("wanted", ["xwb", "xb", "b", "w", "x"])
def test_each_network_has_its_own_layer(wanted: str, interpreted: Interpreted, monkeypatch: pytest.MonkeyPatch) -> None:
    large_batches(monkeypatch)
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2 * module.WHOLE, 12), torch.randn(2, 20, 12), torch.randn(2, 20)
    assert module._split(x, weight) is not None
    leaves = [leaf.requires_grad_() for name, leaf in (("x", x), ("w", weight), ("b", bias)) if name in wanted]
    out = tall_linear(x, weight, bias)
    truth = torch.cat(
        [torch.nn.functional.linear(x[i * module.WHOLE :][: module.WHOLE], weight[i], bias[i]) for i in (0, 1)]
    )
    assert difference(out.detach(), truth.detach()) <= 1e-6
    grad = torch.randn_like(out)
    ours, theirs = (torch.autograd.grad(result, leaves, grad) for result in (out, truth))
    for mine, other in zip(ours, theirs, strict=True):
        assert difference(mine, other) <= 1e-6
