"""How many paths there are, without storing any."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.collection import Collection, check_collection
from pathnn.paths import cpu
from pathnn.paths.csr import Csr, to_csr
from pathnn.paths.frontier import Frontier
from pathnn.paths.limits import check_batch, check_length, check_options, refuse_explosion, sum_per_graph
from pathnn.paths.near import NearPairs
from pathnn.paths.walks import SATURATED

PIECE = 2**22  # steps that a count or a sample grows at once


def count_paths(
    edge_index: Tensor,
    num_nodes: int,
    *,
    collection: Collection,
    k: int,
    batch: Tensor | None = None,
    max_paths: int | None = None,
) -> Tensor:
    """Number of paths of each length 1..k per graph, `[graphs, k]`, int64. Stores nothing per path.

    `batch` assigns each vertex to a graph as in PyG; without it there is one graph. A path counts once per source, so
    a path and its reverse are two. Numbers stop growing at 2^61. All simple paths ("ap") are counted one by one, for
    hours in a dense graph: `max_paths` refuses with `PathExplosionError` when there are more.

    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])     # a triangle
    >>> count_paths(edge_index, 3, collection="ap", k=3)
    tensor([[6, 6, 0]])
    >>> count_paths(edge_index, 3, collection="sp", k=3)
    tensor([[6, 0, 0]])
    """
    check_collection(collection)
    check_length(k)
    csr = to_csr(edge_index, num_nodes)
    check_batch(batch, num_nodes)
    check_options(False, max_paths, None, 0)
    limit = cpu.UNLIMITED if max_paths is None else max_paths
    counts, complete = count_per_source(csr, collection, k, limit)
    if max_paths is not None:
        refuse_explosion(counts, complete, collection, limit, batch, counting=True)
    return sum_per_graph(counts, batch)


def count_per_source(csr: Csr, collection: Collection, k: int, limit: int = cpu.UNLIMITED) -> tuple[Tensor, bool]:
    """Number of paths per source and length, `[num_nodes, k]`, and whether all were counted before the `limit`."""
    if csr.col.device.type == "cpu":
        return cpu.count_per_source(csr, collection, k, limit)
    if collection != "ap":
        return _count_shortest(csr, k, single=collection == "sp"), True
    counts = torch.zeros(csr.num_nodes, k, dtype=torch.int64, device=csr.col.device)
    frontier = Frontier.of(csr, collection, k)
    total = 0
    for walks in frontier.pieces(frontier.start(), PIECE):
        counts[:, walks.length - 1] += torch.bincount(walks.vertex[:, 0], minlength=csr.num_nodes)
        total += len(walks)
        if total > limit:
            return counts, False
    return counts, True


def _count_shortest(csr: Csr, k: int, single: bool) -> Tensor:
    """Numbers of shortest paths from each vertex, from the pairs of near vertices: no path is walked."""
    near = NearPairs.of(csr, k)
    n = max(csr.num_nodes, 1)
    ways = torch.ones_like(near.keys)
    if not single:
        for step in range(2, k + 1):
            here = (near.steps == step).nonzero().view(-1)
            ways[here] = near.sum_before(csr, here, ways)
    counts = torch.zeros(csr.num_nodes * k, dtype=torch.float64, device=ways.device)
    apart = near.steps > 0
    column = near.keys[apart] // n * k + near.steps[apart] - 1
    exact = counts.long().index_add_(0, column, ways[apart])
    rough = counts.index_add_(0, column, ways[apart].double())
    return torch.where(rough > SATURATED, SATURATED, exact).view(csr.num_nodes, k)
