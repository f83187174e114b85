"""Add paths to PyG data: the transform `AddPaths`."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.transforms import BaseTransform

from pathnn.paths.extract import extract_with
from pathnn.paths.options import DEFAULT_MAX_PATHS, Collection, PathFunction, PathOptions, make_options
from pathnn.paths.storage import KEY, is_packed, pack

torch.serialization.add_safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage])
"""So that `torch.load(weights_only=True)` reads saved data, for which PyG does not register its classes."""


class AddPaths(BaseTransform):
    """Extract the paths of each graph once, as a PyG transform; batches then carry the paths of all their graphs.

    The options are those of `extract_paths`. The paths are stored as `data.paths`, a dictionary of tensors with ids
    counted within the graph, which PyG's collation concatenates. `PathTrie.from_data` returns the trie of a graph or
    of a whole batch, on the device of the data.

    >>> import torch
    >>> from pathnn import PathTrie
    >>> from torch_geometric.data import Batch, Data
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> data = AddPaths("sp+", k=2)(Data(edge_index=edge_index, num_nodes=3))
    >>> PathTrie.from_data(Batch.from_data_list([data, data])).to_paths()[1].tolist()
    [[2, 1, 0], [0, 1, 2], [5, 4, 3], [3, 4, 5]]
    """

    def __init__(
        self,
        collection: Collection | PathFunction,
        k: int,
        *,
        distances: bool | None = None,
        extend: bool = False,
        max_paths: int | None = DEFAULT_MAX_PATHS,
        max_paths_per_source: int | None = None,
        seed: int | None = 0,
        directed: bool = False,
    ) -> None:
        self.options = make_options(
            collection, k, distances=distances, extend=extend, max_paths_per_source=max_paths_per_source, seed=seed,
            max_paths=max_paths, directed=directed,
        )  # fmt: skip

    def forward(self, data: Any) -> Any:
        """Store the paths in `data`, a shallow copy that `BaseTransform` makes."""
        if not isinstance(data, Data):
            raise ValueError(
                f"AddPaths got a {type(data).__name__}: expected a torch_geometric.data.Data. "
                "Call to_homogeneous() on a HeteroData first."
            )
        if data.edge_index is None:
            raise ValueError("AddPaths got a Data without edge_index: expected one of shape [2, num_edges].")
        if KEY in data and not is_packed(data[KEY]):
            raise ValueError(f"AddPaths stores its result as data.{KEY}, which this data already uses: rename yours.")
        data[KEY] = pack(extract_with(data.edge_index, data.num_nodes, self.options, edge_attr=data.edge_attr))
        return data

    def __repr__(self) -> str:
        """Name every option that is not the default: PyG compares it to find out of date processed data."""
        options, k = self.options.to_dict(), self.options.k
        default = PathOptions(self.options.collection, k).to_dict()
        changed = {name: options[name] for name in sorted(options) if options[name] != default[name]}
        options = {"collection": self.options.collection, "k": k, **changed}
        if self.options.function is not None:
            options["function"] = getattr(self.options.function, "__qualname__", "?")
        return f"AddPaths({', '.join(f'{name}={value!r}' for name, value in options.items())})"
