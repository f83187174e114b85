"""Compute how likely random walks return to their first vertex."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from torch import Tensor

from pathnn.checks import check_count
from pathnn.paths.csr import Ints, check_edge_index


def random_walk_pe(edge_index: Tensor, num_nodes: int, walk_length: int) -> Tensor:
    """Return the probability that a random walk is back at its first vertex after 1 to `walk_length` steps.

    This is the encoding of PyG's `AddRandomWalkPE`, `[num_nodes, walk_length]`. Repeated rows of `edge_index` count.
    """
    check_edge_index(edge_index, num_nodes)
    length = check_count("walk_length", walk_length)
    source, target = edge_index.as_subclass(Tensor).cpu().long()
    order = source.argsort(stable=True)
    rowptr = np.append(0, source.bincount(minlength=num_nodes).cumsum(dim=0))
    out = np.empty((num_nodes, length), np.float32)
    _fill(rowptr, target[order].numpy(), out)
    return torch.from_numpy(out).to(edge_index.device)


@njit(cache=True, nogil=True)
def _fill(rowptr: Ints, col: Ints, out: Ints) -> None:
    """Follow the walks from each vertex, over the vertices that they reach only."""
    n = rowptr.size - 1
    now, after = np.zeros(n), np.zeros(n)
    here, there = np.empty(n, np.int64), np.empty(n, np.int64)
    for v in range(n):
        now[v], here[0], size = 1.0, v, 1
        for t in range(out.shape[1]):
            reached = 0
            for u in here[:size]:
                first, last = rowptr[u], rowptr[u + 1]
                share = now[u] / max(last - first, 1)
                now[u] = 0.0
                if share > 0.0:
                    for w in col[first:last]:
                        if after[w] == 0.0:
                            there[reached] = w
                            reached += 1
                        after[w] += share
            now, after, here, there, size = after, now, there, here, reached
            out[v, t] = now[v]
        now[here[:size]] = 0.0
