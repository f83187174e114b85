"""Batches of one shape with edges instead of paths: what the CUDA graph of a baseline needs."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs
from pathnn.training.cuda_graphs.padded_batch import PaddedRows, PaddedShape, graph_sizes, on_gpu

PADDED = 64
"""Vertices among which the padded edges of a batch are shared out, at least: few with many loops would get large
numbers."""


def with_room(capacity: PaddedShape) -> PaddedShape:
    """A capacity with more padded vertices."""
    return replace(capacity, nodes=capacity.nodes + PADDED)


class PaddedEdges(PaddedRows):
    """Padded batches with their edges; padded edges are loops at padded vertices."""

    def __init__(self, graphs: PackedGraphs, capacity: PaddedShape, models: int = 1) -> None:
        if not on_gpu(graphs):
            raise ValueError(f"{graphs}: expected graphs that are on a GPU: graphs.to('cuda').")
        starts = torch.stack([graphs.node_ptr[:-1], graphs.edge_ptr[:-1]], dim=1)
        origin = torch.cat([starts, torch.zeros_like(starts)], dim=1).to(graphs.device)
        super().__init__(graphs, capacity, graph_sizes(graphs, paths=False), origin, models)
        self._all = graphs.edge_index.contiguous()
        self._edge_index = torch.zeros(2, models * capacity.edges, dtype=torch.int64, device=graphs.device)

    @property
    def edge_index(self) -> Tensor:
        """The ends of the edges; another tensor every time, so that what is worked out from it is not kept for ever."""
        return self._edge_index.view(2, -1)

    def assemble(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Fill the batch and `edge_index`; return the features x and edge_attr and the targets y."""
        from pathnn.nn.backends.triton.kernels.gather import gather_edges

        capacity = self.capacity
        gather_edges[capacity.graphs + 1, self.models](
            self.layout, self._origin, self._all, self._edge_index, self._all.size(1),
            capacity.graphs, capacity.nodes, capacity.edges, LEVELS=self._levels, BLOCK=128,
        )  # fmt: skip
        return super().assemble()
