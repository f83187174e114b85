"""Padded batches with edges instead of paths, for CUDA graphs of the baselines."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs
from pathnn.training.cuda_graphs.padded_batch import PaddedRows, PaddedShape, graph_sizes, on_gpu

PADDED = 64
"""Least number of padded vertices: loops at few of them would give large sums."""


def with_room(capacity: PaddedShape) -> PaddedShape:
    """Return a shape with more padded vertices."""
    return replace(capacity, nodes=capacity.nodes + PADDED)


class PaddedEdges(PaddedRows):
    """Padded batches with their edges; padded edges are loops at padded vertices."""

    def __init__(self, graphs: PackedGraphs, capacity: PaddedShape) -> None:
        if not on_gpu(graphs):
            raise ValueError(f"{graphs}: expected graphs that are on a GPU: graphs.to('cuda').")
        starts = torch.stack([graphs.node_ptr[:-1], graphs.edge_ptr[:-1]], dim=1)
        origin = torch.cat([starts, torch.zeros_like(starts)], dim=1).to(graphs.device)
        super().__init__(graphs, capacity, graph_sizes(graphs, paths=False), origin)
        self._all = graphs.edge_index.contiguous()
        self._edge_index = torch.zeros(2, capacity.edges, dtype=torch.int64, device=graphs.device)

    @property
    def edge_index(self) -> Tensor:
        """The edges of the batch, as a new tensor at each call: layers must not cache what they derive from it."""
        return self._edge_index.view(2, -1)

    def assemble(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Fill the batch and `edge_index`; return the features x and edge_attr and the targets y."""
        from pathnn.training.cuda_graphs.kernels import gather_edges

        capacity = self.capacity
        gather_edges[(capacity.graphs + 1,)](
            self.layout, self._origin, self._all, self._edge_index, self._all.size(1),
            capacity.graphs, capacity.nodes, capacity.edges, LEVELS=self._levels, BLOCK=128,
        )  # fmt: skip
        return super().assemble()
