"""From a trie and the features it names to what an engine reads: projected tables and rows into them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from pathnn.nn.edge_types import EdgeTypes
from pathnn.nn.engines.cuda import cuda_ready
from pathnn.nn.engines.level import LevelRows, Tables
from pathnn.nn.tall_linear import tall_linear
from pathnn.paths.trie import LengthTrie


def project(
    h: Tensor,
    distances: Tensor | None,
    edges: Tensor | EdgeTypes | None,
    *,
    weight_ih: Tensor,
    bias: Tensor,
) -> Tables:
    """`W_ih [h; d; e]` split by columns: one product per vertex, per distance and per edge (or type of edge).

    `h` may have one more row than there are vertices: the dummy token's.
    """
    vertex = F.linear(h, weight_ih[:, : h.size(1)], bias)
    return Tables(vertex, *project_small(distances, edges, weight_ih=weight_ih, channels=h.size(1)))


def project_small(
    distances: Tensor | None, edges: Tensor | EdgeTypes | None, *, weight_ih: Tensor, channels: int
) -> tuple[Tensor | None, Tensor | None]:
    """The tables of edges and of distances, which are the same in every layer."""
    split = channels if distances is None else 2 * channels
    distance = None if distances is None else F.linear(distances, weight_ih[:, channels:split])
    if edges is None:
        return None, distance
    features = edges.table if isinstance(edges, EdgeTypes) else edges
    linear = tall_linear if cuda_ready(features) else F.linear
    edge = linear(features, weight_ih[:, split:])
    return torch.cat([edge, edge.new_zeros(1, edge.size(1))]), distance


def level_rows(trie: LengthTrie, edges: Tensor | EdgeTypes | None, *, distances: bool) -> list[LevelRows]:
    """The rows of the tables that each entry reads, level by level."""
    levels = []
    for level in trie.levels:
        vertex = torch.where(level.vertex < 0, trie.num_nodes, level.vertex)
        edge = None if edges is None or level.edge is None else _edge_rows(level.edge, edges)
        distance = level.distance if distances else None
        levels.append(LevelRows(level.parent, vertex.contiguous(), edge, distance))
    return levels


def _edge_rows(edge: Tensor, edges: Tensor | EdgeTypes) -> Tensor:
    """Where -1, no edge, is the row after the last."""
    if isinstance(edges, EdgeTypes):
        none = edges.table.size(0)
        index = torch.cat([edges.types.to(torch.int32), edges.types.new_full((1,), none, dtype=torch.int32)])
        return index[edge.long()]
    return torch.where(edge < 0, edges.size(0), edge)
