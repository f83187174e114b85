"""All pairs of vertices within `k` steps of each other, with torch operations on any device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pathnn.paths.cpu.walks import SATURATED
from pathnn.paths.csr import Csr


@dataclass(frozen=True, eq=False)
class Distances:
    """Pairs (u, v) as ascending `keys` = `u * num_nodes + v`, and `steps`, their distance."""

    keys: Tensor  # [pairs], int64
    steps: Tensor  # [pairs], int32
    num_nodes: int

    @classmethod
    def of(cls, csr: Csr, k: int) -> Distances:
        """Breadth-first search from all vertices at once, one level after the other."""
        n = csr.num_nodes
        frontier = torch.arange(n, device=csr.col.device) * (n + 1)
        before = frontier[:0]  # the level before; in a directed graph, all levels before
        keys, steps = [frontier], [torch.zeros_like(frontier, dtype=torch.int32)]
        for step in range(1, k + 1):
            owner, slot = expand(csr, frontier % max(n, 1))
            reached = torch.unique((frontier - frontier % max(n, 1))[owner] + csr.col[slot])
            # neighbours of vertices at one distance are one nearer, as near, or one farther; edges of a directed graph
            # lead back to any level
            reached = reached[~contains(before, reached) & ~contains(frontier, reached)]
            before = torch.cat([before, frontier]).sort()[0] if csr.directed else frontier
            frontier = reached
            if not frontier.numel():
                break
            keys.append(frontier)
            steps.append(torch.full_like(frontier, step, dtype=torch.int32))
        sorted_keys, order = torch.sort(torch.cat(keys))
        return cls(sorted_keys, torch.cat(steps)[order], n)

    def distance(self, u: Tensor, v: Tensor) -> Tensor:
        """Number of steps from `u` to `v` for each pair, -1 for pairs that are farther apart than `k`."""
        wanted = u.long() * self.num_nodes + v
        if not self.keys.numel():
            return torch.full_like(wanted, -1, dtype=torch.int32)
        at = torch.searchsorted(self.keys, wanted).clamp_(max=self.keys.numel() - 1)
        return torch.where(self.keys[at] == wanted, self.steps[at], -1)

    def sum_before(self, csr: Csr, pairs: Tensor, ways: Tensor) -> Tensor:
        """For pairs (u, v), the sum of `ways` of the pairs (u, w) with w before v on a shortest path; at most 2^61."""
        n = max(self.num_nodes, 1)
        u, v = self.keys[pairs] // n, self.keys[pairs] % n
        csr = csr.flip()
        owner, slot = expand(csr, v)
        at = torch.searchsorted(self.keys, u[owner] * n + csr.col[slot]).clamp_(max=self.keys.numel() - 1)
        before = (self.keys[at] == u[owner] * n + csr.col[slot]) & (self.steps[at] == self.steps[pairs][owner] - 1)
        owner, at = owner[before], at[before]
        exact = torch.zeros_like(pairs).index_add_(0, owner, ways[at])
        rough = torch.zeros_like(pairs, dtype=torch.float64).index_add_(0, owner, ways[at].double())
        return torch.where(rough > SATURATED, SATURATED, exact)


def expand(csr: Csr, vertex: Tensor) -> tuple[Tensor, Tensor]:
    """All steps out of the given vertices: for each, the position in `vertex` and the slot in `csr.col`."""
    start = csr.rowptr[vertex]
    degree = csr.rowptr[vertex + 1] - start
    end = degree.cumsum(0)
    total = int(end[-1]) if end.numel() else 0
    owner = torch.arange(vertex.numel(), device=vertex.device).repeat_interleave(degree, output_size=total)
    slot = torch.arange(total, device=vertex.device) - (end - degree - start)[owner]
    return owner, slot


def contains(sorted_keys: Tensor, keys: Tensor) -> Tensor:
    """Which of `keys` are among `sorted_keys`."""
    if not sorted_keys.numel():
        return torch.zeros_like(keys, dtype=torch.bool)
    at = torch.searchsorted(sorted_keys, keys).clamp_(max=sorted_keys.numel() - 1)
    return sorted_keys[at] == keys
