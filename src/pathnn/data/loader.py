"""Load batches of graphs: a fixed number of graphs, or as many as fill a budget of trie entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from pathnn.checks import check_count
from pathnn.data.packed import GraphBatch, PackedGraphs
from pathnn.data.paths import graph_ranges
from pathnn.device import default_max_entries


@dataclass(frozen=True, eq=False)
class SizeSampler:
    """Make batches of `batch_size` graphs; `drop_single` leaves out a last batch of one (BatchNorm).

    >>> [batch.tolist() for batch in SizeSampler(2, drop_single=True).batches(torch.arange(5))]
    [[0, 1], [2, 3]]
    """

    batch_size: int
    drop_single: bool = False

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size)

    def batches(self, order: Tensor) -> Iterator[Tensor]:
        """Cut the order of an epoch into batches."""
        for batch in torch.split(order, self.batch_size):
            if batch.numel() and not (self.drop_single and batch.numel() == 1 and order.numel() > 1):
                yield batch


@dataclass(frozen=True, eq=False)
class BudgetSampler:
    """Fill batches up to `max_entries` trie entries: equal work instead of an equal number of graphs.

    `entries` is the number of entries of each graph. A graph that exceeds the budget forms a batch alone. Graphs are
    taken in order, so that shuffling stays random.

    >>> sampler = BudgetSampler(torch.tensor([3, 3, 9, 1]), max_entries=6)
    >>> [batch.tolist() for batch in sampler.batches(torch.arange(4))]
    [[0, 1], [2], [3]]
    """

    entries: Tensor
    max_entries: int
    max_graphs: int | None = None
    drop_single: bool = False

    def __post_init__(self) -> None:
        check_count("max_entries", self.max_entries)
        if self.max_graphs is not None:
            check_count("max_graphs", self.max_graphs)

    def batches(self, order: Tensor) -> Iterator[Tensor]:
        """Cut the order of an epoch into batches."""
        for start, stop in graph_ranges(self.entries[order], self.max_entries, self.max_graphs):
            if not (self.drop_single and stop - start == 1 and order.numel() > 1):
                yield order[start:stop]


class PackedLoader:
    """Iterate over batches of `graphs[index]`; each pass is an epoch, and shuffled epochs have different orders.

    `max_entries` bounds how many trie entries a model processes at once: it cuts the tries of a larger batch into
    pieces. "auto" derives it from the free memory. A `sampler`, such as `BudgetSampler`, replaces `batch_size`.

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
    ) -> None:
        self.graphs = graphs
        self.index = torch.arange(len(graphs)) if index is None else torch.as_tensor(index, dtype=torch.long).cpu()
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self.device = graphs.device if device is None else torch.device(device)
        self.max_entries = default_max_entries(self.device) if max_entries == "auto" else max_entries
        self.sampler = SizeSampler(batch_size, drop_single) if sampler is None else sampler

    def __len__(self) -> int:
        """Number of batches of the next epoch."""
        return len(self.indices(self.epoch))

    def indices(self, epoch: int) -> list[Tensor]:
        """Return the graphs of each batch of an epoch, in order; the same for the same seed and epoch."""
        order = self.index
        if self.shuffle:
            generator = torch.Generator().manual_seed((self.seed * 1_000_003 + epoch) % 2**63)
            order = order[torch.randperm(order.numel(), generator=generator)]
        return list(self.sampler.batches(order))

    def __iter__(self) -> Iterator[GraphBatch]:
        batches = self.indices(self.epoch)
        self.epoch += 1
        yield from map(self.batch, batches)

    def batch(self, index: Tensor) -> GraphBatch:
        """Return the batch of some graphs, on the loader's device."""
        batch = self.graphs.select(index)
        if batch.device != self.device:
            pinned = batch.pin_memory() if self.device.type == "cuda" and batch.device.type == "cpu" else batch
            batch = pinned.to(self.device, non_blocking=True)
        return replace(batch, max_entries=self.max_entries)
