"""`load_released` against an independent rendering of the released models: nn.LSTM over explicit paths."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nn_graphs import graph
from path_reference import reference_paths, to_graph
from pathnn.nn import PathNN
from pathnn.testing import relative_difference

D, K = 6, 3
EDGE_INDEX, N = graph()
BATCH = torch.tensor([0] * 9 + [1] * 3)


class Conv(nn.Module):
    def __init__(self, lstm: nn.LSTM, *, kind: str, aggregation: str) -> None:
        super().__init__()
        self.rnn = lstm
        if kind == "tu" or (kind == "molecules" and aggregation == "sum"):
            self.bn = nn.BatchNorm1d(D)
        if kind == "molecules":
            self.nn = nn.Sequential(
                nn.Linear(D, D), nn.BatchNorm1d(D), nn.ReLU(), nn.Linear(D, D), nn.BatchNorm1d(D), nn.ReLU()
            )


class Listed(nn.Module):
    """OGB's encoders: a list of embeddings, summed."""

    def __init__(self, name: str, sizes: list[int]) -> None:
        super().__init__()
        self.add_module(name, nn.ModuleList(nn.Embedding(size, D) for size in sizes))

    def forward(self, x):
        (tables,) = self.children()
        return sum(table(column) for table, column in zip(tables, x.t(), strict=True))


class Released(nn.Module):
    """The three released models, from their description; paths one by one."""

    def __init__(self, kind, collection, *, aggregation="sum", readout="sum", normalize=False, head=True, ogb=False):
        super().__init__()
        self.kind, self.collection, self.normalize = kind, collection, normalize
        self.aggregation, self.readout = aggregation, readout
        if kind == "tu":
            self.feature_encoder = nn.Sequential(
                nn.Linear(4, D), nn.BatchNorm1d(D), nn.ReLU(), nn.Linear(D, D), nn.BatchNorm1d(D), nn.ReLU()
            )
        elif kind == "synthetic":
            self.feature_encoder = nn.Sequential(nn.Linear(4, D), nn.ReLU(), nn.Linear(D, D), nn.ReLU())
        else:
            self.feature_encoder = Listed("atom_embedding_list", [7, 3]) if ogb else nn.Embedding(7, D)
            self.bond_encoder = Listed("bond_embedding_list", [4, 2]) if ogb else nn.Embedding(4, D)
        parts = 1 + (kind == "molecules") + (collection == "ap")
        self.lstm = nn.LSTM(parts * D, D, batch_first=True)
        if collection == "ap":
            self.distance_encoder = nn.Embedding(K + 1, D)
        self.convs = nn.ModuleList(Conv(self.lstm, kind=kind, aggregation=aggregation) for _ in range(K))
        if head:
            self.linear1, self.linear2 = nn.Linear(D, D), nn.Linear(D, 2)

    def read(self, path, h, edges):
        distance = nx.single_source_shortest_path_length(to_graph(EDGE_INDEX, N), path[0])
        rows = {(u, v): i for i, (u, v) in reversed(list(enumerate(EDGE_INDEX.t().tolist())))}
        sequence, before = [], None
        for vertex in reversed(path):
            parts = [h[vertex]]
            if self.collection == "ap":
                parts.append(self.distance_encoder.weight[distance[vertex]])
            if edges is not None:
                parts.append(torch.zeros(D) if before is None else edges[rows[before, vertex]])
            sequence.append(torch.cat(parts))
            before = vertex
        return self.lstm(torch.stack(sequence).unsqueeze(0))[0][0, -1]

    def forward(self, x, edge_attr=None):
        h = self.feature_encoder(x)
        edges = None if edge_attr is None else self.bond_encoder(edge_attr)
        for paths, conv in zip(
            reference_paths(EDGE_INDEX, N, collection=self.collection, k=K), self.convs, strict=True
        ):
            if self.normalize:
                h = F.normalize(h, dim=-1)
            sums = [torch.zeros(D) for _ in range(N)]
            counts = [0] * N
            for path in paths:
                sums[path[0]] = sums[path[0]] + self.read(path, h, edges)
                counts[path[0]] += 1
            if self.aggregation == "mean":
                sums = [s / max(c, 1) for s, c in zip(sums, counts, strict=True)]
            h = h + torch.stack(sums)
            h = conv.bn(h) if hasattr(conv, "bn") else h
            h = conv.nn(h) if hasattr(conv, "nn") else h.relu()
        groups = [h[:9], h[9:]]
        pooled = torch.stack([g.sum(0) if self.readout == "sum" else g.mean(0) for g in groups])
        return self.linear2(self.linear1(pooled).relu()) if hasattr(self, "linear1") else pooled


def make(kind: str, collection: str, **options: object) -> Released:
    torch.manual_seed(0)
    model = Released(kind, collection, **options).eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_(std=0.3)
            module.running_var.uniform_(0.1, 1.0)
    return model


