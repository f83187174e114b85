"""PathNN+: backends, symmetry, batches, gradients, the parts that can be left out, and random walks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddRandomWalkPE

from nn_graphs import graph
from pathnn import AddPaths, extract_paths
from pathnn.nn import AllLengths, DeepPathNN, PathBlock, PathLSTM, PathNN
from pathnn.nn.model_file import load_pretrained
from pathnn.nn.presets import PLUS, plus_config
from pathnn.paths.prefixes import join_lengths, prefixes_of
from pathnn.paths.random_walks import random_walk_pe

EDGE_INDEX, N = graph()
E = EDGE_INDEX.size(1)


def small(**options: Any) -> DeepPathNN:
    torch.manual_seed(0)
    common: dict[str, Any] = {"collection": "ap", "k": 3, "num_layers": 2, "edge_channels": (4,), "walk_length": 6}
    return DeepPathNN((5,), 8, 2, **{**common, **options})


def inputs(seed: int = 0) -> dict[str, Any]:
    """Equal features for both directions of an edge."""
    generator = torch.Generator().manual_seed(seed)
    bonds = torch.randint(4, (E // 2,), generator=generator)
    x = torch.randint(5, (N,), generator=generator)
    return {"x": x, "edge_index": EDGE_INDEX, "edge_attr": torch.cat([bonds, bonds])}


@pytest.mark.parametrize("backend", ["torch", "cpu"])
def test_a_block_computes_the_same_with_every_backend(backend):
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=3)
    torch.manual_seed(0)
    h, edges = torch.rand(N, 8), torch.rand(E, 3)
    blocks = []
    for name in ("dense", backend):
        torch.manual_seed(1)
        blocks.append(PathBlock(8, paths=AllLengths(PathLSTM(8, distances=4, edge_channels=3, backend=name), 3)))
    dense, other = (block(h, trie, edges=edges) for block in blocks)
    torch.testing.assert_close(other, dense, rtol=1e-4, atol=1e-5)
    dense.square().sum().backward()
    other.square().sum().backward()
    for one, two in zip(*(block.parameters() for block in blocks), strict=True):
        torch.testing.assert_close(two.grad, one.grad, rtol=1e-3, atol=1e-4)


def test_a_block_sums_over_all_lengths():
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=3)
    layer, h = AllLengths(PathLSTM(8, distances=4), 3), torch.rand(N, 8)
    expected = sum(layer.lstm(h, trie.length(length)) for length in (1, 2, 3))
    torch.testing.assert_close(layer(h, trie), expected)


@pytest.mark.parametrize("backend", ["torch", "cpu"])
@pytest.mark.parametrize("max_entries", [None, 20])
def test_prefixes_give_the_same_with_every_backend(backend, max_entries):
    trie = join_lengths(extract_paths(EDGE_INDEX, N, collection="ap", k=3, distances=False))
    torch.manual_seed(0)
    h, edges, found = torch.rand(N, 8), torch.rand(E, 3), []
    for name in ("dense", backend):
        torch.manual_seed(1)
        lstm = PathLSTM(8, distances=4, edge_channels=3, backend=name, max_entries=max_entries)
        own = h.clone().requires_grad_()
        out = AllLengths(lstm, 3, prefixes=True)(own, trie, edges)
        out.square().sum().backward()
        found.append((out, own.grad, *(p.grad for p in lstm.parameters())))
    for dense, other in zip(*found, strict=True):
        torch.testing.assert_close(other, dense, rtol=1e-4, atol=1e-4)


def test_prefixes_sum_over_all_paths():
    """Every path alone, as `nn.LSTM` reads it; that of length 0 is its vertex."""
    trie = join_lengths(extract_paths(EDGE_INDEX, N, collection="ap", k=2, distances=False))
    torch.manual_seed(0)
    lstm, h = PathLSTM(8, distances=3), torch.rand(N, 8)
    levels, expected = prefixes_of(trie).levels, torch.zeros(N, 8)
    rows = torch.stack([levels[0].vertex, levels[0].distance], dim=1)[:, None].long()
    for t, level in enumerate(levels):
        if t:
            own = torch.stack([level.vertex, level.distance], dim=1)[:, None].long()
            rows = torch.cat([rows[level.parent.long()], own], dim=1)
        for path in rows:
            tokens = torch.cat([h[path[:, 0]], lstm.distance_encoder.weight[path[:, 1]]], dim=1)
            expected[path[-1, 0]] += lstm.dense(tokens[:, None])[0].detach()
    with torch.no_grad():
        torch.testing.assert_close(AllLengths(lstm, 2, prefixes=True)(h, trie), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "options", [{}, {"virtual_node": True, "readout": "mean"}, {"read_paths": False}, {"prefixes": True}]
)
def test_outputs_do_not_depend_on_the_order_of_vertices(options):
    given = inputs()
    model = small(**options).eval()
    order = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    turned = {**given, "x": given["x"][order], "edge_index": order.argsort()[EDGE_INDEX]}
    torch.testing.assert_close(model(**turned), model(**given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"virtual_node": True}, {"message_passing": False}, {"extend": True}, {"prefixes": True}]
)
def test_a_batch_is_its_graphs(options):
    model = small(**options).eval()
    graphs = [Data(**inputs(seed)) for seed in range(3)]
    distances = False if "prefixes" in options else None
    transform = AddPaths("ap", 3, extend="extend" in options, distances=distances)
    batch = Batch.from_data_list([AddRandomWalkPE(6)(transform(g)) for g in graphs])
    alone = torch.cat([model(data) for data in graphs])
    torch.testing.assert_close(model(batch), alone, rtol=1e-4, atol=1e-5)


def test_gradients():
    model = small(k=2, walk_length=3, activation="gelu", num_layers=1).double().eval()
    given = inputs()
    x = torch.rand(N, 5, dtype=torch.float64, requires_grad=True)
    model.encoder = nn.Linear(5, 8).double()
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=2)
    rest = {"edge_index": EDGE_INDEX, "edge_attr": given["edge_attr"], "trie": trie}
    assert torch.autograd.gradcheck(lambda x: model(x, **rest), (x,))


@pytest.mark.parametrize("name", PLUS)
def test_presets_have_at_most_500_000_parameters(name):
    model = DeepPathNN.from_config(plus_config(name))
    assert 450_000 < sum(p.numel() for p in model.parameters()) <= 500_000


def test_random_walks_are_those_of_pyg():
    directed = torch.tensor([[0, 0, 1, 2, 3, 3], [1, 2, 2, 0, 3, 0]])  # a loop, and one-way edges
    for edge_index, nodes in ((EDGE_INDEX, N), (directed, 5)):
        expected = AddRandomWalkPE(7)(Data(edge_index=edge_index, num_nodes=nodes)).random_walk_pe
        torch.testing.assert_close(random_walk_pe(edge_index, nodes, 7), expected)


def test_given_random_walks_are_read():
    model, given = small().eval(), inputs()
    walks = random_walk_pe(EDGE_INDEX, N, 8)  # more steps than are read
    torch.testing.assert_close(model(**given, random_walk_pe=walks), model(**given))
    assert not torch.allclose(model(**given, random_walk_pe=torch.zeros(N, 6)), model(**given))
    for wrong in (walks[1:], walks[:, :5]):
        with pytest.raises(ValueError, match="random_walk_pe"):
            model(**given, random_walk_pe=wrong)
    with pytest.raises(TypeError, match="random_walk_pe"):
        PathNN((5,), 8, 2, collection="ap", k=3)(given["x"], EDGE_INDEX, random_walk_pe=walks)


@pytest.mark.parametrize("options", [{"read_paths": False, "message_passing": False}, {"walk_length": -1}, {"k": 0},
                {"prefixes": True, "collection": "sp"}, {"prefixes": True, "distances": True},
                {"prefixes": True, "max_paths_per_source": 3}])  # fmt: skip
def test_bad_options(options):
    with pytest.raises(ValueError, match="="):
        small(**options)


def test_missing_edges_and_single_parts():
    given = inputs()
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=3)
    with pytest.raises(ValueError, match="edge_index is missing"):
        small()(given["x"], trie=trie, edge_attr=given["edge_attr"])
    model = small(message_passing=False, feed_forward=False, walk_length=0).eval()
    torch.testing.assert_close(model(given["x"], trie=trie, edge_attr=given["edge_attr"]), model(**given))


def test_a_saved_model_is_loaded(tmp_path):
    model, given = small(virtual_node=True).eval(), inputs()
    model.save_pretrained(tmp_path)
    loaded = load_pretrained(tmp_path)
    assert isinstance(loaded, DeepPathNN)
    assert torch.equal(loaded(**given), model(**given))
    assert torch.equal(DeepPathNN.from_pretrained(tmp_path)(**given), model(**given))
    with pytest.raises(ValueError, match="is a DeepPathNN, not a PathNN"):
        PathNN.from_pretrained(tmp_path)
