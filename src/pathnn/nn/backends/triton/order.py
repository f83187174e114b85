"""Sort rows by where they are summed, once: every sum then has a fixed order and needs no atomics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from pathnn.nn.backends.base import LevelTokens
from pathnn.paths.trie import PathTrie


class Order(NamedTuple):
    """A permutation that sorts rows by place, and where the rows of each place begin; rows count from `first_row`."""

    order: Tensor
    start: Tensor
    first_row: int = 0


def sort_keys(keys: Tensor, places: int) -> Order:
    """Sort rows with keys `0..places - 1`; equal keys stay in their order. `start` is `[places + 1]`."""
    small = places < torch.iinfo(torch.int16).max  # half as many passes of the radix sort
    dtype = torch.int16 if small else torch.int32
    values, order = torch.sort(keys.to(dtype), stable=True)
    bounds = torch.arange(places + 1, dtype=dtype, device=keys.device)
    return Order(order, torch.searchsorted(values, bounds, out_int32=True))


def order_by_vertex(levels: list[LevelTokens], num_nodes: int, places: int) -> Order:
    """Sort the entries of all levels, counted over all levels, by vertex; a dummy token is vertex `num_nodes`.

    The entries of the last level come first: they begin at `start[2 * v]` and end at `start[2 * v + 1]`; all entries
    of the vertex end at `start[2 * v + 2]`.
    """
    vertex = flat([level.vertex for level in levels])
    assert vertex is not None
    if places > num_nodes:
        vertex = torch.where(vertex < 0, num_nodes, vertex)
    keys = vertex * 2
    keys[: vertex.numel() - levels[-1].num_entries] += 1
    return sort_keys(keys, 2 * places)


def child_starts(level: LevelTokens, parents: int) -> Tensor:
    """Return where the children of each parent begin among the entries of a level, `[parents + 1]`, int32."""
    assert level.parent is not None
    bounds = torch.arange(parents + 1, dtype=level.parent.dtype, device=level.parent.device)
    return torch.searchsorted(level.parent, bounds, out_int32=True)


def split(order: Order, parts: int) -> Order:
    """Cut each place into `parts` places of about equal size, `[places * parts + 1]`: sum each part, then the parts."""
    first, size = order.start[:-1, None], order.start.diff()[:, None]
    part = torch.arange(parts, dtype=size.dtype, device=size.device)
    start = first + torch.minimum(part * ((size + parts - 1) // parts), size)
    return Order(order.order, torch.cat([start.view(-1), order.start[-1:]]))


def flat(levels: Sequence[Tensor | None]) -> Tensor | None:
    """Concatenate the rows of all levels, as a view if they are contiguous (a trie that was not cut); None without."""
    parts = [level for level in levels if level is not None]
    if not parts:
        return None
    first, total = parts[0], sum(part.numel() for part in parts)
    at = first.storage_offset()
    for part in parts:
        if part.numel() and (
            part.untyped_storage().data_ptr() != first.untyped_storage().data_ptr() or at != part.storage_offset()
        ):
            return torch.cat(parts)
        at += part.numel()
    return first.as_strided((total,), (1,))


class LengthPlan(NamedTuple):
    """The entries of one length sorted by vertex, and for each level but the first what `Tokens.children` returns."""

    order: Order
    children: tuple[tuple[Tensor, int], ...]


class Planner:
    """Make the plans of tries that all have the same `sizes`; `plan` does not wait for the GPU."""

    def __init__(self, like: PathTrie) -> None:
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

    def plan(self, trie: PathTrie) -> tuple[LengthPlan, ...]:
        """Return the plans of all lengths."""
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
            plans.append(LengthPlan(Order(order.order, start, first_row), tuple(own)))
            first_row += sum(levels)
        return tuple(plans)


def _repeat(values: list[tuple[int, int]], device: torch.device) -> Tensor:
    """Repeat each value as often as the number beside it, int32."""
    value, times = (torch.tensor(column, dtype=torch.int64) for column in zip(*values, strict=True))
    return value.repeat_interleave(times).to(device, torch.int32)
