"""Small graphs and tries for the tests of the model."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.paths.extract import extract_paths
from pathnn.paths.options import Collection
from pathnn.paths.trie import PathTrie


def both_directions(pairs: list[tuple[int, int]]) -> Tensor:
    one_way = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def graph() -> tuple[Tensor, int]:
    """Two components, cycles of length 3, 4 and 5, several shortest paths, and an isolated vertex."""
    pairs = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2), (5, 6), (6, 7), (7, 8), (8, 4), (9, 10)]
    return both_directions(pairs), 12


def trie_of(
    edge_index: Tensor, num_nodes: int, collection: Collection, k: int = 3, *, extend: bool = False
) -> PathTrie:
    """With distances, which a model may ignore."""
    return extract_paths(edge_index, num_nodes, collection=collection, k=k, distances=True, extend=extend)
