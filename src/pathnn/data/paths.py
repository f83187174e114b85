"""Paths of a whole dataset, in chunks of graphs: count first, then extract so many graphs at once as fit."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from pathnn.checks import check_flag
from pathnn.data.cache import cached
from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Task
from pathnn.device import free_memory
from pathnn.files import cache_dir
from pathnn.paths.count import SAMPLE_FROM, PathExplosionError, count_per_source, refuse_explosion, sum_per_graph
from pathnn.paths.cpu.extract import UNLIMITED
from pathnn.paths.csr import to_csr
from pathnn.paths.extract import COUNT_TO, extract_paths
from pathnn.paths.options import Collection, check_collection, check_length, check_options
from pathnn.paths.ragged import RaggedTries, Segments, by_graph
from pathnn.paths.trie import PathTrie

BYTES_PER_PATH = 32
"""Rough size of a path's entries: prefixes are shared, so that a path adds about two entries of 16 bytes."""


CHUNK_BYTES = 256 * 2**20


COUNT_NODES = 200_000


@dataclass(frozen=True)
class PathOptions:
    """What is extracted; the arguments of `extract_paths`."""

    collection: Collection
    k: int
    distances: bool | None = None
    extend: bool = False
    max_paths_per_source: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_collection(self.collection)
        extend, _, kept, seed = check_options(self.extend, None, self.max_paths_per_source, self.seed)
        distances = None if self.distances is None else check_flag("distances", self.distances)
        plain = {"k": check_length(self.k), "distances": distances, "extend": extend, "seed": seed}
        for name, value in {**plain, "max_paths_per_source": kept}.items():
            object.__setattr__(self, name, value)


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
    chunk_bytes: int = CHUNK_BYTES,
) -> RaggedTries:
    """The tries of all graphs, extracted in chunks of graphs of about `chunk_bytes`.

    Paths are counted before anything is extracted; more than `max_paths` in all (None: what fits into the
    free memory) are refused with `PathExplosionError`. Larger sets go to disk: see `build_shards`.

    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> build_paths(PackedGraphs.from_edges([edge, edge], [2, 2]), collection="ap", k=2)
    RaggedTries(graphs=2, collection='ap', k=2, num_paths=4, entries=8, device='cpu')
    """
    options = PathOptions(collection, k, distances, extend, max_paths_per_source, seed)
    check_options(extend, max_paths, max_paths_per_source, seed)
    limit = free_memory(graphs.device) // (2 * BYTES_PER_PATH) if max_paths is None else max_paths
    counts = count_per_graph(graphs, options, max_paths=limit)
    return cat_tries([tries for _, tries in chunks_of_paths(graphs, options, counts, chunk_bytes)])


def count_per_graph(graphs: PackedGraphs, options: PathOptions, *, max_paths: int | None = None) -> Tensor:
    """Number of paths per graph and length, `[G, k]`, on the CPU; more than `max_paths` are refused."""
    parts: list[Tensor] = []
    before = 0
    for start, stop in graph_ranges(graphs.node_ptr.diff(), COUNT_NODES):
        for counts in _counted(graphs, options, start, stop, max_paths, before):
            before += int(counts.sum())
            parts.append(counts)
    return torch.cat(parts) if parts else torch.zeros(0, options.k, dtype=torch.long)


def _counted(
    graphs: PackedGraphs, options: PathOptions, start: int, stop: int, max_paths: int | None, before: int
) -> Iterator[Tensor]:
    """Number of paths per graph and length of some graphs, all at once; of a sample, of as many graphs as it can go
    through. `before` is the number of paths of the graphs before them.
    """
    chunk = graphs.chunk(start, stop)
    csr = to_csr(chunk.union(), chunk.num_nodes)
    batch = torch.repeat_interleave(torch.arange(len(chunk)), chunk.node_ptr.diff())
    kept, collection = options.max_paths_per_source, options.collection
    limit = SAMPLE_FROM if kept is not None else UNLIMITED if max_paths is None else max(max_paths - before, COUNT_TO)
    counts, complete = count_per_source(csr, collection, options.k, limit=limit)
    counts = counts.cpu()
    if kept is not None:
        if stop - start > 1 and not (complete and float(counts.double().sum()) <= SAMPLE_FROM):
            for first, last in _halves(start, stop):
                for part in _counted(graphs, options, first, last, max_paths, before):
                    before += int(part.sum())
                    yield part
            return
        refuse_explosion(counts, complete, collection, SAMPLE_FROM, batch + start, sampling=True)
        counts = counts.clamp(max=kept)
    if max_paths is not None:
        more: dict[str, Any] = {"before": before, "others": stop < len(graphs)}
        refuse_explosion(counts, complete, collection, max_paths, batch + start, **more)
    yield _pad(sum_per_graph(counts, batch), len(chunk))


