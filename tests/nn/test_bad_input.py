"""What models refuse, and in which words; and what must not be refused."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, Compose

from nn_graphs import graph
from pathnn.nn import Baseline, PathConv, PathLSTM, PathNN, PathNNConfig, Readout
from pathnn.paths import PathTrie, extract_paths
from pathnn.transforms import AddPaths

EDGE_INDEX, N = graph()
BATCH = torch.tensor([0] * 9 + [1] * 3)
X = torch.ones(N, 4)
MODEL = PathNN(4, 8, 1, collection="ap", k=2).eval()
READS_EDGES = PathNN(4, 8, 1, collection="ap", k=2, edge_channels=2).eval()
GOOD = {"in_channels": 4, "hidden_channels": 8, "out_channels": 1, "collection": "sp", "k": 2}


def trie_of(edge_index: torch.Tensor, **options: object) -> PathTrie:
    return extract_paths(edge_index, N, **{"collection": "ap", "k": 2, **options})


def test_a_trie_of_other_edges():
    trie = trie_of(EDGE_INDEX)
    edges = EDGE_INDEX.size(1)
    for other in (EDGE_INDEX[:, :-2], torch.cat([EDGE_INDEX, EDGE_INDEX[:, :1]], dim=1)):
        for call in (MODEL, MODEL.embed, MODEL.path_representations):
            with pytest.raises(
                ValueError, match=f"the graph has {other.size(1)} edges, .*from {edges}: .*AddPaths is the last"
            ):
                call(X, other, trie=trie)


def test_edges_in_another_order():
    """They would get each other's features, where a model reads some."""
    order = torch.randperm(EDGE_INDEX.size(1), generator=torch.Generator().manual_seed(0))
    mixed = EDGE_INDEX[:, order]
    assert not torch.equal(mixed, EDGE_INDEX)
    with pytest.raises(ValueError, match=r"edges were sorted or changed since.*AddPaths is the last"):
        READS_EDGES(X, mixed, trie=trie_of(EDGE_INDEX), edge_attr=torch.rand(mixed.size(1), 2))
    READS_EDGES(X, mixed, trie=trie_of(mixed), edge_attr=torch.rand(mixed.size(1), 2))
    MODEL(X, mixed, trie=trie_of(EDGE_INDEX))


@pytest.mark.parametrize("extend", [False, True])
@pytest.mark.parametrize("more", ["nothing", "loops", "repeated"])
def test_a_trie_of_these_edges(more, extend):
    loops = torch.arange(N).repeat(2, 1)
    edge_index = torch.cat(
        {"nothing": [EDGE_INDEX], "loops": [EDGE_INDEX, loops], "repeated": [EDGE_INDEX] * 2}[more], dim=1
    )
    model = PathNN(4, 8, 1, collection="ap", k=2, extend=extend).eval()
    trie = trie_of(edge_index, extend=extend)
    assert torch.equal(model(X, edge_index, trie=trie), model(X, trie=trie))


def test_paths_are_added_after_other_transforms():
    data = Data(x=X, edge_index=EDGE_INDEX)
    right, wrong = Compose([AddSelfLoops(), AddPaths("ap", 2)]), Compose([AddPaths("ap", 2), AddSelfLoops()])
    (batch,) = DataLoader([right(data), right(data)], batch_size=2)
    out = MODEL(batch.x, batch.edge_index, trie=PathTrie.from_data(batch), batch=batch.batch)
    assert torch.equal(out, MODEL(batch.x, batch.edge_index, batch=batch.batch))
    (batch,) = DataLoader([wrong(data), wrong(data)], batch_size=2)
    with pytest.raises(ValueError, match="AddPaths is the last transform"):
        MODEL(batch.x, batch.edge_index, trie=PathTrie.from_data(batch), batch=batch.batch)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("model", [MODEL, Baseline("gin", 4, 8, 1)])
def test_features_of_another_type(model, dtype):
    with pytest.raises(ValueError, match=rf"expected torch.float32, .*got {dtype}. .*x\.to\(torch.float32\)"):
        model(X.to(dtype), EDGE_INDEX)
    with pytest.raises(ValueError, match=rf"expected torch.float64, .*model\.to\({torch.float32}\)"):
        PathNN(4, 8, 1, collection="ap", k=2).double()(X, EDGE_INDEX)


def test_autocast_takes_either_type():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(MODEL(X.bfloat16(), EDGE_INDEX), MODEL(X, EDGE_INDEX))


@pytest.mark.parametrize(("x", "came"), [(None, "None"), ([[1.0]], "a list"), (Data(x=X), "a Data without edge_index")])
def test_features_that_are_no_tensor(x, came):
    for model in (MODEL, Baseline("gin", 4, 8, 1)):
        with pytest.raises(ValueError, match=rf"x is {came}: expected a tensor .*torch\.ones\(num_nodes, 1\)"):
            model(x, EDGE_INDEX)


def test_a_trie_that_is_none():
    for trie, came in ((5, "int"), (trie_of(EDGE_INDEX).length(1), "LengthTrie")):
        with pytest.raises(ValueError, match=rf"trie is a {came}: expected a PathTrie .*extract_paths\(\.\.\.\)"):
            MODEL(X, trie=trie)


def test_a_layer_reads_one_length():
    lstm, h = PathLSTM(4), torch.ones(N, 4)
    for trie, came in ((trie_of(EDGE_INDEX), "PathTrie"), (5, "int")):
        for call in (lstm, lstm.path_representations, lambda h, trie: PathConv(4)(h, lstm, trie)):
            with pytest.raises(ValueError, match=rf"trie is a {came}: .* one length, .*pass trie\.length\(k\)"):
                call(h, trie)


def test_fewer_graphs_than_the_batch_has():
    for call in (MODEL, Baseline("gin", 4, 8, 1)):
        with pytest.raises(ValueError, match=r"batch_size=1, but batch names graph 1: .*at least 2\."):
            call(X, EDGE_INDEX, batch=BATCH, batch_size=1)
    assert MODEL(X, EDGE_INDEX, batch=BATCH, batch_size=3).shape == (3, 1)  # graphs without vertices may follow
    assert Readout()(torch.ones(0, 4), BATCH[:0], batch_size=0).shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 256}, "k=256 is too large: expected at most 255"),
        ({"out_channels": 0}, "out_channels=0: expected an integer of at least 1"),
        ({"out_channels": -1}, "out_channels=-1: expected an integer of at least 1"),
        ({"max_entries": 0}, "max_entries=0: expected an integer of at least 1"),
        ({"max_entries": 1.5}, r"max_entries=1\.5: expected an integer of at least 1"),
        ({"readout": "max"}, "readout='max' is unknown: expected one of 'sum', 'mean', None"),
        ({"head": "deep"}, "head='deep' is unknown: expected one of 'mlp', 'linear', None"),
        ({"head": "deep", "out_channels": None}, "head='deep' is unknown"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        PathNN(**{**GOOD, **options})


def test_the_same_limits_elsewhere():
    with pytest.raises(ValueError, match="k=256 is too large"):
        PathNNConfig(**{**GOOD, "k": 256})
    with pytest.raises(ValueError, match="max_entries=-1"):
        PathLSTM(4, max_entries=-1)
    with pytest.raises(ValueError, match="'sum', 'mean', None"):
        Baseline("gin", 4, 8, 1, readout="max")
    assert len(PathNN(**{**GOOD, "k": 255, "hidden_channels": 1}).convs) == 255
