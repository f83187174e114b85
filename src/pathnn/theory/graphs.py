"""Make edge lists, sorted neighbours, and paths from a vertex as tuples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from pathnn.paths.csr import to_csr
from pathnn.paths.extract import extract_with
from pathnn.paths.options import Collection, PathOptions, check_collection
from pathnn.paths.trie import Path

Graph = tuple[Tensor, int]
"""`(edge_index, num_nodes)`."""


def paths_from(edge_index: Tensor, num_nodes: int, source: int, *, collection: Collection, k: int) -> list[list[Path]]:
    """Return the paths from a vertex as tuples: a sorted list for each length 1..k."""
    options = PathOptions(check_collection(collection), k, distances=False)
    trie = extract_with(edge_index, num_nodes, options, sources=torch.tensor([check_source(source, num_nodes)]))
    return [sorted(map(tuple, rows.tolist())) for rows in trie.to_paths()]


def edges_to_index(edges: Sequence[tuple[int, int]]) -> Tensor:
    """Return the `edge_index` of an undirected graph, with both directions of each edge."""
    both = [pair for u, v in edges for pair in ((u, v), (v, u))]
    return torch.tensor(both, dtype=torch.long).reshape(-1, 2).t().contiguous()


def neighbors(edge_index: Tensor, num_nodes: int) -> list[tuple[int, ...]]:
    """Return the sorted neighbours of each vertex, without self-loops and repeated edges."""
    csr = to_csr(edge_index, num_nodes)
    col, rowptr = csr.col.tolist(), csr.rowptr.tolist()
    return [tuple(col[start:stop]) for start, stop in pairwise(rowptr)]


def check_source(source: int, num_nodes: int) -> int:
    """Return `source` if it is a vertex; raise `ValueError` otherwise."""
    if isinstance(source, bool) or not isinstance(source, int) or not 0 <= source < num_nodes:
        known = f"expected an integer from 0 to {num_nodes - 1}" if num_nodes else "the graph has no vertices"
        raise ValueError(f"source={source!r} is not a vertex: {known}.")
    return source
