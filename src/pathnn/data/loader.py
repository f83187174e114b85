"""Which graphs make a batch: a number of graphs, or as many as fill a budget of trie entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from pathnn.data.batch import GraphBatch
from pathnn.data.packed import PackedGraphs
from pathnn.device import default_max_entries


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


class PackedLoader:
    """Iterates over batches of `graphs[index]`; each pass is an epoch with an order of its own.

    `max_entries` bounds how many trie entries a model works on at once: a batch with more is not refused but
    says so (`batch.over_budget`) and gives its tries in pieces (`batch.pieces()`). "auto" takes it from the
    free memory. A `sampler` other than a number of graphs, such as `BudgetSampler`, takes the place of
    `batch_size`.

    With several processes every process has the same batches and takes its part of each, `rank` of
    `world_size`; a part is empty where a batch has fewer graphs than there are processes.

    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> graphs = PackedGraphs.from_edges([edge] * 5, [2] * 5)
    >>> [batch.num_graphs for batch in PackedLoader(graphs, batch_size=2)]
    [2, 2, 1]
    """

    def __init__(
        self,
        graphs: PackedGraphs,
        index: Tensor | Sequence[int] | None = None,
        *,
        batch_size: int = 32,
        shuffle: bool = False,
        seed: int = 0,
        drop_single: bool = False,
        max_entries: int | Literal["auto"] | None = "auto",
        device: torch.device | str | None = None,
        sampler: SizeSampler | BudgetSampler | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank={rank}, world_size={world_size}: expected a rank below the number of processes.")
        self.rank, self.world_size = rank, world_size
        self.graphs = graphs
        self.index = torch.arange(len(graphs)) if index is None else torch.as_tensor(index, dtype=torch.long).cpu()
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self.device = graphs.device if device is None else torch.device(device)
        self.max_entries = default_max_entries(self.device) if max_entries == "auto" else max_entries
        self.sampler = SizeSampler(batch_size, drop_single) if sampler is None else sampler

    def __len__(self) -> int:
        """Number of batches of the next epoch."""
        return sum(1 for _ in self.sampler.batches(self._order()))

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch, so that a resumed run sees the order it would have seen."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[GraphBatch]:
        order = self._order()
        self.epoch += 1
        for index in self.sampler.batches(order):
            yield self.batch(index.tensor_split(self.world_size)[self.rank])

    def batch(self, index: Tensor) -> GraphBatch:
        """The batch of some graphs, on the loader's device."""
        batch = self.graphs.select(index)
        if batch.device != self.device:
            pinned = batch.pin_memory() if self.device.type == "cuda" and batch.device.type == "cpu" else batch
            batch = pinned.to(self.device, non_blocking=True)
        return replace(batch, max_entries=self.max_entries)

    def _order(self) -> Tensor:
        return epoch_order(self.index, shuffle=self.shuffle, seed=self.seed, epoch=self.epoch)
