"""Count paths, and refuse explosions before memory is taken."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.paths.cpu.extract import count_per_source
from pathnn.paths.cpu.walks import SATURATED
from pathnn.paths.csr import check_batch, to_csr
from pathnn.paths.options import Collection, PathOptions

BYTES_PER_PATH = 32
"""Rough size of a path in a trie: prefixes are shared, so that a path adds about two entries of 16 bytes."""


class PathExplosionError(ValueError):
    """A graph has more paths than the caller allowed; nothing was allocated."""


def sum_per_graph(counts: Tensor, batch: Tensor | None) -> Tensor:
    """Sum per-vertex counts `[num_nodes, k]` per graph; sums stop growing at 2^61."""
    graphs = 1 if batch is None else int(batch.max()) + 1 if batch.numel() else 0
    at = torch.zeros_like(counts[:, 0]) if batch is None else batch.to(counts.device, torch.int64)
    exact = counts.new_zeros(graphs, counts.size(1)).index_add_(0, at, counts)
    rough = exact.new_zeros(exact.shape, dtype=torch.float64).index_add_(0, at, counts.double())
    return torch.where(rough > SATURATED, SATURATED, exact)


def refuse_explosion(
    counts: Tensor,
    complete: bool,
    options: PathOptions,
    limit: int,
    batch: Tensor | None,
    *,
    counting: bool = False,
    before: int = 0,
    others: bool = False,
) -> None:
    """Raise `PathExplosionError` if there are more paths than `limit`, naming the graph that has the most. `before` is
    the number of paths of graphs that were counted before; `others` says that more graphs were to follow.
    """
    graphs = sum_per_graph(counts, batch)
    total = before + sum(graphs.flatten().tolist())
    if total <= limit and complete:
        return
    graph = int(graphs.double().sum(dim=1).argmax())
    length = int(graphs[graph].argmax()) + 1
    here = sum(graphs[graph].tolist())
    least = "" if complete else "at least "
    name = f"graph {graph}" if batch is not None else "the graph"
    in_all = f"; {'at least ' if others else least}{total:,} in all" if len(graphs) > 1 or others else ""
    stopped = "" if complete else "; counting stopped there, there may be many times as many"
    sampled = options.max_paths_per_source is not None
    words = f"{'sampled ' if sampled else ''}{options.definition.title}"
    sample = "" if sampled or counting else "keep a sample with max_paths_per_source, "
    raise PathExplosionError(
        f"{name} has {least}{int(graphs[graph, length - 1]):,} {words} of length {length} ({least}{here:,} of all "
        f"lengths, {least or 'about '}{size_text(BYTES_PER_PATH * here)}{in_all}{stopped}), "
        f"over max_paths={limit:,}. Lower k, {options.definition.simpler}, {sample}or raise max_paths."
    )


def count_paths(
    edge_index: Tensor,
    num_nodes: int,
    *,
    collection: Collection,
    k: int,
    batch: Tensor | None = None,
    max_paths: int | None = None,
    directed: bool = False,
) -> Tensor:
    """Count the paths of each length 1 to k per graph, `[graphs, k]`, int64. Store nothing per path.

    `batch` assigns each vertex to a graph as in PyG; without it there is one graph. A path counts once per source, so
    a path and its reverse are two; with `directed`, paths follow the direction of edges. Numbers stop growing at 2^61.
    All simple paths ("ap") are counted one by one, for hours in a dense graph: `max_paths` refuses with
    `PathExplosionError` when there are more.

    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])     # a triangle
    >>> count_paths(edge_index, 3, collection="ap", k=3)
    tensor([[6, 6, 0]])
    >>> count_paths(edge_index, 3, collection="sp", k=3)
    tensor([[6, 0, 0]])
    """
    options = PathOptions(collection, k, max_paths=max_paths, directed=directed)
    csr = to_csr(edge_index, num_nodes, directed=options.directed)
    check_batch(batch, num_nodes)
    counts, complete = count_per_source(csr, options, options.limit)
    if max_paths is not None:
        refuse_explosion(counts, complete, options, options.limit, batch, counting=True)
    return sum_per_graph(counts, batch).to(edge_index.device)


def size_text(size: float) -> str:
    """Return a number of bytes in a readable unit, such as "3.0 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
