"""Extract the paths of a dataset in chunks of graphs: count first, then extract as many graphs at once as fit."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from pathnn.data.cache import cached
from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Task
from pathnn.device import free_memory
from pathnn.files import cache_dir
from pathnn.paths.count import refuse_explosion, sum_per_graph
from pathnn.paths.cpu.extract import bound_per_source, count_per_source
from pathnn.paths.csr import to_csr
from pathnn.paths.extract import COUNT_TO, extract_with
from pathnn.paths.options import UNLIMITED, Collection, PathOptions
from pathnn.paths.ragged import RaggedTries, by_graph, cat_tries
from pathnn.paths.storage import from_tensors, to_tensors
from pathnn.paths.trie import PathTrie

BYTES_PER_PATH = 32
"""Rough size of a path's entries: prefixes are shared, so that a path adds about two entries of 16 bytes."""

CHUNK_BYTES = 256 * 2**20
SUMMARY_BYTES = 64 * 2**20
COUNT_NODES = 200_000
FIRST_LENGTH = 4
VERSION = 4
"""Raised when extraction gives other tries or the form of the tensors changes."""


def build_paths(
    graphs: PackedGraphs,
    *,
    collection: Collection,
    k: int,
    distances: bool | None = None,
    extend: bool = False,
    max_paths_per_source: int | None = None,
    seed: int = 0,
    max_paths: int | None = None,
    directed: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> RaggedTries:
    """Extract the tries of all graphs, in chunks of graphs of about `chunk_bytes`.

    Paths are counted first; more than `max_paths` (None: what fits into the free memory) are refused with
    `PathExplosionError`. Larger sets go to disk: see `build_shards`.

    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> build_paths(PackedGraphs.from_edges([edge, edge], [2, 2]), collection="ap", k=2)
    RaggedTries(graphs=2, collection='ap', k=2, num_paths=4, entries=8, device='cpu')
    """
    options = PathOptions(collection, k, distances, extend, max_paths_per_source, seed, max_paths, directed)
    limit = free_memory(graphs.device) // (2 * BYTES_PER_PATH) if max_paths is None else max_paths
    counts = count_per_graph(graphs, options, max_paths=limit)
    return cat_tries([tries for _, tries in chunks_of_paths(graphs, options, counts, chunk_bytes)])


def count_per_graph(graphs: PackedGraphs, options: PathOptions, *, max_paths: int | None = None) -> Tensor:
    """Count the paths per graph and length, `[G, k]`, on the CPU; refuse more than `max_paths`.

    Of a sample, bound the number of paths that it keeps.
    """
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
        parts.append(_pad(sum_per_graph(counts, batch), len(chunk)))
        before += int(parts[-1].sum())
    return torch.cat(parts) if parts else torch.zeros(0, options.k, dtype=torch.long)


def chunks_of_paths(
    graphs: PackedGraphs, options: PathOptions, counts: Tensor, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[range, RaggedTries]]:
    """Yield graph numbers and their tries, chunk by chunk, on the device of the dataset."""
    sizes = (counts.sum(dim=1) * BYTES_PER_PATH).clamp(min=1)
    for start, stop in graph_ranges(sizes, chunk_bytes):
        chunk = graphs.chunk(start, stop)
        trie = extract_with(chunk.union(), chunk.num_nodes, replace(options, max_paths=None))
        tries = RaggedTries.from_trie(trie, chunk.node_ptr, chunk.edge_ptr)
        yield range(start, stop), by_graph(tries) if tries.vertex.device.type == "cpu" else tries


def graph_ranges(sizes: Tensor, limit: int) -> list[tuple[int, int]]:
    """Cut graphs into ranges with a total size of at most `limit`; a larger graph is a range alone.

    >>> graph_ranges(torch.tensor([2, 2, 9, 1]), 4)
    [(0, 2), (2, 3), (3, 4)]
    """
    total = sizes.cumsum(dim=0)
    ranges, start, before = [], 0, 0
    while start < sizes.numel():
        stop = max(int(torch.searchsorted(total, before + limit, right=True)), start + 1)
        ranges.append((start, stop))
        start, before = stop, int(total[stop - 1])
    return ranges


def _pad(counts: Tensor, graphs: int) -> Tensor:
    """Add rows for trailing graphs without vertices."""
    return torch.cat([counts, counts.new_zeros(graphs - counts.size(0), counts.size(1))])


class Tries(Protocol):
    """The interface of the tries of a dataset, in memory or on disk."""

    @property
    def sizes(self) -> Tensor:
        """Entries per graph and level, `[graphs, levels]`, on the CPU."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of the tries."""
        ...

    def __len__(self) -> int: ...

    def select(self, index: Tensor) -> PathTrie:
        """Return the trie of the batch of some graphs, in that order."""
        ...

    def to(self, device: torch.device | str) -> Tries:
        """Return the same tries, with batches on `device`."""
        ...


def fingerprint(graphs: PackedGraphs) -> str:
    """Return a checksum of vertices and edges, including their order, without features.

    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> fingerprint(PackedGraphs.from_edges([edge], [2])) == fingerprint(PackedGraphs.from_edges([edge], [3]))
    False
    """
    digest = hashlib.sha256()
    for tensor in (graphs.node_ptr, graphs.edge_ptr, graphs.edge_index.to("cpu", torch.int32)):
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def tries_key(graphs: PackedGraphs, options: PathOptions) -> dict[str, object]:
    """Return what determines the tries: version, graphs and options."""
    if options.max_paths_per_source is not None and options.seed is None:
        raise ValueError("seed=None draws other paths in each call, which cannot be stored: give an integer.")
    return {"tries": VERSION, "graphs": fingerprint(graphs), **options.key()}


def cached_paths(graphs: PackedGraphs, options: PathOptions, *, max_paths: int | None = None) -> RaggedTries:
    """Return the tries of `build_paths` from the cache folder, or build and store them."""
    key = tries_key(graphs, options)
    name = hashlib.sha256(repr(sorted(key.items())).encode()).hexdigest()[:24]

    def build() -> dict[str, Tensor]:
        return to_tensors(build_paths(graphs, max_paths=max_paths, **options.key()).to("cpu"))

    tensors = cached(cache_dir() / "paths" / f"{name}.pathnn", key, build)
    return from_tensors(tensors, options).to(graphs.device)


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
    for _, tries in chunks_of_paths(graphs, options, counts, SUMMARY_BYTES):
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
    """Raise `PathExplosionError` if there are more than `max_paths` paths of length 1..k.

    Each range of sources has its own limit, and many graphs take minutes to reach it. So short paths are counted
    first, and each next length is one that should have few enough paths to count.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> complete = edges_to_index([(u, v) for u in range(30) for v in range(u)])
    >>> graphs = PackedGraphs.from_edges([complete], [30])
    >>> refuse_too_many(graphs, collection="ap", k=200, max_paths=10**5)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    PathExplosionError: graph 0 has too many paths
    """
    length = min(k, FIRST_LENGTH) if collection == "ap" else k
    while True:
        counts = count_per_graph(graphs, PathOptions(collection, length), max_paths=max_paths)
        totals = counts.sum(dim=0).tolist()
        if length == k or totals[-1] == 0:
            return
        length = min(k, length + _extra_length(totals, max_paths))


def _extra_length(totals: Sequence[int], max_paths: int) -> int:
    """Return by how many edges paths may grow, at least 1, so that at this rate there are at most `max_paths`.

    >>> _extra_length([10, 100], 100_000), _extra_length([10, 100], 200), _extra_length([10, 5], 200)
    (3, 1, 2)
    """
    growth = totals[-1] / max(totals[-2], 1)
    if growth <= 1:
        return len(totals)
    return max(1, int(math.log(max_paths / totals[-1]) / math.log(growth) + 1e-9))
