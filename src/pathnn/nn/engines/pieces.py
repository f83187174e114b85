"""A trie cut by roots: into pieces that fit a memory budget, or into parts for several cores. Sums add up."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from pathnn.nn.engines.level import LevelRows


def cut(levels: list[LevelRows], max_entries: int) -> list[list[LevelRows]]:
    """Pieces of at most `max_entries` entries, as far as roots allow: one root with its descendants is not cut.

    Entries are sorted by parent, so the descendants of consecutive roots are consecutive in every level.
    """
    if max_entries < 1:
        raise ValueError(f"max_entries={max_entries}: expected a positive number of trie entries, or None.")
    if sum(level.num_entries for level in levels) <= max_entries:
        return [levels]
    ends = _descendant_ends(levels)
    total = torch.stack(ends).sum(dim=0)
    starts, last = [0], total.numel() - 1
    while starts[-1] < last:
        limit = int(total[starts[-1]]) + max_entries
        fitting = int(torch.searchsorted(total, limit, right=True)) - 1
        starts.append(max(fitting, starts[-1] + 1))
    return _slices(levels, ends, starts)


def cut_evenly(levels: list[LevelRows], parts: int) -> list[list[LevelRows]]:
    """At most `parts` parts with about the same number of entries."""
    if parts == 1 or levels[0].num_entries < 2:
        return [levels]
    ends = _descendant_ends(levels)
    total = torch.stack(ends).sum(dim=0)
    targets = torch.arange(1, parts) * int(total[-1]) // parts
    inner = torch.searchsorted(total, targets).clamp_(1, total.numel() - 1)
    return _slices(levels, ends, sorted({0, *inner.tolist(), total.numel() - 1}))


def _descendant_ends(levels: list[LevelRows]) -> list[Tensor]:
    """For each level, where the descendants of the first 0, 1, 2, ... roots end: `[num_roots + 1]`, on the CPU."""
    ends = [torch.arange(levels[0].num_entries + 1)]
    for level in levels[1:]:
        assert level.parent is not None
        ends.append(torch.searchsorted(level.parent.cpu(), ends[-1].to(level.parent.dtype)))
    return ends


def _slices(levels: list[LevelRows], ends: list[Tensor], starts: list[int]) -> list[list[LevelRows]]:
    """The entries below the roots from each start to the next."""
    bounds = torch.stack([end[torch.tensor(starts)] for end in ends], dim=1).tolist()
    pieces = []
    for first, last in pairwise(bounds):
        above = [0, *first]
        pieces.append([level.slice(first[t], last[t], parent_start=above[t]) for t, level in enumerate(levels)])
    return pieces
