"""A batch of graphs with the fields of PyG's `Batch`, and the trie of its paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pathnn.paths.trie import PathTrie


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch:
    """Several graphs as one, equal to PyG's `Batch` of the same graphs, field by field.

    Attributes:
        x: `[num_nodes, ...]` or None; int64 for categories, else floating.
        edge_index: `[2, num_edges]`, int64, vertices numbered through the batch.
        edge_attr: `[num_edges, ...]` or None.
        batch: `[num_nodes]`, the graph of each vertex.
        ptr: `[num_graphs + 1]`, the first vertex of each graph.
        y: `[num_graphs, ...]` or None.
        trie: the paths of the batch, or None.
        max_entries: how many entries of `trie` a model may process at once; None: all.
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
        """The device of its tensors."""
        return self.edge_index.device

    def __len__(self) -> int:
        return self.num_graphs

    def __repr__(self) -> str:
        return (
            f"GraphBatch(num_graphs={self.num_graphs}, num_nodes={self.num_nodes}, "
            f"num_edges={self.num_edges}, trie={self.trie}, device={str(self.device)!r})"
        )

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> GraphBatch:
        """Move the batch to `device`."""
        return self._map(
            lambda tensor: tensor.to(device, non_blocking=non_blocking),
            None if self.trie is None else self.trie.to(device, non_blocking=non_blocking),
        )

    def pin_memory(self) -> GraphBatch:
        """Copy the batch to page-locked memory, for asynchronous copies to a GPU."""
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