def chunks_of_paths(
    graphs: PackedGraphs, options: PathOptions, counts: Tensor, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[range, RaggedTries]]:
    """Extract chunk by chunk: graph numbers and their tries, on the dataset's device."""
    sizes = (counts.sum(dim=1) * BYTES_PER_PATH).clamp(min=1)
    for start, stop in graph_ranges(sizes, chunk_bytes):
        yield from _extracted(graphs, options, start, stop)


def _extracted(
    graphs: PackedGraphs, options: PathOptions, start: int, stop: int
) -> Iterator[tuple[range, RaggedTries]]:
    """The tries of some graphs; of a sample in parts, where it cannot go through all their paths at once."""
    chunk = graphs.chunk(start, stop)
    try:
        trie = extract_chunk(chunk, options)
    except PathExplosionError:
        if stop - start == 1:
            raise
        for first, last in _halves(start, stop):
            yield from _extracted(graphs, options, first, last)
        return
    tries = RaggedTries.from_trie(trie, chunk.node_ptr, chunk.edge_ptr)
    yield range(start, stop), by_graph(tries) if tries.vertex.device.type == "cpu" else tries


def _halves(start: int, stop: int) -> tuple[tuple[int, int], tuple[int, int]]:
    middle = (start + stop) // 2
    return (start, middle), (middle, stop)


def extract_chunk(chunk: PackedGraphs, options: PathOptions) -> PathTrie:
    """The trie of the disjoint union of the graphs of a chunk, whose paths were counted before."""
    return extract_paths(
        chunk.union(),
        chunk.num_nodes,
        collection=options.collection,
        k=options.k,
        distances=options.distances,
        extend=options.extend,
        max_paths=None,
        max_paths_per_source=options.max_paths_per_source,
        seed=options.seed,
    )


def graph_ranges(sizes: Tensor, limit: int) -> list[tuple[int, int]]:
    """Consecutive graphs whose sizes sum to at most `limit`; a larger graph stands alone.

    >>> graph_ranges(torch.tensor([2, 2, 9, 1]), 4)
    [(0, 2), (2, 3), (3, 4)]
    """
    total = sizes.cumsum(dim=0)
    ranges, start, before = [], 0, 0
    while start < sizes.numel():
        stop = int(torch.searchsorted(total, before + limit, right=True))
        stop = max(stop, start + 1)
        ranges.append((start, stop))
        start, before = stop, int(total[stop - 1])
    return ranges


