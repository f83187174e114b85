"""PathNN as PyG users call it: `model(data)`, layers in `Sequential` and `GPSConv`, and `summary`."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GPSConv, Sequential, global_add_pool, summary

from nn_graphs import graph
from pathnn import AddPaths, PathLayer, PathNN, extract_paths
from pathnn.nn import Baseline, PathConv

EDGE_INDEX, N = graph()
E = EDGE_INDEX.size(1)


def one(seed: int = 0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    x, edge_attr = (torch.rand(rows, 3, generator=generator) for rows in (N, E))
    return Data(x=x, edge_index=EDGE_INDEX, edge_attr=edge_attr, graph_attr=torch.ones(1, 2), y=torch.ones(1))


MODELS = {
    "plain": lambda: PathNN(3, 8, 2, collection="ap", k=2),
    "edges": lambda: PathNN(3, 8, 2, collection="ap", k=2, edge_channels=3, graph_channels=2),
    "vertices": lambda: PathNN(3, 8, 2, collection="sp", k=2, readout=None),
    "baseline": lambda: Baseline("gin", 3, 8, 2, edge_channels=3, graph_channels=2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("added", [False, True])
def test_a_model_reads_data(name, added):
    model = MODELS[name]().eval()
    options = {} if name == "baseline" else {"collection": model.config.collection, "k": 2}
    transform = AddPaths(**options) if added and options else lambda data: data
    reads = {"edges": ("edge_attr", "graph_attr"), "baseline": ("edge_attr", "graph_attr")}.get(name, ())
    data = one()
    expected = model(data.x, data.edge_index, **{key: data[key] for key in reads})
    assert torch.equal(model(transform(data)), expected)
    for batch in DataLoader([transform(one(seed)) for seed in range(5)], batch_size=3):
        explicit = model(batch.x, batch.edge_index, batch=batch.batch, **{key: batch[key] for key in reads})
        assert torch.equal(model(batch), explicit)


def test_the_last_graphs_of_a_batch_may_have_no_vertices():
    first = Data(x=torch.ones(N, 3), edge_index=EDGE_INDEX)
    empty = Data(x=torch.ones(0, 3), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert MODELS["plain"]().eval()(Batch.from_data_list([first, empty])).shape == (2, 2)


def test_data_without_features_is_refused():
    with pytest.raises(ValueError, match="x is None"):
        MODELS["plain"]()(Data(edge_index=EDGE_INDEX, num_nodes=N))
    with pytest.raises(ValueError, match="edge_attr is missing"):
        MODELS["edges"]()(Data(x=torch.ones(N, 3), edge_index=EDGE_INDEX))


@pytest.mark.parametrize("cell", ["lstm", "mingru"])
def test_a_path_layer_is_the_layers_of_a_path_nn(cell):
    torch.manual_seed(0)
    layer, h, edge_attr = PathLayer(8, "ap", 2, edge_channels=3, cell=cell), torch.rand(N, 8), torch.rand(E, 3)
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=2)
    expected, network = h, layer.network
    for length in (1, 2):
        conv = network.convs[length - 1]
        assert isinstance(conv, PathConv)
        expected = conv(expected, network.lstm, trie.length(length), edge_attr)
    assert torch.equal(layer(h, EDGE_INDEX, edge_attr), expected)
    assert torch.equal(layer(h, None, edge_attr, trie=trie), expected)
    assert not any(name.startswith(("network.encoder", "network.head")) for name, _ in layer.named_parameters())
    before = network.convs[0].norm.weight.clone(), next(network.lstm.parameters()).clone()
    layer.reset_parameters()
    assert torch.equal(before[0], network.convs[0].norm.weight)
    assert not torch.equal(before[1], next(network.lstm.parameters()))


def test_a_path_layer_in_gps():
    torch.manual_seed(0)
    layers = [PathLayer(8, "ap", 2, edge_channels=3, aggregation="mean") for _ in range(2)]
    blocks = nn.ModuleList(GPSConv(8, layer, heads=2) for layer in layers)
    batch = next(iter(DataLoader([one(seed) for seed in range(3)], batch_size=3)))
    h = nn.Linear(3, 8)(batch.x)
    for block in blocks:
        h = block(h, batch.edge_index, batch.batch, edge_attr=batch.edge_attr)
    assert h.shape == (3 * N, 8)
    h.sum().backward()
    assert all(p.grad is not None for p in layers[0].parameters())
    trie = extract_paths(batch.edge_index, 3 * N, collection="ap", k=2)
    blocks.eval()
    h = torch.rand(3 * N, 8)
    extracted, given = (
        blocks[0](h, batch.edge_index, batch.batch, edge_attr=batch.edge_attr, **paths)
        for paths in ({}, {"trie": trie})
    )
    assert torch.equal(extracted, given)
    blocks[0].reset_parameters()


def test_a_path_layer_in_sequential():
    model = Sequential(
        "x, edge_index, batch",
        [
            (nn.Linear(3, 8), "x -> x"),
            (PathLayer(8, "sp", 2), "x, edge_index -> x"),
            (global_add_pool, "x, batch -> x"),
            nn.Linear(8, 1),
        ],
    )
    batch = Batch.from_data_list([one(0), one(1)])
    assert model(batch.x, batch.edge_index, batch.batch).shape == (2, 1)


@pytest.mark.parametrize("whole", [False, True])
def test_summary(whole, monkeypatch):
    """PyG formats the table with tabulate, which it does not install: the test reads what goes into the table."""
    monkeypatch.setattr(sys.modules["torch_geometric.nn.summary"], "make_table", lambda rows, max_depth: rows)
    model, data = MODELS["edges"](), one()
    rows = (
        summary(model, data)
        if whole
        else summary(model, data.x, data.edge_index, edge_attr=data.edge_attr, graph_attr=data.graph_attr)
    )
    table = {row["name"].split("─")[-1]: row for row in rows}
    parameters = sum(p.numel() for p in model.parameters())
    assert table["PathNN"]["#param"] == f"{parameters:,}"
    assert table["PathNN"]["output_shape"] == "[1, 2]"
    assert table["(encoder)MLPEncoder"]["input_shape"] == f"[{N}, 3]"
    assert table["(lstm)PathLSTM"]["output_shape"] == f"[{N}, 8]"
    assert table["(head)MLPHead"]["output_shape"] == "[1, 2]"
