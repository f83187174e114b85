"""Features of graphs: standardised as the obvious loop does it, joined at the head, and absent by default."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from pathnn.data import PackedGraphs
from pathnn.nn import Baseline, PathNN
from pathnn.nn.cuda_graphs.padded_modules import can_be_padded
from pathnn.nn.readout import CLIP, GraphScale

RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


def slow_scale(train: list[float], value: float) -> float:
    """Standardise one value with the known values of a column."""
    known = [one for one in train if math.isfinite(one)]
    if not known or not math.isfinite(value):
        return 0.0
    mean = sum(known) / len(known)
    std = math.sqrt(sum((one - mean) ** 2 for one in known) / len(known))
    return max(-CLIP, min(CLIP, (value - mean) / std)) if std > 0 else 0.0


def test_the_scale_is_that_of_the_obvious_loop():
    train = torch.randn(20, 5) * torch.tensor([1.0, 1e6, 1e-6, 1.0, 1.0]) + 3.0
    train[2, 0], train[3, 1], train[:, 3], train[:, 4] = math.nan, math.inf, 7.0, math.nan
    new = torch.cat([train, torch.full((1, 5), 1e12), torch.full((1, 5), math.nan), torch.full((1, 5), -math.inf)])
    scale = GraphScale(5).double()
    scale.fit(train)
    expected = [
        [slow_scale(train[:, j].double().tolist(), value) for j, value in enumerate(row)]
        for row in new.double().tolist()
    ]
    assert torch.allclose(scale(new), torch.tensor(expected, dtype=torch.float64), atol=1e-6)
    assert scale(new).abs().max() == CLIP


def test_before_fit_values_are_kept():
    assert GraphScale(2)(torch.tensor([[1e9, math.nan]])).tolist() == [[1e9, 0.0]]


def models(graph_channels: int) -> list[PathNN | Baseline]:
    torch.manual_seed(0)
    return [
        PathNN(3, 8, 2, collection="ap", k=2, graph_channels=graph_channels),
        PathNN(3, 8, 2, collection="ap", k=2, head="linear", graph_channels=graph_channels),
        Baseline("gin", 3, 8, 2, graph_channels=graph_channels),
    ]


def test_the_head_reads_the_graph_and_its_features():
    x, batch, graph_attr = torch.rand(4, 3), torch.zeros(4, dtype=torch.long), torch.rand(1, 5)
    for model in models(5):
        model.eval().graph_scale.fit(torch.rand(10, 5))
        out = model(x, RING, batch=batch, graph_attr=graph_attr)
        joined = torch.cat([model.embed(x, RING, batch=batch), model.graph_scale(graph_attr)], dim=1)
        assert torch.equal(out, model.head(joined))
        assert not torch.allclose(out, model(x, RING, batch=batch, graph_attr=graph_attr + 1))
        again = type(model).from_config(model.config.to_dict())
        again.load_state_dict(model.state_dict())  # the scale is part of the model
        assert torch.equal(again.eval()(x, RING, graph_attr=graph_attr), out)


def test_without_features_nothing_changes():
    for plain, default in zip(models(0), [PathNN(3, 8, 2, collection="ap", k=2)], strict=False):
        assert plain.graph_scale is None
        assert [(n, p.shape) for n, p in plain.state_dict().items()] == [
            (n, p.shape) for n, p in default.state_dict().items()
        ]
    torch.manual_seed(0)
    expected = PathNN(3, 8, 2, collection="ap", k=2).state_dict()
    found = models(5)[0].state_dict()
    same = [name for name in expected if not name.startswith("head")]
    assert all(torch.equal(expected[name], found[name]) for name in same)  # the head is drawn last


def test_wrong_features_are_refused():
    x, model = torch.rand(4, 3), PathNN(3, 8, 2, collection="ap", k=2, graph_channels=5)
    with pytest.raises(ValueError, match="graph_attr is missing"):
        model(x, RING)
    with pytest.raises(ValueError, match=r"expected 5 numbers per graph.*\(1, 4\)"):
        model(x, RING, graph_attr=torch.rand(1, 4))
    with pytest.raises(ValueError, match="2 rows, but there are 1 graphs"):
        model(x, RING, graph_attr=torch.rand(2, 5))
    with pytest.raises(ValueError, match="reads no features of graphs"):
        PathNN(3, 8, 2, collection="ap", k=2)(x, RING, graph_attr=torch.rand(1, 5))
    for wrong in ({"readout": None}, {"head": None, "out_channels": None}):
        with pytest.raises(ValueError, match="expected a model with a readout and a head"):
            PathNN(**{"in_channels": 3, "hidden_channels": 8, "out_channels": 2, "collection": "ap", "k": 2,
                      "graph_channels": 5, **wrong})  # fmt: skip
    with pytest.raises(ValueError, match="graph_channels=-1"):
        PathNN(3, 8, 2, collection="ap", k=2, graph_channels=-1)


def test_cuda_graphs_are_for_models_with_features_too_but_not_for_custom_scales():
    graphs = replace(PackedGraphs.from_edges([RING], [4]), x=torch.rand(4, 3))
    for channels in (0, 5):
        model, *_ = models(channels)
        assert can_be_padded(model, graphs)
        model.graph_scale = torch.nn.BatchNorm1d(5)
        assert not can_be_padded(model, graphs)