def cat_tries(parts: list[RaggedTries]) -> RaggedTries:
    """Tries of several runs of graphs as one; flat tensors one after the other, tables shifted."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        raise ValueError("no tries: expected at least one graph.")
    entry = child = 0
    hosts = []
    for part in parts:
        hosts.append(replace(part.host, entry=part.host.entry + entry, child=part.host.child + child))
        entry, child = entry + part.vertex.numel(), child + part.parent.numel()
    host = Segments(
        size=torch.cat([h.size for h in hosts]),
        entry=torch.cat([h.entry for h in hosts]),
        child=torch.cat([h.child for h in hosts]),
        parent=torch.cat([h.parent for h in hosts]),
        num_nodes=torch.cat([h.num_nodes for h in hosts]),
        num_edges=torch.cat([h.num_edges for h in hosts]),
        first_node=torch.cat([h.first_node for h in hosts]),
        first_edge=torch.cat([h.first_edge for h in hosts]),
    )
    distances = [part.distance for part in parts if part.distance is not None]
    return replace(
        parts[0],
        vertex=torch.cat([part.vertex for part in parts]),
        parent=torch.cat([part.parent for part in parts]),
        edge=torch.cat([part.edge for part in parts]),
        distance=torch.cat(distances) if distances else None,
        host=host,
        here=host.to(parts[0].vertex.device),
    )


def _pad(counts: Tensor, graphs: int) -> Tensor:
    """Rows for trailing graphs without vertices, of which no vertex tells."""
    return torch.cat([counts, counts.new_zeros(graphs - counts.size(0), counts.size(1))])


VERSION = 2
"""Raised when extraction gives other tries or the form of the tensors changes."""


SEGMENTS = ("size", "entry", "child", "parent", "num_nodes", "num_edges", "first_node", "first_edge")


class Tries(Protocol):
    """What a dataset needs of its tries, wherever they are kept."""

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
        """The trie of the batch of some graphs, in that order."""
        ...

    def to(self, device: torch.device | str) -> Tries:
        """The same, with batches on `device`."""
        ...


def fingerprint(graphs: PackedGraphs) -> str:
    """A checksum of the graphs' vertices and edges, their order included; features do not matter.

    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> fingerprint(PackedGraphs.from_edges([edge], [2])) == fingerprint(PackedGraphs.from_edges([edge], [3]))
    False
    """
    digest = hashlib.sha256()
    for tensor in (graphs.node_ptr, graphs.edge_ptr, graphs.edge_index.to("cpu", torch.int32)):
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def tries_key(graphs: PackedGraphs, options: PathOptions) -> dict[str, object]:
    """What determines the tries: version, graphs and options."""
    return {"tries": VERSION, "graphs": fingerprint(graphs), **asdict(options)}


def cached_paths(graphs: PackedGraphs, options: PathOptions, *, max_paths: int | None = None) -> RaggedTries:
    """The tries of `build_paths`, kept in the cache folder and read from there the next time."""
    key = tries_key(graphs, options)
    name = hashlib.sha256(repr(sorted(key.items())).encode()).hexdigest()[:24]

    def build() -> dict[str, Tensor]:
        return to_tensors(build_paths(graphs, max_paths=max_paths, **asdict(options)).to("cpu"))

    tensors = cached(cache_dir() / "paths" / f"{name}.pathnn", key, build)
    return from_tensors(tensors, options).to(graphs.device)


def to_tensors(tries: RaggedTries) -> dict[str, Tensor]:
    """Everything as tensors by name; `from_tensors` reads them back."""
    tensors = {"vertex": tries.vertex, "parent": tries.parent, "edge": tries.edge}
    if tries.distance is not None:
        tensors["distance"] = tries.distance
    host = tries.host
    table = (
        host.size,
        host.entry,
        host.child,
        host.parent,
        host.num_nodes,
        host.num_edges,
        host.first_node,
        host.first_edge,
    )
    return tensors | {f"host.{name}": tensor for name, tensor in zip(SEGMENTS, table, strict=True)}


def from_tensors(tensors: Mapping[str, Any], options: PathOptions) -> RaggedTries:
    """Read back what `to_tensors` wrote."""
    host = Segments(*(tensors[f"host.{name}"] for name in SEGMENTS))
    return RaggedTries(
        vertex=tensors["vertex"],
        parent=tensors["parent"],
        edge=tensors["edge"],
        distance=tensors.get("distance"),
        host=host,
        here=host,
        collection=options.collection,
        k=options.k,
        extended=options.extend,
        sampled=options.max_paths_per_source,
    )


SUMMARY_BYTES = 64 * 2**20


@dataclass(frozen=True)
class PathSummary:
    """What `pathnn paths` prints; `mean_paths[l]`: mean number of paths of exactly `l` edges per graph."""

    dataset: str
    collection: Collection
    k: int
    graphs: int
    mean_paths: dict[int, float]
    total_paths: int
    entries: int
    bytes: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


def summarize_paths(
    data: Task | PackedGraphs, collection: Collection, k: int, *, name: str | None = None, device: str = "cpu"
) -> PathSummary:
    """Count and extract all paths of a dataset; `bytes` is what its tries take in memory.

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
    counts = count_per_graph(graphs, options, max_paths=_most_paths(device))
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


def _most_paths(device: str) -> int:
    """A hundred times what fits into memory: to extract more would take too long to be meant."""
    return 100 * free_memory(device) // BYTES_PER_PATH


FIRST_LENGTH = 4


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
