"""Small random PyG data."""

from __future__ import annotations

import torch
from torch_geometric.data import Data


def graphs(number: int, *, descriptors: bool = False) -> list[Data]:
    """Random graphs of 2 to 7 vertices, with edge features."""
    torch.manual_seed(0)
    found = []
    for size in torch.randint(2, 8, (number,)).tolist():
        pairs = torch.triu(torch.rand(size, size) < 0.5, 1)
        pairs[0, 1] = True
        one_way = pairs.nonzero().t()
        edge_index, kinds = torch.cat([one_way, one_way.flip(0)], dim=1), torch.randint(0, 3, (one_way.size(1), 1))
        data = Data(torch.rand(size, 4), edge_index, torch.cat([kinds, kinds]), y=torch.rand(1, 1))
        if descriptors:
            data.graph_attr = torch.rand(1, 3)
        found.append(data)
    return found
