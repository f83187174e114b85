"""The shapes of padded batches: little padding, also where a few graphs are much larger than the others."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from pathnn.training.cuda_graphs.padded_batch import PaddedShape


def batches_of(sizes: Tensor, batch_size: int, number: int) -> Tensor:
    return torch.stack([sizes[torch.randperm(len(sizes))[:batch_size]].sum(dim=0) for _ in range(number)])


def few_large_graphs() -> Tensor:
    """Vertices of 1000 graphs, most of them small; as many edges as in a complete graph; two levels."""
    nodes = torch.cat([torch.randint(5, 20, (970,)), torch.randint(60, 120, (30,))])
    edges = nodes * (nodes - 1)
    return torch.stack([edges, edges * (nodes - 2), nodes, edges], dim=1)


def test_little_of_a_shape_is_padding():
    torch.manual_seed(0)
    sizes = few_large_graphs()
    shapes = PaddedShape.shapes(sizes, 32)
    assert 3 <= len(shapes) <= 8
    amounts = [sum(shape.levels) for shape in shapes]
    assert all(b >= 1.05 * a for a, b in pairwise(amounts))
    used = room = 0
    for batch in batches_of(sizes, 32, 600):
        fitting = [shape for shape in shapes if shape.holds(batch)]
        room += sum(fitting[0].levels) if fitting else int(batch[:-2].sum())
        used += int(batch[:-2].sum())
    assert used / room > 0.7
    assert sum(map(shapes[-1].holds, batches_of(sizes, 32, 1000))) > 980


def test_many_graphs_are_not_shuffled_for_every_batch(monkeypatch: pytest.MonkeyPatch):
    shuffled, randperm = [], torch.randperm
    monkeypatch.setattr(torch, "randperm", lambda n, **options: shuffled.append(n) or randperm(n, **options))
    assert PaddedShape.shapes(torch.ones(100_000, 4, dtype=torch.long), 32)[0].nodes == 34
    assert len(shuffled) == 1
    PaddedShape.shapes(torch.ones(100, 4, dtype=torch.long), 32)
    assert len(shuffled) == 1 + -(-512 // 3)


def test_the_global_random_numbers_are_left_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first = PaddedShape.shapes(few_large_graphs()[:50], 8)
    torch.manual_seed(3)
    again = PaddedShape.shapes(few_large_graphs()[:50], 8)
    assert first == again
    torch.manual_seed(3)
    PaddedShape.shapes(torch.ones(9, 4, dtype=torch.long), 8)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("columns", [2, 4])
@pytest.mark.parametrize(("graphs", "batch_size"), [(1, 1), (3, 8), (8, 8), (5, 1)])
def test_few_graphs(graphs: int, batch_size: int, columns: int):
    sizes = torch.arange(graphs * columns).view(graphs, columns)
    *_, last = PaddedShape.shapes(sizes, batch_size)
    assert last.holds(sizes.sort(dim=0, descending=True).values[:batch_size].sum(dim=0))
    assert PaddedShape.shapes(torch.zeros(4, 4, dtype=torch.long), 2) == [PaddedShape(2, 1, 1, (1, 1))]
