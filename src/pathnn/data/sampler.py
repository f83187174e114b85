"""Which graphs make a batch: a number of graphs, or as many as fill a budget of trie entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


def epoch_order(index: Tensor, *, shuffle: bool, seed: int, epoch: int) -> Tensor:
    """The graphs of an epoch in the order they are visited; the same for the same seed and epoch.

    >>> epoch_order(torch.arange(4), shuffle=False, seed=0, epoch=3).tolist()
    [0, 1, 2, 3]
    """
    if not shuffle:
        return index
    generator = torch.Generator().manual_seed((seed * 1_000_003 + epoch) % 2**63)
    return index[torch.randperm(index.numel(), generator=generator)]


@dataclass(frozen=True, eq=False)
class SizeSampler:
    """Batches of `batch_size` graphs; `drop_single` leaves out a last batch of one (BatchNorm).

    >>> [batch.tolist() for batch in SizeSampler(2, drop_single=True).batches(torch.arange(5))]
    [[0, 1], [2, 3]]
    """

    batch_size: int
    drop_single: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size={self.batch_size}: expected at least 1.")

    def batches(self, order: Tensor) -> Iterator[Tensor]:
        """Cut an epoch's order into batches."""
        for batch in torch.split(order, self.batch_size):
            if batch.numel() and not (self.drop_single and batch.numel() == 1 and order.numel() > 1):
                yield batch


@dataclass(frozen=True, eq=False)
class BudgetSampler:
    """Batches filled up to `max_entries` trie entries: even work instead of an even number of graphs.

    `entries` is the number of entries of each graph. A graph that exceeds the budget is a batch of its own
    (its tries can then be cut into pieces). Graphs are taken in order, so that shuffling stays random.

    >>> sampler = BudgetSampler(torch.tensor([3, 3, 9, 1]), max_entries=6)
    >>> [batch.tolist() for batch in sampler.batches(torch.arange(4))]
    [[0, 1], [2], [3]]
    """

    entries: Tensor
    max_entries: int
    max_graphs: int | None = None
    drop_single: bool = False

    def __post_init__(self) -> None:
        if self.max_entries < 1:
            raise ValueError(f"max_entries={self.max_entries}: expected at least 1.")
        if self.max_graphs is not None and self.max_graphs < 1:
            raise ValueError(f"max_graphs={self.max_graphs}: expected at least 1, or None for no limit.")

    def batches(self, order: Tensor) -> Iterator[Tensor]:
        """Cut an epoch's order into batches."""
        total = self.entries[order].cumsum(dim=0)
        start, before = 0, 0
        while start < order.numel():
            stop = int(torch.searchsorted(total, before + self.max_entries, right=True))
            stop = max(stop, start + 1)
            if self.max_graphs is not None:
                stop = min(stop, start + self.max_graphs)
            if not (self.drop_single and stop - start == 1 and order.numel() > 1):
                yield order[start:stop]
            start, before = stop, int(total[stop - 1])
