"""Sample the paths of each source and length uniformly, with a seed, for graphs that have too many."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.paths.count import PIECE
from pathnn.paths.csr import Csr
from pathnn.paths.gpu.frontier import Frontier
from pathnn.paths.options import PathOptions


def sample_paths(csr: Csr, options: PathOptions) -> list[Tensor]:
    """Sample at most `max_paths_per_source` paths per source and length, source first.

    Every path gets a pseudo-random number from its vertices, counted within their component, and the seed; the smallest
    numbers stay. So the sample depends neither on the device nor on the batch, and never holds more than a piece.
    """
    assert options.max_paths_per_source is not None
    frontier = Frontier.of(csr, options)
    local = torch.arange(csr.num_nodes, device=csr.col.device) - components(csr)
    kept = [torch.empty(0, length + 1, dtype=torch.int32, device=csr.col.device) for length in range(1, options.k + 1)]
    for walks in frontier.pieces(frontier.start(), PIECE):
        at = walks.length - 1
        kept[at] = _smallest(torch.cat([kept[at], walks.vertex]), local, options.max_paths_per_source, options.seed)
    return kept


def components(csr: Csr) -> Tensor:
    """Return the smallest vertex of each vertex's connected component, `[num_nodes]`."""
    label = torch.arange(csr.num_nodes, device=csr.col.device)
    source = label.repeat_interleave(csr.rowptr.diff())
    while True:
        smaller = label.scatter_reduce(0, source, label[csr.col], "amin")
        smaller = smaller[smaller]
        if torch.equal(smaller, label):
            return label
        label = smaller


def _smallest(paths: Tensor, local: Tensor, most: int, seed: int) -> Tensor:
    """Return the `most` paths of each source with the smallest numbers, sorted."""
    number = torch.full((paths.size(0),), seed, dtype=torch.int64, device=paths.device)
    for column in paths.unbind(1):
        number = _mix(number + local[column])
    order = torch.sort(number, stable=True)[1]
    order = order[torch.sort(paths[order, 0], stable=True)[1]]
    source = paths[order, 0].contiguous()
    rank = torch.arange(order.numel(), device=paths.device) - torch.searchsorted(source, source)
    return paths[order[rank < most].sort()[0]]


def _mix(x: Tensor) -> Tensor:
    """One round of a 64-bit finaliser; int64 arithmetic wraps around on every device."""
    x = x * -7046029254386353131  # an odd constant near 2^64 / golden ratio
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return x ^ ((x >> 31) & 0x1FFFFFFFF)
