"""What the sums and the backward pass need to know about a batch, worked out for all lengths at once.

A batch of fixed shape (for a CUDA graph) has the same levels every time, so that one sort and two searches do for all
of them; operation by operation, `cuda_order` does the same length by length.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from pathnn.nn.engines.cuda_order import Order, sort_keys
from pathnn.paths.trie import PathTrie


class LengthPlan(NamedTuple):
    """One length: its entries sorted by vertex, and for each of its levels but the first, where the children of each
    parent begin, `[parents + 1]`, counted from a child that is given beside. In a batch of several models `spans`,
    `[levels, 2]`, is where each level begins and how many of its entries are one model's; None for one model."""

    order: Order
    children: tuple[tuple[Tensor, int], ...]
    spans: Tensor | None = None


class Planner:
    """Makes the plans of tries that have all the same `sizes`; nothing in `plan` waits for the GPU."""

    def __init__(self, like: PathTrie, models: int = 1) -> None:
        sizes, device = like.sizes, like.vertex.device
        self.sizes, self.dummy = sizes, like.num_nodes if like.extended else None
        self.places = like.num_nodes + int(like.extended)
        keys, parents, above = [], [], 0
        for length, levels in enumerate(sizes):
            for t, size in enumerate(levels):
                keys += [(2 * self.places * length + (t < len(levels) - 1), size)]
                parents += [(above, size)] if t else []
                above += levels[t - 1] if t else 0
            # a level's parents are counted after those of all levels before it
        self._key_shift, self._parent_shift = _repeat(keys, device), _repeat(parents, device)
        self._parents = torch.arange(above + 1, dtype=torch.int32, device=device)
        self._spans = [_spans(levels, models, device) if models > 1 else None for levels in sizes]

    def plan(self, trie: PathTrie) -> tuple[LengthPlan, ...]:
        """The plans of all lengths."""
        vertex = trie.vertex if self.dummy is None else torch.where(trie.vertex < 0, self.dummy, trie.vertex)
        places = 2 * self.places * len(self.sizes)
        order = sort_keys(torch.add(self._key_shift, vertex, alpha=2), places)
        children = torch.searchsorted(trie.parent + self._parent_shift, self._parents, out_int32=True)
        plans, first_row, first_child, above = [], 0, 0, 0
        for length, levels in enumerate(self.sizes):
            first = 2 * self.places * length
            own = []
            for parents, size in pairwise(levels):
                own.append((children[above : above + parents + 1], first_child))
                above, first_child = above + parents, first_child + size
            start = order.start[first : first + 2 * self.places + 1]
            plans.append(LengthPlan(Order(order.order, start, first_row), tuple(own), self._spans[length]))
            first_row += sum(levels)
        return tuple(plans)


def _spans(levels: tuple[int, ...], models: int, device: torch.device) -> Tensor:
    rows = [(first, size // models) for first, size in zip(accumulate(levels, initial=0), levels, strict=False)]
    return torch.tensor(rows, dtype=torch.int32).to(device)


def _repeat(values: list[tuple[int, int]], device: torch.device) -> Tensor:
    """Each value as many times as is said beside it, int32."""
    value, times = (torch.tensor(column, dtype=torch.int64) for column in zip(*values, strict=True))
    return value.repeat_interleave(times).to(device, torch.int32)