def inputs(kind: str, ogb: bool, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor | None]:
    torch.manual_seed(seed)
    if kind != "molecules":
        return torch.rand(N, 4), None
    columns = (N, 2) if ogb else (N,)
    bonds = EDGE_INDEX.sum(dim=0) % 2
    return torch.randint(0, 3, columns), torch.stack([bonds, 1 - bonds], dim=1) if ogb else bonds


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("tu", {}),
        ("synthetic", {}),
        ("synthetic", {"normalize": True, "head": False}),
        ("molecules", {"readout": "mean"}),
        ("molecules", {"aggregation": "mean", "ogb": True}),
    ],
)
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_loaded_model_gives_the_released_outputs(kind, options, collection, tmp_path):
    theirs = make(kind, collection, **options)
    state = theirs.state_dict()
    assert "convs.2.rnn.weight_ih_l0" in state
    said = {key: value for key, value in options.items() if key not in ("head", "ogb")}
    file = tmp_path / "model.pt"
    torch.save({"epoch": 7, "state_dict": state}, file)
    x, edge_attr = inputs(kind, "ogb" in options)
    with torch.no_grad():
        expected = theirs(x, edge_attr)
        other = theirs(inputs(kind, "ogb" in options, seed=2)[0], edge_attr)
        assert (other - expected).abs().amax(dim=1).min() > 1e-3, "the output of each graph depends on the input"
        for source in (state, file, str(file)):
            ours = PathNN.load_released(source, collection=collection, **said)
            assert not ours.training
            out = ours(x, EDGE_INDEX, batch=BATCH, edge_attr=edge_attr)
            assert relative_difference(out, expected) < 1e-5
    assert ours.config.k == K


@pytest.mark.parametrize("option", [{"aggregation": "mean"}, {"readout": "mean"}, {"normalize": True}])
def test_what_a_state_dict_does_not_say_is_taken_from_the_options(option):
    theirs = make("synthetic", "ap", **option)
    x, _ = inputs("synthetic", False)
    with torch.no_grad():
        expected = theirs(x)
        said = PathNN.load_released(theirs.state_dict(), collection="ap", **option)
        unsaid = PathNN.load_released(theirs.state_dict(), collection="ap")
        assert relative_difference(said(x, EDGE_INDEX, batch=BATCH), expected) < 1e-5
        assert relative_difference(unsaid(x, EDGE_INDEX, batch=BATCH), expected) > 1e-2


class Harmful:
    def __reduce__(self):
        return (open, ("executed.txt", "w"))


def test_what_is_no_released_model_is_refused(tmp_path, monkeypatch):
    state = make("tu", "ap").state_dict()
    monkeypatch.chdir(tmp_path)
    torch.save({"state_dict": Harmful()}, "harmful.pt")
    (tmp_path / "noise.pt").write_bytes(b"not a model")
    for source, message in (
        ("harmful.pt", "load this file safely"),
        ("noise.pt", "load this file safely"),
        ({"epoch": 3}, "expected a state_dict"),
        ({}, "'lstm.weight_ih_l0' is missing"),
        ({**state, "convs.0.rnn.bias_ih_l0": torch.zeros(4 * D)}, "share one LSTM"),
        ({**state, "convs.9.bn.weight": torch.zeros(D)}, r"expected i = 0, 1, ..., got \[0, 1, 2, 9\]"),
        ({**state, "distance_encoder.weight": torch.zeros(9, D)}, "size mismatch for lstm.distance_encoder.weight"),
        ({**state, "extra.weight": torch.zeros(1)}, "'extra.weight' is in none"),
        ({**state, "linear1.weight": torch.zeros(2, 2)}, "size mismatch for head.linear1.weight"),
        ({k: v for k, v in state.items() if k != "linear1.bias"}, "Missing key.*head.linear1.bias"),
    ):
        with pytest.raises(ValueError, match=message):
            PathNN.load_released(source, collection="ap")
    assert not (tmp_path / "executed.txt").exists()
    with pytest.raises(FileNotFoundError):
        PathNN.load_released("nowhere.pt", collection="ap")
    with pytest.raises(ValueError, match="collection='sp', but the model has a 'distance_encoder'"):
        PathNN.load_released(state, collection="sp")
    mean = make("molecules", "sp", aggregation="mean").state_dict()
    with pytest.raises(ValueError, match="Pass aggregation='mean'"):
        PathNN.load_released(mean, collection="sp")


def test_a_released_model_keeps_its_precision():
    theirs = make("tu", "sp").double()
    ours = PathNN.load_released(theirs.state_dict(), collection="sp")
    assert {weight.dtype for weight in ours.parameters()} == {torch.float64}
    torch.testing.assert_close(ours.lstm.weight_hh_l0, theirs.state_dict()["lstm.weight_hh_l0"], rtol=0, atol=0)
