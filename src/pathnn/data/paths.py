"""Extract the paths of a dataset in chunks of graphs, in memory or in memory-mapped files, and count them."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.fingerprints import tensors_digest
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.task import Task
from pathnn.device import free_memory
from pathnn.files import atomic_write, cache_dir, sha256, write_tensors
from pathnn.paths.count import refuse_explosion, sum_per_graph
from pathnn.paths.cpu.extract import bound_per_source, count_per_source
from pathnn.paths.csr import to_csr
from pathnn.paths.extract import COUNT_TO, extract_with
from pathnn.paths.options import UNLIMITED, Collection, PathOptions
from pathnn.paths.ragged import RaggedTries, cat_tries
from pathnn.paths.storage import from_tensors, to_tensors
from pathnn.paths.trie import PathTrie

log = logging.getLogger(__name__)

BYTES_PER_PATH = 32
"""Rough size of a path's entries: prefixes are shared, so that a path adds about two entries of 16 bytes."""

CHUNK_BYTES = 256 * 2**20
SUMMARY_BYTES = 64 * 2**20
COUNT_NODES = 200_000
FIRST_LENGTH = 4
FORMAT = "pathnn-shards"
VERSION = 2
TRIES_VERSION = 5  # raised when extraction gives other tries or the form of the tensors changes


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


def tries_key(graphs: PackedGraphs, options: PathOptions) -> dict[str, object]:
    """Return what determines the tries: version, graphs and options."""
    if options.max_paths_per_source is not None and options.seed is None:
        raise ValueError("seed=None draws other paths in each call, which cannot be stored: give an integer.")
    plain = PackedGraphs(graphs.edge_index, graphs.node_ptr, graphs.edge_ptr)
    return {"tries": TRIES_VERSION, "graphs": tensors_digest(plain.tensors()), **options.key()}


def cached_paths(graphs: PackedGraphs, options: PathOptions) -> RaggedTries:
    """Return the tries of `build_paths` from shards in the cache folder, or build and store them there."""
    key = tries_key(graphs, options)
    name = hashlib.sha256(repr(sorted(key.items())).encode()).hexdigest()[:24]
    try:
        tries = store_paths(graphs, cache_dir() / "paths" / name, options)
    except OSError as error:
        log.warning("the paths could not be written (%s): continuing without a cache", error)
        return build_paths(graphs, options)
    return cat_tries(tries.shards).to(graphs.device)


@dataclass(frozen=True, eq=False, repr=False)
class ShardedTries:
    """Tries in memory-mapped files, with the interface of `RaggedTries`; batches are on `device`."""

    shards: tuple[RaggedTries, ...]
    first: Tensor
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - a constant

    def __len__(self) -> int:
        return int(self.first[-1])

    def __repr__(self) -> str:
        return f"ShardedTries(graphs={len(self)}, shards={len(self.shards)}, bytes={self.nbytes})"

    @property
    def sizes(self) -> Tensor:
        """Entries per graph and level, `[graphs, levels]`, on the CPU."""
        return torch.cat([shard.sizes for shard in self.shards])

    @property
    def nbytes(self) -> int:
        """Bytes of the mapped files."""
        return sum(shard.nbytes for shard in self.shards)

    def to(self, device: torch.device | str) -> ShardedTries:
        """Return the same files, with batches on `device`."""
        return replace(self, device=torch.device(device))

    def select(self, index: Tensor) -> PathTrie:
        """Return the trie of the batch of graphs `index`, in that order; read only their entries."""
        index = index.cpu()
        owner = torch.searchsorted(self.first, index, right=True) - 1
        shards = torch.unique(owner).tolist() or [0]
        if len(shards) == 1:
            return self.shards[shards[0]].select(index - self.first[shards[0]]).to(self.device)
        places = [(owner == shard).nonzero().view(-1) for shard in shards]
        parts = [_pick(self.shards[i], index[place] - self.first[i]) for i, place in zip(shards, places, strict=True)]
        return cat_tries(parts).select(torch.cat(places).argsort()).to(self.device)


