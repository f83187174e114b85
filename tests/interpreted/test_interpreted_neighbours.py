"""Sums over neighbours by the GPU's kernels in Triton's interpreter, against plain operations: values, gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pathnn.nn import neighbours
from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.neighbours import Neighbours, gcn_sum, gin_sum
from triton_on_cpu import Interpreted, difference

NODES, EDGES, KINDS = 12, 40, 5


def random_edges(models: int) -> Neighbours:
    """Directed, with loops, edges that are there twice and vertices without any; a model's stay among its own."""
    torch.manual_seed(0)
    one = torch.randint(0, NODES - 2, (2, models, EDGES))
    one[:, :, :3] = 4
    first = NODES * torch.arange(models).view(1, models, 1)
    return Neighbours((one + first).view(2, -1), models * NODES)


def gradients(out: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    weights = torch.linspace(-1, 2, out.numel()).view_as(out)
    return torch.autograd.grad((out * weights).sum(), inputs)


@pytest.mark.parametrize("width", [3, 20, 300])
def test_gcn_sum(width: int, interpreted: Interpreted) -> None:
    edges, x = random_edges(2), torch.randn(2 * NODES, width, requires_grad=True)
    ours = gcn_sum(x, edges)
    with interpreted.off():
        theirs = gcn_sum(x, edges)
    assert ours.grad_fn is not None
    assert type(ours.grad_fn).__name__ == "_GcnSumBackward"  # and not the same operations twice
    assert difference(ours.detach(), theirs.detach()) <= 1e-6
    assert difference(gradients(ours, x)[0], gradients(theirs, x)[0]) <= 1e-6


@pytest.mark.parametrize(
    ("models", "width", "kinds"),
    [(1, 20, None), (3, 20, None), (1, 20, KINDS), (3, 20, KINDS), (2, 300, 17), (2, 20, 264)],
)
def test_gin_sum(
    models: int, width: int, kinds: int | None, interpreted: Interpreted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "EDGES_PER_PART", 16)
    edges, x = random_edges(models), torch.randn(models * NODES, width, requires_grad=True)
    bonds: Any = None
    if kinds is not None:
        first = kinds * torch.arange(models).repeat_interleave(EDGES)
        table = torch.randn(models * kinds, width, requires_grad=True)
        bonds = EdgeTypes(table, torch.randint(0, kinds, (models * EDGES,)) + first)
    inputs = (x,) if bonds is None else (x, bonds.table)
    ours = gin_sum(x, edges, bonds, own=1.25, models=models)
    with interpreted.off():
        theirs = gin_sum(x, edges, bonds, own=1.25, models=models)
        assert type(theirs.grad_fn).__name__ != type(ours.grad_fn).__name__ == "_GinSumBackward"
        expected = gradients(theirs, *inputs)
    assert difference(ours.detach(), theirs.detach()) <= 1e-6
    for mine, other in zip(gradients(ours, *inputs), expected, strict=True):
        assert difference(mine, other) <= 1e-6


def test_more_kinds_than_a_product_has_room_for(interpreted: Interpreted) -> None:
    edges, x = random_edges(1), torch.randn(NODES, 8, requires_grad=True)
    bonds = EdgeTypes(torch.randn(neighbours.MOST_KINDS + 1, 8), torch.randint(0, neighbours.MOST_KINDS, (EDGES,)))
    assert type(gin_sum(x, edges, bonds).grad_fn).__name__ != "_GinSumBackward"


def test_no_edges_and_no_vertices(interpreted: Interpreted) -> None:
    nothing = torch.zeros(2, 0, dtype=torch.long)
    x = torch.randn(3, 4, requires_grad=True)
    table = torch.randn(2, 4, requires_grad=True)
    out = gin_sum(x, Neighbours(nothing, 3), EdgeTypes(table, nothing[0]))
    torch.testing.assert_close(out, x)
    assert bool((gradients(out, table)[0] == 0).all())
    assert gin_sum(x[:0], Neighbours(nothing, 0)).shape == (0, 4)
