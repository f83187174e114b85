from __future__ import annotations

import pytest
import torch
from torch import nn

from pathnn.nn import CategoricalEncoder, EdgeTypes, MLPEncoder, OneHotEncoder, Readout


def test_mlp_layers_with_and_without_norm():
    kinds = [type(layer).__name__ for layer in MLPEncoder(3, 8)]
    assert kinds == ["Linear", "BatchNorm1d", "ReLU"] * 2
    assert [type(layer).__name__ for layer in MLPEncoder(3, 8, norm=False)] == ["Linear", "ReLU"] * 2


def test_categorical_is_a_sum_of_embeddings():
    encoder = CategoricalEncoder([5, 3], 8)
    x = torch.tensor([[4, 0], [1, 2]])
    first, second = (embedding.weight for embedding in encoder.embeddings)
    assert torch.equal(encoder(x), first[x[:, 0]] + second[x[:, 1]])
    bound = (6 / (5 + 8)) ** 0.5
    assert first.abs().max() <= bound
    assert first.abs().max() > 0.5 * bound


@pytest.mark.parametrize("sizes", [(4,), (5, 6, 2), (22, 6, 2)])
def test_edge_types_are_the_same_features(sizes):
    encoder = CategoricalEncoder(sizes, 8)
    x = torch.stack([torch.randint(0, size, (20,)) for size in sizes], dim=1)
    edges = encoder.edge_types(x)
    assert isinstance(edges, EdgeTypes)
    assert torch.allclose(edges.expand(), encoder(x))
    if len(sizes) > 1:
        assert edges.components is not None
        assert edges.masks is not None
        read = (edges.masks[:, None] >> torch.arange(sum(sizes))) & 1
        assert torch.allclose(read.float() @ edges.components, edges.table, atol=1e-6)
    else:
        assert edges.components is edges.masks is None
    assert CategoricalEncoder([20, 12], 8).edge_types(torch.zeros(3, 2, dtype=torch.long)).components is None
    assert isinstance(CategoricalEncoder([600], 8).edge_types(torch.zeros(3, dtype=torch.long)), torch.Tensor)


def test_one_hot_is_a_linear_layer_s_column():
    encoder = OneHotEncoder(4, 8, norm=False)
    first = encoder.mlp[0]
    assert isinstance(first, nn.Linear)
    hidden = (first.weight[:, 2] + first.bias).relu()
    assert torch.allclose(encoder(torch.tensor([[2]]))[0], encoder.mlp[2](hidden).relu(), atol=1e-6)
    with pytest.raises(ValueError, match="from 0 to 3, got 4 to 4"):
        encoder(torch.tensor([4]))


def test_wrong_shapes_of_categories():
    with pytest.raises(ValueError, match=r"\[n, 2\], got \(3, 1\)"):
        CategoricalEncoder([5, 3], 8)(torch.zeros(3, 1, dtype=torch.long))


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_readout_of_graphs_without_vertices(kind):
    h = torch.tensor([[1.0], [3.0]])
    batch = torch.tensor([0, 2])
    out = Readout(kind)(h, batch, batch_size=4)
    assert out.tolist() == [[1.0], [0.0], [3.0], [0.0]]
    assert Readout(kind)(h).tolist() == [[4.0 if kind == "sum" else 2.0]]
