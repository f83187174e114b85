"""How many paths there are, without storing any, and the refusal to extract too many."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.collection import Collection, check_collection, check_k
from pathnn.paths import cpu
from pathnn.paths.csr import Csr, to_csr
from pathnn.paths.frontier import Frontier

MAX_K = 255
DEFAULT_MAX_PATHS = 50_000_000
PIECE = 2**22  # steps that a count or a sample grows at once


class PathExplosionError(ValueError):
    """A graph has more paths than the caller allowed; nothing was allocated."""


def check_length(k: int) -> int:
    """Return `k` if a trie can have paths of that length, raise `ValueError` otherwise.

    >>> check_length(300)
    Traceback (most recent call last):
    ...
    ValueError: k=300 is too large: expected at most 255 ...
    """
    if check_k(k) > MAX_K:
        raise ValueError(
            f"k={k} is too large: expected at most {MAX_K} "
            "(distances are stored in a byte, tries have k (k + 3) / 2 levels)."
        )
    return k


def count_paths(
    edge_index: Tensor, num_nodes: int, *, collection: Collection, k: int, batch: Tensor | None = None
) -> Tensor:
    """Number of paths of each length 1..k per graph, `[graphs, k]`, int64. Stores nothing per path.

    `batch` assigns each vertex to a graph as in PyG; without it there is one graph. A path counts once per source, so
    a path and its reverse are two.

    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])     # a triangle
    >>> count_paths(edge_index, 3, collection="ap", k=3)
    tensor([[6, 6, 0]])
    >>> count_paths(edge_index, 3, collection="sp", k=3)
    tensor([[6, 0, 0]])
    """
    check_collection(collection)
    check_length(k)
    csr = to_csr(edge_index, num_nodes)
    counts, _ = count_per_source(csr, collection, k)
    return sum_per_graph(counts, check_batch(batch, num_nodes))


def count_per_source(csr: Csr, collection: Collection, k: int, limit: int = cpu.UNLIMITED) -> tuple[Tensor, bool]:
    """Number of paths per source and length, `[num_nodes, k]`, and whether all were counted before the `limit`."""
    if csr.col.device.type == "cpu":
        return cpu.count_per_source(csr, collection, k, limit)
    counts = torch.zeros(csr.num_nodes, k, dtype=torch.int64, device=csr.col.device)
    frontier = Frontier.of(csr, collection, k)
    total = 0
    for walks in frontier.pieces(frontier.start(), PIECE):
        counts[:, walks.length - 1] += torch.bincount(walks.vertex[:, 0], minlength=csr.num_nodes)
        total += len(walks)
        if total > limit:
            return counts, False
    return counts, True


def sum_per_graph(counts: Tensor, batch: Tensor | None) -> Tensor:
    """Sum per-vertex counts `[num_nodes, k]` per graph."""
    if batch is None:
        return counts.sum(dim=0, keepdim=True)
    graphs = int(batch.max()) + 1 if batch.numel() else 0
    return counts.new_zeros(graphs, counts.size(1)).index_add_(0, batch.to(counts.device).long(), counts)


def check_batch(batch: Tensor | None, num_nodes: int) -> Tensor | None:
    """Return `batch` if it assigns every vertex to a graph, raise `ValueError` otherwise."""
    if batch is not None and (batch.shape != (num_nodes,) or batch.is_floating_point()):
        raise ValueError(
            f"batch is {batch.dtype} of shape {list(batch.shape)}: expected one graph id per vertex, [{num_nodes}]."
        )
    return batch


def refuse_explosion(
    counts: Tensor,
    complete: bool,
    collection: Collection,
    limit: int,
    batch: Tensor | None,
    per_source: int | None,
) -> None:
    """Raise `PathExplosionError` if there are more paths than `limit`, naming the graph that has the most."""
    kept = counts if per_source is None else counts.clamp(max=per_source)
    total = int(kept.sum())
    if total <= limit and complete:
        return
    graphs = sum_per_graph(kept, batch)
    graph = int(graphs.sum(dim=1).argmax())
    length = int(graphs[graph].argmax()) + 1
    words = {"sp": "single shortest paths", "sp+": "shortest paths", "ap": "simple paths"}[collection]
    least = "" if complete else "at least "
    name = f"graph {graph}" if batch is not None else "the graph"
    size = estimate_bytes(graphs[graph]) / 2**30
    ways = {
        "sp": "Lower k, split the batch",
        "sp+": "Lower k, use collection='sp'",
        "ap": "Lower k, use collection='sp+'",
    }[collection]
    raise PathExplosionError(
        f"{name} has {least}{int(graphs[graph, length - 1]):,} {words} of length {length} "
        f"({least}{int(graphs[graph].sum()):,} of all lengths, about {size:.1f} GiB; {least}{total:,} in all), "
        f"and the limit is max_paths={limit:,}. {ways}, keep a sample with max_paths_per_source, or raise max_paths."
    )


def estimate_bytes(counts: Tensor) -> float:
    """Roughly the bytes of a trie with these numbers of paths per length.

    Prefixes are shared: with paths growing from length to length most entries are in the last two levels.
    """
    return 16.0 * 2.0 * float(counts.sum())
