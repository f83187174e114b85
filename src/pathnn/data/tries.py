"""Tries as tensors by name, for the cache and the shards, and the fingerprint of what they are built from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

import torch
from torch import Tensor

from pathnn.data.build_paths import PathOptions, build_paths
from pathnn.data.cache import cached
from pathnn.data.locations import cache_dir
from pathnn.data.packed import PackedGraphs
from pathnn.paths.ragged import RaggedTries, Segments
from pathnn.paths.trie import PathTrie

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
