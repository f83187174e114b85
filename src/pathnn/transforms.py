"""`AddPaths`: paths as a PyG transform."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from pathnn.collection import COLLECTIONS, Collection, check_collection
from pathnn.paths.count import DEFAULT_MAX_PATHS, check_length
from pathnn.paths.extract import extract_paths
from pathnn.paths.ragged import RaggedTries, Segments
from pathnn.paths.trie import PathTrie

KEY = "paths"


class AddPaths(BaseTransform):
    """Extract the paths of each graph once, as a PyG transform; batches then carry the paths of all their graphs.

    The paths are stored as `data.paths`, a dictionary of tensors with ids counted within the graph. PyG's collation
    only concatenates those, so `__inc__` and the attribute's name do not matter, and `PathTrie.from_data` makes the
    trie of a graph or of a whole batch, on whatever device it is. Options are those of `extract_paths`.

    >>> from torch_geometric.data import Batch, Data
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> data = AddPaths("sp+", k=2)(Data(edge_index=edge_index, num_nodes=3))
    >>> PathTrie.from_data(Batch.from_data_list([data, data])).to_paths()[1].tolist()
    [[2, 1, 0], [0, 1, 2], [5, 4, 3], [3, 4, 5]]
    """

    def __init__(
        self,
        collection: Collection,
        k: int,
        *,
        distances: bool | None = None,
        extend: bool = False,
        max_paths: int | None = DEFAULT_MAX_PATHS,
        max_paths_per_source: int | None = None,
        seed: int = 0,
    ) -> None:
        self.collection: Collection = check_collection(collection)
        self.k = check_length(k)
        self.options: dict[str, Any] = {
            "distances": distances,
            "extend": extend,
            "max_paths": max_paths,
            "max_paths_per_source": max_paths_per_source,
            "seed": seed,
        }

    def forward(self, data: Any) -> Any:
        """Store the paths in a (shallow) copy of `data`, which `BaseTransform` makes."""
        if not isinstance(data, Data):
            raise ValueError(
                f"AddPaths got a {type(data).__name__}: expected a torch_geometric.data.Data. "
                "Of a HeteroData, take to_homogeneous() first."
            )
        if data.edge_index is None:
            raise ValueError("AddPaths got a Data without edge_index: expected one of shape [2, num_edges].")
        trie = extract_paths(data.edge_index, data.num_nodes, collection=self.collection, k=self.k, **self.options)
        data[KEY] = pack(trie)
        return data

    def __repr__(self) -> str:
        return f"AddPaths(collection={self.collection!r}, k={self.k})"


def pack(trie: PathTrie) -> dict[str, Tensor]:
    """A trie as a dictionary of tensors of which any number can be concatenated."""
    sampled = -1 if trie.sampled is None else trie.sampled
    facts = [
        COLLECTIONS.index(trie.collection),
        trie.k,
        int(trie.extended),
        sampled,
        trie.num_nodes,
        trie.num_edges,
    ]
    tensors = {
        "facts": torch.tensor([facts]),
        "size": torch.tensor([[n for levels in trie.sizes for n in levels]]),
        "vertex": trie.vertex,
        "parent": trie.parent,
        "edge": trie.edge,
    }
    return tensors if trie.distance is None else {**tensors, "distance": trie.distance}


def trie_of(data: Any) -> PathTrie:
    """See `PathTrie.from_data`."""
    packed = data[KEY] if KEY in data else None  # noqa: SIM401 (a Batch has no get)
    if not isinstance(packed, dict) or "facts" not in packed:
        raise ValueError(
            f"{type(data).__name__} has no paths: expected data that AddPaths(collection, k) was applied to, "
            "or extract_paths(data.edge_index, data.num_nodes, ...) instead."
        )
    facts = packed["facts"].cpu()
    if bool((facts[:, :4] != facts[:1, :4]).any()):
        raise ValueError("the batch mixes graphs with paths of different collection, k or options: expected all alike.")
    collection, k, extended, sampled = facts[0, :4].tolist()
    host = Segments.graph_by_graph(packed["size"].cpu(), facts[:, 4], facts[:, 5], k)
    flat = packed["vertex"], packed["parent"], packed["edge"], packed.get("distance")
    ragged = RaggedTries(
        *flat, host, host.to(packed["vertex"].device), COLLECTIONS[collection], k, bool(extended),
        None if sampled < 0 else sampled,
    )  # fmt: skip
    return ragged.trie()
