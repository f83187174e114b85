"""Sums over neighbours on a GPU are those of plain operations, values and gradients, and the same bits every time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.neighbours import Neighbours, gcn_sum, gin_sum

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
NODES, EDGES = 1000, 2300


def random_edges(models: int) -> Neighbours:
    """Directed, with loops, edges that are there twice and vertices without any; a model's stay among its own."""
    torch.manual_seed(0)
    one = torch.randint(0, NODES - 20, (2, models, EDGES), device="cuda")
    one[:, :, :3] = 4
    first = NODES * torch.arange(models, device="cuda").view(1, models, 1)
    return Neighbours((one + first).view(2, -1), models * NODES)


def gradients(out: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    weights = torch.linspace(-1, 2, out.numel(), device=out.device, dtype=out.dtype).view_as(out)
    return torch.autograd.grad((out * weights).sum(), inputs)


@pytest.mark.parametrize("width", [20, 144, 300])
def test_gcn_sum(width: int) -> None:
    edges, x = random_edges(2), torch.randn(2 * NODES, width, device="cuda", requires_grad=True)
    ours, again = gcn_sum(x, edges), gcn_sum(x, edges)
    assert type(ours.grad_fn).__name__ == "_GcnSumBackward"
    exact = x.detach().double().requires_grad_()
    theirs = gcn_sum(exact, edges)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients(ours, x)[0].double(), gradients(theirs, exact)[0], rtol=1e-5, atol=1e-5)
    assert torch.equal(ours, again)
    assert torch.equal(gradients(again, x)[0], gradients(gcn_sum(x, edges), x)[0])


@pytest.mark.parametrize(
    ("models", "width", "kinds"),
    [(1, 64, None), (20, 32, None), (1, 174, 4), (10, 144, 60), (2, 300, 128), (3, 64, 264)],
)
def test_gin_sum(models: int, width: int, kinds: int | None) -> None:
    edges, x = random_edges(models), torch.randn(models * NODES, width, device="cuda", requires_grad=True)
    exact: list[Tensor] = [x.detach().double().requires_grad_()]
    bonds: Any = None
    exact_bonds: Any = None
    if kinds is not None:
        first = kinds * torch.arange(models, device="cuda").repeat_interleave(EDGES)
        types = torch.randint(0, kinds, (models * EDGES,), device="cuda") + first
        bonds = EdgeTypes(torch.randn(models * kinds, width, device="cuda", requires_grad=True), types)
        exact_bonds = EdgeTypes(bonds.table.detach().double().requires_grad_(), types)
        exact.append(exact_bonds.table)
    inputs = (x,) if bonds is None else (x, bonds.table)
    ours, again = (gin_sum(x, edges, bonds, own=1.25, models=models) for _ in range(2))
    assert type(ours.grad_fn).__name__ == "_GinSumBackward"
    theirs = gin_sum(exact[0], edges, exact_bonds, own=1.25, models=models)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    mine, more = gradients(ours, *inputs), gradients(again, *inputs)
    for one, other, truth in zip(mine, more, gradients(theirs, *exact), strict=True):
        assert torch.equal(one, other)
        assert float((one.double() - truth).norm() / truth.norm()) <= 1e-6
