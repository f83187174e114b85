"""Random graphs with features, as PyG's `Data`, for hypothesis."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch_geometric.data import Data


@st.composite
def data_lists(draw: st.DrawFn, min_size: int = 1) -> list[Data]:
    """Undirected graphs of 0 to 6 vertices with vertex, edge and graph features."""
    integers, columns = draw(st.booleans()), draw(st.integers(1, 3))
    return [_graph(draw, integers, columns) for _ in range(draw(st.integers(min_size, 5)))]


def _graph(draw: st.DrawFn, integers: bool, columns: int) -> Data:
    n = draw(st.integers(0, 6))
    possible = [(u, v) for u in range(n) for v in range(u)]
    chosen = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    edges = draw(st.permutations([pair for u, v in chosen for pair in ((u, v), (v, u))]))
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    x = torch.randint(0, 9, (n, columns), generator=generator)
    edge_attr = torch.randint(0, 9, (len(edges), columns), generator=generator)
    y = torch.rand(1, 2, generator=generator)
    return Data(x=x if integers else x.float(), edge_index=edge_index, edge_attr=edge_attr, y=y, num_nodes=n)


def complete(n: int) -> torch.Tensor:
    """Edges of the complete graph of n vertices."""
    return torch.tensor([(u, v) for u in range(n) for v in range(n) if u != v]).t()
