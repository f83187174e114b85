"""A trie cut by roots: into pieces that fit a memory budget, or into parts for several cores. Sums add up."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from pathnn.nn.backends.tokens import LevelTokens
from pathnn.paths.pieces import descendant_starts, piece_bounds


def cut(levels: list[LevelTokens], max_entries: int) -> list[list[LevelTokens]]:
    """Pieces of at most `max_entries` entries, as far as roots allow: one root with its descendants is not cut.

    Entries are sorted by parent, so the descendants of consecutive roots are consecutive in every level.
    """
    if max_entries < 1:
        raise ValueError(f"max_entries={max_entries}: expected a positive number of trie entries, or None.")
    if sum(level.num_entries for level in levels) <= max_entries:
        return [levels]
    starts = _starts(levels)
    return _slices(levels, starts, piece_bounds(starts, max_entries))


def cut_evenly(levels: list[LevelTokens], parts: int) -> list[list[LevelTokens]]:
    """At most `parts` parts with about the same number of entries."""
    if parts == 1 or levels[0].num_entries < 2:
        return [levels]
    starts = _starts(levels)
    total = starts.sum(dim=0)
    targets = torch.arange(1, parts) * int(total[-1]) // parts
    inner = torch.searchsorted(total, targets).clamp_(1, total.numel() - 1)
    return _slices(levels, starts, sorted({0, *inner.tolist(), total.numel() - 1}))


def _starts(levels: list[LevelTokens]) -> Tensor:
    parents = [level.parent for level in levels[1:] if level.parent is not None]
    return descendant_starts(levels[0].num_entries, parents)


def _slices(levels: list[LevelTokens], starts: Tensor, roots: list[int]) -> list[list[LevelTokens]]:
    """The entries below the roots from each cut to the next."""
    bounds = starts[:, roots].t().tolist()
    pieces = []
    for first, last in pairwise(bounds):
        above = [0, *first]
        pieces.append([level.slice(first[t], last[t], parent_start=above[t]) for t, level in enumerate(levels)])
    return pieces
