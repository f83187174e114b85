"""Pairs of graphs, and which of them have representations that are too close to each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs
from pathnn.theory.graphs import Graph

THRESHOLD = 1e-5
"""The paper's: two graphs are confused when their representations are closer than this."""

MOST_PAIRS = 20_000_000
CHUNK = 1_000_000  # pairs whose distances are computed at once


def as_graphs(graphs: PackedGraphs | Sequence[Graph], index: Sequence[int] | None = None) -> list[Graph]:
    """The graphs with the given numbers (default: all) as `(edge_index, num_nodes)` pairs."""
    index = range(len(graphs)) if index is None else index
    if not isinstance(graphs, PackedGraphs):
        return [graphs[i] for i in index]
    return [(data.edge_index, int(data.num_nodes)) for data in (graphs[i] for i in index)]


def all_pairs(num_graphs: int) -> Tensor:
    """All pairs of so many graphs, `[pairs, 2]`; refuses more than 20 million.

    >>> all_pairs(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    count = num_graphs * (num_graphs - 1) // 2
    if count > MOST_PAIRS:
        raise ValueError(
            f"{num_graphs:,} graphs have {count:,} pairs: expected at most {MOST_PAIRS:,}. Give pairs, or fewer graphs."
        )
    return torch.combinations(torch.arange(num_graphs)).view(-1, 2)


def check_pairs(pairs: Tensor, num_graphs: int) -> Tensor:
    """Return `pairs` if they are `[pairs, 2]` numbers of graphs, raise `ValueError` otherwise."""
    if pairs.dim() != 2 or pairs.size(1) != 2 or pairs.is_floating_point():
        raise ValueError(f"pairs: expected integers of shape [pairs, 2], got {pairs.dtype} {list(pairs.shape)}.")
    if pairs.numel() and (int(pairs.min()) < 0 or int(pairs.max()) >= num_graphs):
        raise ValueError(f"pairs: expected numbers from 0 to {num_graphs - 1}, got {pairs.aminmax()}.")
    return pairs.long()


def confused_pairs(rows: Tensor, pairs: Tensor, threshold: float = THRESHOLD) -> Tensor:
    """Which pairs have representations that are closer than the threshold: `[pairs]`, bool.

    >>> confused_pairs(torch.tensor([[0.0], [0.0], [1.0]]), torch.tensor([[0, 1], [1, 2]])).tolist()
    [True, False]
    """
    starts = range(0, len(pairs), CHUNK)
    parts = [_distance(rows, pairs[start : start + CHUNK]) < threshold for start in starts]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.bool)


def _distance(rows: Tensor, pairs: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows[pairs[:, 0]] - rows[pairs[:, 1]], dim=1)
