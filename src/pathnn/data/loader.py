"""Batches of a packed dataset, with their tries, within a budget of entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from pathnn.data.batch import GraphBatch
from pathnn.data.memory import default_max_entries
from pathnn.data.packed import PackedGraphs
from pathnn.data.sampler import BudgetSampler, SizeSampler, epoch_order


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
