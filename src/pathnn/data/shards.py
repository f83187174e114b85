"""Tries larger than memory: memory-mapped files of safetensors."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.paths import BYTES_PER_PATH, chunks_of_paths, count_per_graph, tries_key
from pathnn.files import atomic_write, sha256, write_tensors
from pathnn.paths.options import Collection, PathOptions
from pathnn.paths.ragged import RaggedTries, cat_tries
from pathnn.paths.storage import from_tensors, to_tensors
from pathnn.paths.trie import PathTrie

log = logging.getLogger(__name__)

FORMAT = "pathnn-shards"
VERSION = 2
SHARD_BYTES = 256 * 2**20


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
        shards = torch.unique(owner).tolist()
        if len(shards) == 1:
            return self.shards[shards[0]].select(index - self.first[shards[0]]).to(self.device)
        if not shards:
            return self.shards[0].select(index).to(self.device)
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
    max_bytes: int = SHARD_BYTES,
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
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file: expected a folder for the paths, or a new name.")
    options = PathOptions(collection, k, distances, extend, max_paths_per_source, seed)
    key = tries_key(graphs, options)
    tries = open_shards(folder, key, options, verify=verify)
    if tries is None or len(tries) != len(graphs):
        _write_shards(graphs.to("cpu"), folder, options, key, max_bytes)
        tries = open_shards(folder, key, options, verify=False)
        assert tries is not None, "shards that were just written can be read"
    return replace(graphs, tries=tries.to(graphs.device))


def open_shards(
    folder: Path, key: dict[str, object], options: PathOptions, *, verify: bool = True
) -> ShardedTries | None:
    """Open the tries in `folder`; None if they are missing, damaged or built from another key."""
    shards = _manifest_shards(folder, key)
    if shards is None:
        return None
    for shard in shards:
        path = folder / shard["file"]
        if not path.is_file() or path.stat().st_size != shard["bytes"]:
            log.info("%s is rebuilt: %s is missing or truncated", folder, shard["file"])
            return None
        if verify and sha256(path) != shard["sha256"]:
            log.info("%s is rebuilt: %s is damaged", folder, shard["file"])
            return None
    files = [safetensors.torch.load_file(folder / shard["file"]) for shard in shards]  # maps them, reads on access
    tries = tuple(from_tensors(tensors, options) for tensors in files)
    return ShardedTries(tries, offsets(torch.tensor([len(part) for part in tries])))


def _manifest_shards(folder: Path, key: dict[str, object]) -> list[dict[str, Any]] | None:
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        expected = {"format": FORMAT, "version": VERSION, "key": json.loads(json.dumps(key))}
        shards = list(manifest.pop("shards"))
        return shards if manifest == expected else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write_shards(
    graphs: PackedGraphs, folder: Path, options: PathOptions, key: dict[str, object], max_bytes: int
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    counts = count_per_graph(graphs, options, max_paths=free // (2 * BYTES_PER_PATH))
    tag = hashlib.sha256(json.dumps([key, max_bytes]).encode()).hexdigest()[:12]
    shards = []
    for i, (_, tries) in enumerate(chunks_of_paths(graphs, options, counts, max_bytes)):
        path = folder / f"shard-{tag}-{i:05d}.safetensors"
        write_tensors(path, to_tensors(tries), kind=FORMAT, version=VERSION, meta={})
        shards.append({"file": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)})
    manifest = {"format": FORMAT, "version": VERSION, "key": key, "shards": shards}
    with atomic_write(folder / "manifest.json") as file:
        file.write(json.dumps(manifest, indent=1).encode())


def _pick(tries: RaggedTries, index: Tensor) -> RaggedTries:
    """Copy the tries of some graphs of a shard to memory."""
    trie = tries.select(index)
    return RaggedTries.from_trie(
        trie, offsets(tries.segments.num_nodes[index]), offsets(tries.segments.num_edges[index])
    )