def build_shards(
    graphs: PackedGraphs,
    folder: Path | str,
    *,
    collection: Collection,
    k: int,
    distances: bool | None = None,
    extend: bool = False,
    max_paths_per_source: int | None = None,
    seed: int = 0,
    max_bytes: int = CHUNK_BYTES,
    verify: bool = True,
) -> PackedGraphs:
    """Store the paths of the graphs in memory-mapped files in `folder`, or reuse those already there.

    At most about `max_bytes` of tries are in memory at once. Paths that do not fit on the disk are refused before
    anything is written. `verify=False` skips the checksums of existing shards.

    ```python
    task = load_dataset("csl")
    graphs = build_shards(task.graphs, "paths", collection="ap", k=3)
    batch = graphs.select(torch.arange(8))     # reads what it needs of the files
    ```
    """
    options = PathOptions(collection, k, distances, extend, max_paths_per_source, seed, max_paths=None)
    tries = store_paths(graphs, Path(folder), options, max_bytes=max_bytes, verify=verify)
    return replace(graphs, tries=tries.to(graphs.device))


def store_paths(
    graphs: PackedGraphs, folder: Path, options: PathOptions, *, max_bytes: int = CHUNK_BYTES, verify: bool = True
) -> ShardedTries:
    """Return the tries in the shards in `folder`; write them first if they are missing, damaged or of other paths."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file: expected a folder for the paths, or a new name.")
    key = tries_key(graphs, options)
    tries = _open_shards(folder, key, options, verify=verify)
    if tries is None or len(tries) != len(graphs):
        _write_shards(graphs.to("cpu"), folder, options, key, max_bytes)
        tries = _open_shards(folder, key, options, verify=False)
        assert tries is not None, "shards that were just written can be read"
    return tries


Tries = RaggedTries | ShardedTries  # the tries of a dataset, in memory or on disk


def _open_shards(folder: Path, key: dict[str, object], options: PathOptions, *, verify: bool) -> ShardedTries | None:
    """Open the tries in `folder`; None if they are missing, damaged or built from another key."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        shards = list(manifest.pop("shards"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if manifest != {"format": FORMAT, "version": VERSION, "key": json.loads(json.dumps(key))}:
        return None
    for shard in shards:
        path = folder / shard["file"]
        whole = path.is_file() and path.stat().st_size == shard["bytes"]
        if not whole or (verify and sha256(path) != shard["sha256"]):
            log.info("%s is rebuilt: %s is missing or damaged", folder, shard["file"])
            return None
    files = [safetensors.torch.load_file(folder / shard["file"]) for shard in shards]  # maps them, reads on access
    tries = tuple(from_tensors(tensors, options) for tensors in files)
    return ShardedTries(tries, offsets(torch.tensor([len(part) for part in tries])))


def _write_shards(
    graphs: PackedGraphs, folder: Path, options: PathOptions, key: dict[str, object], max_bytes: int
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    fits = shutil.disk_usage(folder).free // (2 * BYTES_PER_PATH)
    counts = count_per_graph(graphs, options, max_paths=fits if options.max_paths is None else options.max_paths)
    tag = hashlib.sha256(json.dumps([key, max_bytes]).encode()).hexdigest()[:12]
    shards = []
    for i, tries in enumerate(chunks_of_paths(graphs, options, counts, max_bytes)):
        path = folder / f"shard-{tag}-{i:05d}.safetensors"
        write_tensors(path, to_tensors(tries), kind=FORMAT, version=VERSION, meta={})
        shards.append({"file": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)})
    manifest = {"format": FORMAT, "version": VERSION, "key": key, "shards": shards}
    with atomic_write(folder / "manifest.json") as file:
        file.write(json.dumps(manifest, indent=1).encode())


def _pick(tries: RaggedTries, index: Tensor) -> RaggedTries:
    """Copy the tries of some graphs of a shard to memory."""
    trie = tries.select(index)
    return RaggedTries.from_trie(trie, offsets(tries.num_nodes[index]), offsets(tries.num_edges[index]))


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
    """Raise `PathExplosionError` if there are more than `max_paths` paths of length 1..k.

    Short paths are counted first: many graphs take minutes to reach the limit, which each range of sources has.
    """
    for length in range(min(k, FIRST_LENGTH) if collection == "ap" else k, k + 1):
        counts = count_per_graph(graphs, PathOptions(collection, length), max_paths=max_paths)
        if not counts[:, -1].any():
            return
