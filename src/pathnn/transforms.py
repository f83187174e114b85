"""`AddPaths`: paths as a PyG transform."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from pathnn.checks import check_flag
from pathnn.paths.extract import extract_paths
from pathnn.paths.options import (
    COLLECTIONS,
    DEFAULT_MAX_PATHS,
    Collection,
    check_collection,
    check_length,
    check_options,
)
from pathnn.paths.ragged import RaggedTries, Segments
from pathnn.paths.trie import PathTrie
from pathnn.paths.trie_checks import check_edge_rows, check_edges_exist, check_sizes

KEY = "paths"
DEFAULTS: dict[str, Any] = {
    "distances": None,
    "extend": False,
    "max_paths": DEFAULT_MAX_PATHS,
    "max_paths_per_source": None,
    "seed": 0,
}
"""Of the options of `AddPaths`."""


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
        extend, max_paths, max_paths_per_source, seed = check_options(extend, max_paths, max_paths_per_source, seed)
        self.options: dict[str, Any] = {
            "distances": None if distances is None else check_flag("distances", distances),
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
        if KEY in data and not _is_packed(data[KEY]):
            raise ValueError(f"AddPaths stores its result as data.{KEY}, which this data already uses: rename yours.")
        trie = extract_paths(data.edge_index, data.num_nodes, collection=self.collection, k=self.k, **self.options)
        data[KEY] = pack(trie)
        return data

    def __repr__(self) -> str:
        """With every option that is not the default: PyG compares it to tell whether processed data is out of date."""
        chosen = {name: value for name, value in self.options.items() if value != DEFAULTS[name]}
        options = {"collection": self.collection, "k": self.k, **chosen}
        return f"AddPaths({', '.join(f'{name}={value!r}' for name, value in options.items())})"


def pack(trie: PathTrie) -> dict[str, Tensor]:
    """A trie as a dictionary of tensors of which any number can be concatenated."""
    sampled = -1 if trie.sampled is None else trie.sampled
    options = [COLLECTIONS.index(trie.collection), trie.k, trie.extended, sampled, trie.distance is not None]
    tensors = {
        "facts": torch.tensor([[*map(int, options), trie.num_nodes, trie.num_edges]], device="cpu"),
        # flat: PyG joins those of different k, too
        "size": torch.tensor([n for levels in trie.sizes for n in levels], device="cpu"),
        "vertex": trie.vertex,
        "parent": trie.parent,
        "edge": trie.edge,
        "distance": trie.vertex[:0] if trie.distance is None else trie.distance,
    }
    # names that no __inc__ or __cat_dim__ of a user's own Data means
    return {f"pathnn_{name}": tensor for name, tensor in tensors.items()}


def trie_of(data: Any) -> PathTrie:
    """See `PathTrie.from_data`."""
    if hasattr(data, "max_entries"):  # a GraphBatch of pathnn.data
        if data.trie is None:
            raise ValueError("this batch has no trie: build the graphs with with_paths(collection=..., k=...) first.")
        return data.trie
    if KEY not in data or not _is_packed(data[KEY]):
        raise ValueError(
            f"{type(data).__name__} has no paths: expected data that AddPaths(collection, k) was applied to, "
            "or extract_paths(data.edge_index, data.num_nodes, ...) instead."
        )
    packed = {name.removeprefix("pathnn_"): tensor for name, tensor in data[KEY].items()}
    facts = packed["facts"].cpu()
    _check_alike(facts)
    collection, k, extended, sampled, distances = facts[0, :5].tolist()
    host = Segments.graph_by_graph(packed["size"].cpu().view(len(facts), -1), facts[:, 5], facts[:, 6], k)
    ragged = RaggedTries(
        packed["vertex"], packed["parent"], packed["edge"], packed["distance"] if distances else None,
        host, host.to(packed["vertex"].device), COLLECTIONS[collection], k, bool(extended),
        None if sampled < 0 else sampled,
    )  # fmt: skip
    trie, edge_index = ragged.trie(), getattr(data, "edge_index", None)
    check_sizes(trie, nodes=data.num_nodes)
    if edge_index is not None:
        if getattr(data, "edge_attr", None) is not None:
            if len(facts) > 1 or edge_index.size(1) < trie.num_edges:
                # edges that were added later lie behind those of one graph, and between those of several
                check_sizes(trie, edges=edge_index.size(1))
            check_edge_rows(trie, edge_index)
        else:
            check_edges_exist(trie, edge_index)
    return trie


def _check_alike(facts: Tensor) -> None:
    different = (facts[:, :5] != facts[:1, :5]).any(dim=1).nonzero()
    if different.numel():
        graph = int(different[0])
        raise ValueError(
            f"the batch mixes paths of different options: graph 0 has {_options(facts[0])}, "
            f"graph {graph} has {_options(facts[graph])}. Apply the same AddPaths to all graphs."
        )


def _options(facts: Tensor) -> str:
    """The options of a graph's paths, in words."""
    collection, k, extended, sampled, distances = facts[:5].tolist()
    words = f"collection={COLLECTIONS[collection]!r}, k={k}, distances={bool(distances)}, extend={bool(extended)}"
    return words if sampled < 0 else f"{words}, max_paths_per_source={sampled}"


def _is_packed(value: Any) -> bool:
    return isinstance(value, dict) and "pathnn_facts" in value
