from __future__ import annotations

import copy
import json
from typing import get_args

import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv

from nn_graphs import graph
from pathnn.nn import Baseline, BaselineConfig
from pathnn.nn.baselines import READS_EDGES, BaselineName
from pathnn.testing import assert_permutation_invariant

NAMES = get_args(BaselineName)
EDGE_INDEX, N = graph()
BATCH = torch.tensor([0] * 9 + [1] * 3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edge_channels", [None, 5, (3, 2)])
def test_called_like_a_path_nn(name, edge_channels):
    model = Baseline(name, 4, 8, 2, num_layers=3, edge_channels=edge_channels, readout="mean")
    shape = (EDGE_INDEX.size(1), 5 if edge_channels == 5 else 2)
    edge_attr = torch.randn(shape) if edge_channels == 5 else torch.randint(0, 2, shape)
    edge_attr = None if edge_channels is None else edge_attr
    out = model(torch.randn(N, 4), EDGE_INDEX, trie=None, batch=BATCH, edge_attr=edge_attr, batch_size=2)
    assert out.shape == (2, 2)
    out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    assert_permutation_invariant(model, torch.randn(N, 4), EDGE_INDEX, edge_attr=edge_attr, batch=BATCH)


@pytest.mark.parametrize("name", NAMES)
def test_reads_structure_and_edges_or_not(name):
    torch.manual_seed(0)
    model = Baseline(name, 4, 8, 2, edge_channels=(3,)).eval()
    x, edge_attr = torch.randn(N, 4), torch.zeros(EDGE_INDEX.size(1), dtype=torch.long)
    out = model(x, EDGE_INDEX, edge_attr=edge_attr)
    fewer = model(x, EDGE_INDEX[:, 2:], edge_attr=edge_attr[2:])
    assert torch.equal(out, fewer) == (name == "mlp")
    other = model(x, EDGE_INDEX, edge_attr=edge_attr + 1)
    assert torch.equal(out, other) == (name not in READS_EDGES)


@pytest.mark.parametrize("edge_channels", [None, 5])
@pytest.mark.parametrize(("name", "layer"), [("gcn", GCNConv), ("gat", GATConv)])
def test_self_loops_are_those_of_pyg(name, layer, edge_channels):
    torch.manual_seed(0)
    edge_index = torch.randint(0, 9, (2, 40))  # some vertices have several loops, some none
    assert bool((edge_index[0] == edge_index[1]).any())
    x, edge_attr = torch.randn(11, 4), None if edge_channels is None else torch.randn(40, edge_channels)
    model = Baseline(name, 4, 8, None, num_layers=2, edge_channels=edge_channels, head=None, readout=None)
    theirs = copy.deepcopy(model)
    theirs.loops = None
    for i, conv in enumerate(model.convs):
        options = {"edge_dim": edge_channels} if name == "gat" else {}
        theirs.convs[i] = layer(8, 8, **options)
        theirs.convs[i].load_state_dict(conv.state_dict())
    torch.testing.assert_close(model(x, edge_index, edge_attr=edge_attr), theirs(x, edge_index, edge_attr=edge_attr))


def test_config_and_errors():
    model = Baseline("gin", (28,), 8, 1, edge_channels=(4,), readout=None)
    twin = Baseline.from_config(json.loads(json.dumps(model.config.to_dict())))
    twin.load_state_dict(model.state_dict())
    assert twin.config == model.config
    with pytest.raises(ValueError, match="edge_attr is missing"):
        model(torch.zeros(N, 1, dtype=torch.long), EDGE_INDEX)
    with pytest.raises(ValueError, match="edge_index is missing"):
        model(torch.zeros(N, 1, dtype=torch.long))
    with pytest.raises(ValueError, match="name='transformer' is unknown"):
        Baseline("transformer", 4, 8, 1)
    with pytest.raises(ValueError, match=r"unknown options \['depth'\]"):
        BaselineConfig.from_dict({"depth": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "layer"}, "norm='layer'"),
        ({"edge_channels": -1}, "edge_channels=-1"),
        ({"in_channels": ()}, r"in_channels=\(\)"),
        ({"num_layers": 0}, "num_layers=0"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Baseline(**{"name": "gin", "in_channels": 3, "hidden_channels": 8, "out_channels": 1, **options})


def test_categories_need_an_encoder_of_categories() -> None:
    with pytest.raises(ValueError, match="one-hot"):
        Baseline("gin", (28,), 8, 1, encoder="one-hot")
    with pytest.raises(ValueError, match=r"'hidden_channels', 'in_channels', 'out_channels'\] are missing"):
        Baseline.from_config({"name": "gin"})


def test_options_change_what_is_computed():
    x = torch.randn(N, 4)

    def layers(**options):
        torch.manual_seed(0)
        model = Baseline("gcn", 4, 8, None, head=None, readout=None, num_layers=1, **options)
        return model, model(x, EDGE_INDEX)

    model, plain = layers(norm=None)
    h = model.encoder(x)
    message = model.convs[0](h, model.loops(EDGE_INDEX, None, N)[0]).relu()
    torch.testing.assert_close(plain, h + message)
    torch.testing.assert_close(layers(norm=None, residual=False)[1], message)
    assert not any(isinstance(part, torch.nn.BatchNorm1d) for part in model.norms)
    dropped = layers(norm=None, residual=False, dropout=0.9)[1]
    assert (dropped == 0).float().mean() > (message == 0).float().mean() + 0.2
