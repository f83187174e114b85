"""The GCN layer of fixed shapes is PyG's layer."""

from __future__ import annotations

import copy

import torch
from torch_geometric.nn import GCNConv

from pathnn.nn.fixed_gcn import FixedGCN
from pathnn.nn.neighbours import SharedNeighbours


def test_it_is_pygs_layer_with_and_without_loops() -> None:
    torch.manual_seed(0)
    conv = GCNConv(3, 5)
    twin = copy.deepcopy(conv)
    edge_index = torch.randint(0, 9, (2, 40))  # some vertices have several loops, some none
    assert bool((edge_index[0] == edge_index[1]).any())
    x = torch.randn(11, 3)  # the last two have no edges
    out, truth = FixedGCN(twin)(x, edge_index), conv(x, edge_index)
    torch.testing.assert_close(out, truth)
    out.square().sum().backward()
    truth.square().sum().backward()
    for ours, theirs in zip(twin.parameters(), conv.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_layers_share_the_edges_of_a_batch_and_not_of_the_next() -> None:
    shared = SharedNeighbours()
    first, second = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[1, 2], [2, 1]])
    found = shared(first, 3)
    assert shared(first, 3) is found
    torch.testing.assert_close(shared(second, 3).short_scale, torch.tensor([1.0, 0.5, 0.5]).sqrt())
    assert shared(first.view(2, -1), 3) is not found
