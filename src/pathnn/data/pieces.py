"""Cutting the tries of a batch by roots: pieces that fit into memory and whose sums at the sources add up."""

from __future__ import annotations

from pathnn.paths.pieces import cut
from pathnn.paths.trie import LengthTrie, PathTrie


def trie_pieces(trie: PathTrie, max_entries: int) -> list[list[LengthTrie]]:
    """For each length of `trie`, its trie cut into pieces of at most `max_entries` entries.

    A piece is a range of roots (far ends) with all their descendants; every path lies in exactly one piece,
    so the sum over the paths of a source is the sum of the pieces' sums. A root whose descendants alone
    exceed `max_entries` is a piece of its own.

    >>> import torch
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])           # 0 - 1 - 2
    >>> trie = PathTrie.from_paths([edge_index.t()], edge_index, 3, collection="sp")
    >>> [[piece.source.tolist() for piece in pieces] for pieces in trie_pieces(trie, max_entries=5)]
    [[[1, 0, 2], [1]]]
    """
    if max_entries < 1:
        raise ValueError(f"max_entries={max_entries}: expected a positive number of trie entries.")
    return [cut(length, max_entries) for length in trie.lengths()]
