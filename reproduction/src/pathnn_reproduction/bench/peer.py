"""What a user does today: igraph path by path, Python lists to tensors. The peer of the extraction benchmark."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.paths.options import Collection


def igraph_paths(graph: Any, collection: Collection, k: int) -> tuple[list[Tensor], list[Tensor]]:
    """Paths and, for AP, distances to their sources, a tensor per length: path by path, as the released code does."""
    apart = np.array(graph.distances()) if collection == "ap" else None
    paths: list[list[list[int]]] = [[] for _ in range(k)]
    distances: list[list[list[int]]] = [[] for _ in range(k)]
    for source in range(graph.vcount()):
        if collection == "ap":
            found = graph.get_all_simple_paths(source, minlen=1, maxlen=k)
        elif collection == "sp+":
            found = graph.get_all_shortest_paths(source)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # "couldn't reach some vertices"
                found = graph.get_shortest_paths(source)
        for path in found:
            if 2 <= len(path) <= k + 1:
                paths[len(path) - 2].append(path)
                if apart is not None:
                    distances[len(path) - 2].append([apart[source, vertex] for vertex in path])
    return [_tensor(found) for found in paths], [_tensor(found) for found in distances]


def _tensor(rows: list[list[int]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.long)


def to_igraph(edge_index: Tensor, num_nodes: int) -> Any:
    """The graph as an `igraph.Graph`."""
    import igraph

    one_way = edge_index[:, edge_index[0] < edge_index[1]].t().tolist()
    return igraph.Graph(n=num_nodes, edges=one_way)
