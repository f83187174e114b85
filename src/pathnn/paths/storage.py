"""Store tries as named tensors: in PyG data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pathnn.paths.options import COLLECTIONS, OTHER_COLLECTIONS, PathOptions
from pathnn.paths.ragged import RaggedTries
from pathnn.paths.trie import PathTrie
from pathnn.paths.trie_checks import check_edges, check_sizes

KEY = "paths"
"""The attribute of PyG data that holds a packed trie."""

NAMES = tuple(COLLECTIONS | OTHER_COLLECTIONS)


def pack(trie: PathTrie) -> dict[str, Tensor | str]:
    """Return a trie as a dictionary of tensors, which PyG concatenates, and a text, which stays on the CPU."""
    sampled = -1 if trie.sampled is None else trie.sampled
    flags = trie.extended + 2 * trie.directed
    options = [NAMES.index(trie.collection), trie.k, flags, sampled, trie.distance is not None]
    sizes = [n for levels in trie.sizes for n in levels]
    tensors: dict[str, Tensor | str] = {
        "layout": " ".join(str(int(n)) for n in (*options, trie.num_nodes, trie.num_edges, *sizes)),
        "vertex": trie.vertex,
        "parent": trie.parent,
        "edge": trie.edge,
        "distance": trie.vertex[:0] if trie.distance is None else trie.distance,
    }
    # with a prefix, so that no __inc__ or __cat_dim__ of a custom Data applies
    return {f"pathnn_{name}": tensor for name, tensor in tensors.items()}


def is_packed(value: Any) -> bool:
    """Return whether `value` is the result of `pack`, or a batch of such results."""
    return isinstance(value, dict) and "pathnn_layout" in value


def trie_of(data: Any) -> PathTrie:
    """Return the trie of PyG data; see `PathTrie.from_data`."""
    if isinstance(getattr(data, "trie", None), PathTrie):  # a GraphBatch of pathnn.data
        return data.trie
    packed: Any = getattr(data, KEY, None)
    if not is_packed(packed):
        raise ValueError(
            f"{type(data).__name__} has no paths: apply AddPaths(collection, k) to the data, build a dataset with "
            "with_paths(collection=..., k=...), or call extract_paths(data.edge_index, data.num_nodes, ...)."
        )
    trie, graphs = _unpack(packed)
    edge_index = getattr(data, "edge_index", None)
    check_sizes(trie, nodes=data.num_nodes)
    if edge_index is None:
        return trie
    rows = getattr(data, "edge_attr", None) is not None
    if rows and (graphs > 1 or edge_index.size(1) < trie.num_edges):
        # edges that were added later are behind those of a single graph, but between those of several graphs
        check_sizes(trie, edges=edge_index.size(1))
    check_edges(trie, edge_index, rows=rows)
    return trie


def _unpack(packed: Mapping[str, Any]) -> tuple[PathTrie, int]:
    """Return the trie of one or more concatenated packed tries, and their number."""
    tensors = {name.removeprefix("pathnn_"): value for name, value in packed.items()}
    layout = tensors.pop("layout")
    rows = [list(map(int, text.split())) for text in ([layout] if isinstance(layout, str) else layout)]
    options = _options(rows[0])
    for graph, row in enumerate(rows):
        if row[:5] != rows[0][:5]:
            raise ValueError(
                f"the batch mixes paths of different options: graph {graph} has {_options(row).difference(options)} "
                "(graph 0). Apply the same AddPaths to all graphs."
            )
    if not options.distances:
        tensors["distance"] = None
    table = torch.tensor(rows)
    tries = RaggedTries(
        **tensors, num_nodes=table[:, 5], num_edges=table[:, 6], sizes=table[:, 7:], collection=options.collection,
        k=options.k, extended=options.extend, sampled=options.max_paths_per_source, directed=options.directed,
    )  # fmt: skip
    return tries.trie(), len(rows)


def _options(row: Sequence[int]) -> PathOptions:
    collection, k, flags, sampled, distances = row[:5]
    kept = None if sampled < 0 else sampled
    return PathOptions(NAMES[collection], k, bool(distances), bool(flags & 1), kept, directed=bool(flags & 2))
