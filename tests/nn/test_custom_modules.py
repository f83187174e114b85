"""Parts of a model that are the user's own: each is called as the docs say, and weights can be drawn anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

from nn_graphs import graph
from pathnn import PathNN, extract_paths
from pathnn.data.packed import PackedGraphs
from pathnn.nn import Baseline
from pathnn.nn.cuda_graphs.padded_modules import can_be_padded
from pathnn.nn.path_lstm import PathLSTM
from pathnn.nn.path_nn import PathConv
from pathnn.paths.count import PathExplosionError

EDGE_INDEX, N = graph()
BATCH = torch.tensor([0] * 9 + [1] * 3)


def features() -> torch.Tensor:
    return torch.randn(N, 4, generator=torch.Generator().manual_seed(0))


def bonds() -> torch.Tensor:
    """A code from 0 to 2 for each edge, the same for both directions."""
    half = EDGE_INDEX.size(1) // 2
    return torch.randint(0, 3, (half, 1), generator=torch.Generator().manual_seed(1)).repeat(2, 1)


class Largest(nn.Module):
    def forward(self, h: torch.Tensor, batch: torch.Tensor | None) -> torch.Tensor:
        return pyg.global_max_pool(h, batch)


@pytest.mark.parametrize("network", ["pathnn", "gin"])
@pytest.mark.parametrize("readout", [pyg.MaxAggregation(), pyg.AttentionalAggregation(nn.Linear(8, 1)), Largest()])
@pytest.mark.parametrize("batch", [BATCH, None])
def test_readouts_of_pyg_and_of_ones_own(network: Any, readout: nn.Module, batch: torch.Tensor | None) -> None:
    torch.manual_seed(0)
    model = PathNN(4, 8, 2, collection="ap", k=2) if network == "pathnn" else Baseline(network, 4, 8, 2)
    model.readout = None
    vertices = model.eval().embed(features(), EDGE_INDEX)
    model.readout = readout
    pooled = readout(vertices, batch)
    torch.testing.assert_close(model(features(), EDGE_INDEX, batch=batch), model.head(pooled))
    if batch is not None and not isinstance(readout, Largest):
        assert model(features(), EDGE_INDEX, batch=batch, batch_size=5).shape == (5, 2), "graphs without vertices"


@pytest.mark.parametrize("readout", [Largest(), pyg.SumAggregation(), nn.Sequential(), None])
def test_a_readout_that_was_compiled_or_takes_anything(readout: nn.Module | None) -> None:
    class Anything(nn.Module):
        def forward(self, h: torch.Tensor, batch: torch.Tensor, **options: Any) -> torch.Tensor:
            return pyg.global_add_pool(h, batch, options["batch_size"])

    model = PathNN(4, 8, 2, collection="ap", k=2).eval()
    if isinstance(readout, nn.Sequential):
        model.readout = Anything()
    elif readout is not None:
        model.readout = torch.compile(readout, backend="eager")  # type: ignore[assignment]
    sized = {} if isinstance(readout, Largest) else {"batch_size": 4}
    with torch.no_grad():
        assert model(features(), EDGE_INDEX, batch=BATCH, **sized).shape == (4 if sized else 2, 2)


@pytest.mark.parametrize("part", ["readout", "edge_encoder", "lstm", "convs"])
def test_parts_of_ones_own_are_not_trained_on_padded_batches(part: str) -> None:
    """Padding would count in BatchNorm, and what waits for the GPU cannot be recorded."""
    model = PathNN(4, 8, 2, collection="ap", k=2, edge_channels=(3,))
    graphs = PackedGraphs.from_edges([EDGE_INDEX], [N])
    assert can_be_padded(model, graphs)
    if part == "convs":
        model.convs[1] = nn.Identity()
    else:
        setattr(model, part, nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)))
    assert not can_be_padded(model, graphs), part


def test_an_lstm_of_ones_own_gets_the_features_of_every_edge() -> None:
    class Reading(nn.Module):
        def forward(self, h: torch.Tensor, trie: Any, edges: Any) -> torch.Tensor:
            assert isinstance(edges, torch.Tensor)
            assert edges.shape == (EDGE_INDEX.size(1), 8)
            return torch.zeros_like(h)

    model = PathNN(4, 8, 2, collection="ap", k=2, edge_channels=(3,))
    model.lstm = Reading()  # type: ignore[assignment]
    assert model(features(), EDGE_INDEX, edge_attr=bonds()).shape == (1, 2)


def test_an_edge_encoder_that_leaves_out_edges() -> None:
    class Some(nn.Module):
        def forward(self, edge_attr: torch.Tensor) -> torch.Tensor:
            return torch.zeros(edge_attr.size(0) - 1, 8)

    model = PathNN(4, 8, 2, collection="ap", k=2, edge_channels=(3,))
    model.edge_encoder = Some()
    with pytest.raises(ValueError, match="edge_encoder returned"):
        model(features(), EDGE_INDEX, edge_attr=bonds())


def test_edges_may_be_sorted_where_nobody_reads_their_features() -> None:
    order = torch.arange(EDGE_INDEX.size(1)).flip(0)
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=2)
    PathNN(4, 8, 2, collection="ap", k=2)(features(), EDGE_INDEX[:, order], trie=trie)
    reads = PathNN(4, 8, 2, collection="ap", k=2, edge_channels=(3,))
    with pytest.raises(ValueError, match="edges were sorted"):
        reads(features(), EDGE_INDEX[:, order], trie=trie, edge_attr=bonds()[order])


def test_an_edge_encoder_of_ones_own() -> None:
    model = PathNN(4, 8, 2, collection="ap", k=2, edge_channels=(3,))
    table = nn.Embedding(3, 8)
    expected = PathNN(4, 8, 2, collection="ap", k=2, edge_channels=(3,))
    expected.load_state_dict(model.state_dict())
    model.edge_encoder = table
    assert isinstance(expected.edge_encoder, nn.Module)
    expected.edge_encoder.embeddings[0].weight.data = table.weight.data  # type: ignore[index,union-attr]
    codes = bonds().view(-1)
    for one in (model, expected):
        one.eval()
    torch.testing.assert_close(
        model(features(), EDGE_INDEX, edge_attr=codes), expected(features(), EDGE_INDEX, edge_attr=codes)
    )


def test_an_lstm_of_ones_own_and_a_layer() -> None:
    class Counting(nn.Module):
        def forward(self, h: torch.Tensor, trie: Any, edges: Any) -> torch.Tensor:
            return torch.zeros_like(h).index_add_(0, trie.source, h.new_ones(trie.num_paths, h.size(1)))

    class Plain(nn.Module):
        def forward(self, h: torch.Tensor, lstm: Any, trie: Any, edges: Any) -> torch.Tensor:
            return h + lstm(h, trie, edges)  # type: ignore[no-any-return]

    model = PathNN(4, 8, None, collection="sp", k=2, readout=None, head=None)
    model.encoder, model.lstm = nn.Linear(4, 8), Counting()  # type: ignore[assignment]
    model.convs[0] = model.convs[1] = Plain()
    trie = extract_paths(EDGE_INDEX, N, collection="sp", k=2)
    paths = sum(torch.bincount(trie.length(length).source, minlength=N) for length in (1, 2))
    out = model(features(), trie=trie) - model.encoder(features())
    torch.testing.assert_close(out[:, 0], paths.float())  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="layer 1 is a Plain: expected a PathConv"):
        model.path_representations(features(), trie=trie)


def test_a_path_layer_in_ones_own_model() -> None:
    """What the docs show is what PathNN does."""
    torch.manual_seed(0)
    whole = PathNN(4, 8, None, collection="ap", k=2, readout=None, head=None, edge_channels=(3,)).eval()
    lstm, convs = PathLSTM(8, distances=3, edge_channels=8), nn.ModuleList(PathConv(8) for _ in range(2))
    lstm.load_state_dict(whole.lstm.state_dict())
    convs.load_state_dict(whole.convs.state_dict())
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=2)
    h = whole.encoder(features())
    assert whole.edge_encoder is not None
    edges = whole.edge_encoder(bonds())
    for length, conv in enumerate(convs.eval(), start=1):
        h = conv(h, lstm, trie.length(length), edges)
    torch.testing.assert_close(h, whole(features(), trie=trie, edge_attr=bonds()))


def test_longer_paths_than_the_model_reads_are_left_alone() -> None:
    model = PathNN(4, 8, 2, collection="ap", k=2).eval()
    longer = extract_paths(EDGE_INDEX, N, collection="ap", k=4)
    torch.testing.assert_close(model(features(), trie=longer), model(features(), EDGE_INDEX))


@pytest.mark.parametrize("options", [{}, {"edge_channels": (3,), "extend": True, "phi": "mlp", "dropout": 0.1}])
def test_weights_can_be_drawn_anew(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = PathNN(4, 64, 64, collection="ap", k=2, **options)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for parameter in model.parameters():
        nn.init.constant_(parameter, 7.0)
    model.reset_parameters()
    for name, value in model.named_parameters():
        drawn = float(before[name].std()) > 0  # BatchNorm begins with ones and zeros
        assert torch.equal(value, before[name]) != drawn, name
        assert float(value.detach().std()) == pytest.approx(float(before[name].std()), rel=0.4, abs=0.05), name


def test_what_is_wrong_is_said() -> None:
    lstm, trie = PathLSTM(8), extract_paths(EDGE_INDEX, N, collection="ap", k=2)
    for distances in (True, 0, "3"):
        with pytest.raises(ValueError, match=r"expected the rows of the table of distances, K \+ 1"):
            PathLSTM(8, distances=distances)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="backend='Dense'"):
        PathLSTM(8, backend="Dense")
    lstm.backend = "Dense"
    with pytest.raises(ValueError, match="backend='Dense'"):
        lstm(torch.ones(N, 8), trie.length(1))
    with pytest.raises(ValueError, match="backend='cpu' does not support PathLSTM"):
        PathLSTM(8, backend="cpu").double()(torch.ones(N, 8), trie.length(1))
    with pytest.raises(ValueError, match=r"an nn\.LSTM.*expected a PathLSTM"):
        PathConv(8)(torch.ones(N, 8), nn.LSTM(8, 8), trie.length(1))  # type: ignore[arg-type]
    assert PathNN(4, np.int64(16), 2, collection="ap", k=2).config.hidden_channels == 16  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="hidden_channels='16'"):
        PathNN(4, "16", 2, collection="ap", k=2)  # type: ignore[arg-type]
    numbers = PathNN(4, 8, 2, collection="ap", k=2, edge_channels=1)
    with pytest.raises(ValueError, match=r"got torch\.int64 .*edge_channels=\(4,\)"):
        numbers(features(), EDGE_INDEX, edge_attr=bonds())
    assert repr(trie.length(2)) == f"LengthTrie(length=2, num_paths={trie.length(2).num_paths}, " + (
        f"entries={trie.length(2).num_entries}, num_nodes={N})"
    )


def test_a_model_says_where_the_limits_are() -> None:
    n = 24
    everyone = torch.cartesian_prod(torch.arange(n), torch.arange(n)).t()
    dense = everyone[:, everyone[0] != everyone[1]]
    with pytest.raises(PathExplosionError, match=r"counting stopped there.*belongs to extract_paths.*trie="):
        PathNN(4, 8, 2, collection="ap", k=8)(torch.ones(n, 4), dense)
