"""A batch of graphs: PyG's words as fields, and the tries of its paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pathnn.data.pieces import trie_pieces
from pathnn.paths.trie import LengthTrie, PathTrie


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch:
    """Several graphs as one, equal to PyG's `Batch` of the same graphs, field by field.

    Attributes:
        x: `[num_nodes, ...]` or None; categories are int64, all else is floating.
        edge_index: `[2, num_edges]`, int64, vertices numbered through the batch.
        edge_attr: `[num_edges, ...]` or None.
        batch: `[num_nodes]`, the graph of each vertex.
        ptr: `[num_graphs + 1]`, the first vertex of each graph.
        y: `[num_graphs, ...]` or None.
        trie: the paths of the batch, or None.
        max_entries: how many entries of `trie` may be worked on at once, None for all: see `pieces`.
    """

    x: Tensor | None
    edge_index: Tensor
    edge_attr: Tensor | None
    batch: Tensor
    ptr: Tensor
    y: Tensor | None
    num_nodes: int
    num_graphs: int
    trie: PathTrie | None = None
    max_entries: int | None = None

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.edge_index.device

    def __len__(self) -> int:
        return self.num_graphs

    def __repr__(self) -> str:
        return (
            f"GraphBatch(num_graphs={self.num_graphs}, num_nodes={self.num_nodes}, "
            f"num_edges={self.num_edges}, trie={self.trie}, device={str(self.device)!r})"
        )

    @property
    def over_budget(self) -> bool:
        """Whether the tries exceed `max_entries`, so that a model should work through `pieces()`."""
        return self.trie is not None and self.max_entries is not None and self.trie.num_entries > self.max_entries

    def pieces(self) -> list[list[LengthTrie]]:
        """For each path length the tries of the batch, cut by roots into pieces of at most `max_entries`."""
        if self.trie is None:
            raise ValueError("this batch has no trie: build the graphs with with_paths(collection=..., k=...) first.")
        if not self.over_budget or self.max_entries is None:
            return [[length] for length in self.trie.lengths()]
        return trie_pieces(self.trie, self.max_entries)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> GraphBatch:
        """The same batch on `device`."""
        return self._map(
            lambda tensor: tensor.to(device, non_blocking=non_blocking),
            None if self.trie is None else self.trie.to(device, non_blocking=non_blocking),
        )

    def pin_memory(self) -> GraphBatch:
        """The same batch in page-locked memory, for asynchronous copies to a GPU."""
        return self._map(Tensor.pin_memory, None if self.trie is None else self.trie.pin_memory())

    def _map(self, function: Callable[[Tensor], Tensor], trie: PathTrie | None) -> GraphBatch:
        def optional(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else function(tensor)

        return replace(
            self,
            x=optional(self.x),
            edge_index=function(self.edge_index),
            edge_attr=optional(self.edge_attr),
            batch=function(self.batch),
            ptr=function(self.ptr),
            y=optional(self.y),
            trie=trie,
        )

    def to_pyg(self) -> Any:
        """The same as a `torch_geometric.data.Batch`, without the paths."""
        from torch_geometric.data import Batch

        fields = {"x": self.x, "edge_index": self.edge_index, "edge_attr": self.edge_attr, "y": self.y}
        out = Batch(batch=self.batch, ptr=self.ptr, **{k: v for k, v in fields.items() if v is not None})
        out.num_nodes = self.num_nodes
        return out
