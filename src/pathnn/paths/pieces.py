"""Cutting a trie by its roots, so that a model can work through it piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from pathnn.paths.trie import LengthTrie, TrieLevel


def cut(trie: LengthTrie, max_entries: int) -> list[LengthTrie]:
    """Cut the trie of one length into pieces of at most `max_entries` entries; a single larger root stands alone.

    A piece is a run of roots with all that hangs below them: a slice of every level, because entries are sorted by
    their parents. Every path is in exactly one piece, so sums over pieces are sums over all paths.

    >>> from pathnn.paths.extract import extract_paths
    >>> star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    >>> trie = extract_paths(star, 4, collection="sp", k=2).length(2)
    >>> [(piece.num_entries, piece.source.tolist()) for piece in cut(trie, 8)]
    [(8, [2, 3, 1, 3]), (4, [1, 2])]
    """
    if max_entries < 1:
        raise ValueError(f"max_entries={max_entries}: expected at least 1.")
    if trie.num_entries <= max_entries:
        return [trie]
    parents = [level.parent for level in trie.levels[1:] if level.parent is not None]
    starts = descendant_starts(len(trie.levels[0]), parents)
    return [_slice(trie, starts[:, a], starts[:, b]) for a, b in pairwise(piece_bounds(starts, max_entries))]


def descendant_starts(num_roots: int, parents: Sequence[Tensor]) -> Tensor:
    """For each level and each root, the first entry that hangs below it or a later root: `[levels, num_roots + 1]`.

    `parents` are those of the levels but the first; the result is on the CPU.
    """
    rows = [torch.arange(num_roots + 1)]
    for parent in parents:
        rows.append(torch.searchsorted(parent.cpu(), rows[-1].to(parent.dtype)))
    return torch.stack(rows)


def piece_bounds(starts: Tensor, max_entries: int) -> list[int]:
    """Roots at which to cut so that no piece has more than `max_entries` entries, as far as single roots allow."""
    entries = starts.sum(dim=0)
    bounds = [0]
    while bounds[-1] < entries.numel() - 1:
        room = int(torch.searchsorted(entries, entries[bounds[-1]] + max_entries, right=True)) - 1
        bounds.append(max(room, bounds[-1] + 1))
    return bounds


def _slice(trie: LengthTrie, first: Tensor, last: Tensor) -> LengthTrie:
    levels = []
    above = 0
    for level, a, b in zip(trie.levels, first.tolist(), last.tolist(), strict=True):
        levels.append(
            TrieLevel(
                vertex=level.vertex[a:b],
                distance=None if level.distance is None else level.distance[a:b],
                parent=None if level.parent is None else level.parent[a:b] - above,
                edge=None if level.edge is None else level.edge[a:b],
            )
        )
        above = a
    return LengthTrie(tuple(levels), trie.num_nodes)
