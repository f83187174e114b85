"""Extract the paths of a dataset, in chunks of graphs or batch by batch, and count them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Task
from pathnn.device import free_memory
from pathnn.paths.count import BYTES_PER_PATH, refuse_explosion, sum_per_graph
from pathnn.paths.cpu.extract import bound_per_source, count_per_source
from pathnn.paths.csr import to_csr
from pathnn.paths.extract import COUNT_TO, extract_with
from pathnn.paths.options import UNLIMITED, Collection, PathOptions
from pathnn.paths.ragged import RaggedTries, cat_tries
from pathnn.paths.trie import PathTrie

CHUNK_BYTES = 256 * 2**20
SUMMARY_BYTES = 64 * 2**20
COUNT_NODES = 200_000
FIRST_LENGTH = 4


def build_paths(graphs: PackedGraphs, options: PathOptions, *, chunk_bytes: int = CHUNK_BYTES) -> RaggedTries:
    """Extract the tries of all graphs, in chunks of about `chunk_bytes`; refuse more paths than fit into the memory."""
    fits = free_memory(graphs.device) // (2 * BYTES_PER_PATH)
    counts = count_per_graph(graphs, options, max_paths=fits if options.max_paths is None else options.max_paths)
    return cat_tries(list(chunks_of_paths(graphs, options, counts, chunk_bytes)))


def count_per_graph(graphs: PackedGraphs, options: PathOptions, *, max_paths: int | None = None) -> Tensor:
    """Count the paths per graph and length, `[G, k]`, or bound those of a sample; refuse more than `max_paths`."""
    parts: list[Tensor] = []
    before = 0
    for start, stop in graph_ranges(graphs.node_ptr.diff(), COUNT_NODES):
        chunk = graphs.chunk(start, stop)
        csr = to_csr(chunk.union(), chunk.num_nodes, directed=options.directed)
        batch = torch.repeat_interleave(torch.arange(len(chunk)), chunk.node_ptr.diff())
        if options.max_paths_per_source is None:
            limit = UNLIMITED if max_paths is None else max(max_paths - before, COUNT_TO)
            counts, complete = count_per_source(csr, options, limit=limit)
        else:
            counts, complete = bound_per_source(csr, options.k).clamp(max=options.max_paths_per_source).long(), True
        counts = counts.cpu()
        if max_paths is not None:
            more: dict[str, Any] = {"before": before, "others": stop < len(graphs)}
            refuse_explosion(counts, complete, options, max_paths, batch + start, **more)
        found = sum_per_graph(counts, batch)
        parts.append(torch.cat([found, found.new_zeros(len(chunk) - len(found), options.k)]))  # graphs without vertices
        before += int(parts[-1].sum())
    return torch.cat(parts) if parts else torch.zeros(0, options.k, dtype=torch.long)


def chunks_of_paths(
    graphs: PackedGraphs, options: PathOptions, counts: Tensor, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[RaggedTries]:
    """Yield the tries of the graphs, chunk by chunk, on the device of the dataset."""
    sizes = (counts.sum(dim=1) * BYTES_PER_PATH).clamp(min=1)
    for start, stop in graph_ranges(sizes, chunk_bytes):
        chunk = graphs.chunk(start, stop)
        trie = extract_with(chunk.union(), chunk.num_nodes, replace(options, max_paths=None))
        yield RaggedTries.from_trie(trie, chunk.node_ptr, chunk.edge_ptr)


def graph_ranges(sizes: Tensor, limit: int, most: int | None = None) -> list[tuple[int, int]]:
    """Cut graphs into ranges of at most `most` graphs and a total size of `limit`; a larger graph is a range alone."""
    total = sizes.cumsum(dim=0)
    ranges, start, before = [], 0, 0
    while start < sizes.numel():
        stop = max(int(torch.searchsorted(total, before + limit, right=True)), start + 1)
        stop = stop if most is None else min(stop, start + most)
        ranges.append((start, stop))
        start, before = stop, int(total[stop - 1])
    return ranges


@dataclass(frozen=True, eq=False)
class BatchPaths:
    """The paths of `graphs`, extracted for each batch when it is selected; nothing is stored."""

    graphs: PackedGraphs
    options: PathOptions

    nbytes = 0

    def to(self, device: torch.device | str) -> BatchPaths:
        """Return the same with batches on `device`."""
        return replace(self, graphs=self.graphs.to(device))

    def select(self, index: Tensor) -> PathTrie:
        """Return the trie of the batch of graphs `index`, in that order."""
        batch = self.graphs.select(index)
        return extract_with(batch.edge_index, batch.num_nodes, self.options, batch.batch)


Tries = RaggedTries | BatchPaths


def path_options(tries: Tries) -> PathOptions:
    """Return the options that tries are extracted with; the seed of stored ones is not known."""
    return tries.options if isinstance(tries, BatchPaths) else PathOptions.of_trie(tries)


@dataclass(frozen=True)
class PathSummary:
    """Numbers of paths of a dataset; `mean_paths[l]` is the mean number of paths of `l` edges per graph."""

    dataset: str
    collection: Collection
    k: int
    graphs: int
    mean_paths: dict[int, float]
    total_paths: int
    entries: int
    bytes: int
    seconds: float


def summarize_paths(
    data: Task | PackedGraphs, collection: Collection, k: int, *, name: str | None = None, device: str = "cpu"
) -> PathSummary:
    """Count and extract all paths of a dataset; `bytes` is the memory of its tries.

    >>> import torch
    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> summary = summarize_paths(PackedGraphs.from_edges([edge, edge], [2, 2]), "sp", 2)
    >>> summary.mean_paths, summary.total_paths, summary.entries
    ({1: 2.0, 2: 0.0}, 4, 8)
    """
    graphs, title = (data.graphs, data.name) if isinstance(data, Task) else (data, "own")
    begin = time.perf_counter()
    options = PathOptions(collection, k)
    graphs = PackedGraphs(graphs.edge_index.to(device), graphs.node_ptr, graphs.edge_ptr)
    most = 100 * free_memory(device) // BYTES_PER_PATH  # a hundred times what fits: more would take too long
    counts = count_per_graph(graphs, options, max_paths=most)
    entries = size = 0
    for tries in chunks_of_paths(graphs, options, counts, SUMMARY_BYTES):
        entries += int(tries.sizes.sum())
        size += tries.nbytes
    means = counts.sum(dim=0).double() / max(len(graphs), 1)
    return PathSummary(
        dataset=name or title,
        collection=collection,
        k=k,
        graphs=len(graphs),
        mean_paths={length: float(mean) for length, mean in enumerate(means, start=1)},
        total_paths=int(counts.sum()),
        entries=entries,
        bytes=size,
        seconds=time.perf_counter() - begin,
    )


def refuse_too_many(graphs: PackedGraphs, *, collection: Collection, k: int, max_paths: int) -> None:
    """Raise `PathExplosionError` for more than `max_paths` paths; count short ones first, to find many paths sooner."""
    for length in range(min(k, FIRST_LENGTH) if collection == "ap" else k, k + 1):
        counts = count_per_graph(graphs, PathOptions(collection, length), max_paths=max_paths)
        if not counts[:, -1].any():
            return
