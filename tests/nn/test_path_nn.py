"""PathConv and PathNN: equations, options, invariances, and what they refuse."""

from __future__ import annotations

import io
import json
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st
from torch import nn

from nn_graphs import both_directions, graph
from nn_strategies import graphs
from pathnn.nn import Baseline, PathConv, PathLSTM, PathNN, PathNNConfig
from pathnn.nn.backends.dense import dense_path_states
from pathnn.paths.extract import extract_paths
from pathnn.paths.options import PathOptions
from pathnn.testing import assert_backends_agree, assert_permutation_invariant, relative_difference

EDGE_INDEX, N = graph()
BATCH = torch.tensor([0] * 9 + [1] * 3)


def features(width: int = 4) -> torch.Tensor:
    return torch.randn(N, width, generator=torch.Generator().manual_seed(5))


def bonds() -> torch.Tensor:
    return (EDGE_INDEX.sum(dim=0) % 3).long()


def test_conv_is_equations_2_and_3():
    trie = extract_paths(EDGE_INDEX, N, collection="sp+", k=2).length(2)
    h = features(8)
    lstm = PathLSTM(8)
    conv = PathConv(8, norm="batch", phi="relu").eval()
    nn.init.normal_(conv.norm.running_mean)
    assert torch.allclose(conv(h, lstm, trie), conv.norm(h + lstm(h, trie)).relu())
    scaled = h / h.norm(dim=1, keepdim=True)
    divided = PathConv(8, norm=None, normalize=True, phi="identity")
    assert torch.allclose(divided(h, lstm, trie), scaled + lstm(scaled, trie), atol=1e-6)
    mlp = PathConv(8, norm=None, phi="mlp", dropout=0.5).eval()
    kinds = [nn.Dropout, nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear, nn.BatchNorm1d, nn.ReLU]
    assert [type(layer) for layer in mlp.phi] == kinds
    assert torch.allclose(mlp(h, lstm, trie), mlp.phi(h + lstm(h, trie)))


def test_forward_is_the_composition_of_its_parts():
    model = PathNN(4, 8, 2, collection="ap", k=3, readout="mean").eval()
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=3)
    h = model.encoder(features())
    for length, conv in enumerate(model.convs, start=1):
        h = conv(h, model.lstm, trie.length(length))
    expected = torch.stack([h[:9].mean(dim=0), h[9:].mean(dim=0)])
    assert torch.allclose(model.embed(features(), trie=trie, batch=BATCH), expected, atol=1e-6)
    out = model(features(), trie=trie, batch=BATCH)
    assert torch.allclose(out, model.head(expected), atol=1e-6)
    assert torch.equal(out, model(features(), EDGE_INDEX, batch=BATCH, batch_size=2))
    representations = model.path_representations(features(), trie=trie)
    assert [len(rows) for rows in representations] == [len(paths) for paths in trie.to_paths()]
    first = model.lstm.path_representations(model.encoder(features()), trie.length(1))
    assert torch.equal(representations[0], first)


@pytest.mark.parametrize(
    ("collection", "norm", "phi", "readout"),
    [*product(["sp+", "ap"], ["batch", None], ["relu"], ["sum", None]), ("ap", "batch", "mlp", "mean")],
)
def test_renumbering_vertices_changes_nothing(collection, norm, phi, readout):
    model = PathNN(
        4, 8, 2, collection=collection, k=3, norm=norm, phi=phi, readout=readout, edge_channels=(3,), extend=True
    )
    assert_permutation_invariant(model, features(), EDGE_INDEX, edge_attr=bonds(), batch=BATCH)


@given(graphs(), st.sampled_from(["sp+", "ap"]))
@settings(max_examples=15, deadline=None)
def test_renumbering_any_graph_changes_nothing(drawn, collection):
    edge_index, n = drawn
    model = PathNN(1, 8, 2, collection=collection, k=3, norm=None, normalize=True, encoder_norm=False).double()
    x = torch.arange(n, dtype=torch.float64).unsqueeze(1)
    assert_permutation_invariant(model, x, edge_index, tolerance=1e-9)


@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
@pytest.mark.parametrize("training", [False, True])
def test_a_batch_is_its_graphs(collection, training):
    model = PathNN(4, 8, 2, collection=collection, k=3, norm=None, phi="relu", encoder_norm=False).train(training)
    together = model(features(), EDGE_INDEX, batch=BATCH)
    first = EDGE_INDEX[:, EDGE_INDEX.max(dim=0).values < 9]
    second = EDGE_INDEX[:, EDGE_INDEX.min(dim=0).values >= 9] - 9
    alone = torch.cat([model(features()[:9], first), model(features()[9:], second)])
    assert relative_difference(together, alone) < 1e-5


@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
@pytest.mark.parametrize("max_entries", [None, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_backends_agree_in_the_whole_model(collection, max_entries, dtype):
    model = PathNN(
        4, 8, 2, collection=collection, k=3, edge_channels=(3,), phi="mlp", aggregation="mean", max_entries=max_entries
    ).to(dtype)
    assert_backends_agree(model, features().to(dtype), EDGE_INDEX, edge_attr=bonds(), batch=BATCH)


def test_dropout_is_before_the_lstm_before_phi_and_in_the_head():
    model = PathNN(4, 8, 1, collection="sp", k=2, phi="mlp", dropout=0.3)
    assert model.lstm.input_dropout == 0.3
    assert [conv.phi[0].p for conv in model.convs] == [0.3, 0.3]
    assert model.head.dropout.p == 0.3


def test_pieces_leave_batch_norm_alone():
    results = []
    for max_entries in (None, 25):
        torch.manual_seed(0)
        model = PathNN(4, 8, 2, collection="ap", k=3, max_entries=max_entries).double()
        out = model(features().double(), EDGE_INDEX, batch=BATCH)
        out.sum().backward()
        results.append([out.detach(), *(p.grad for p in model.parameters()), *model.buffers()])
    for whole, cut in zip(*results, strict=True):
        assert relative_difference(cut.double(), whole.double(), scale=1e-3) < 1e-10


def test_node_level_and_no_head():
    per_vertex = PathNN(4, 8, 3, collection="sp", k=2, readout=None)
    assert per_vertex(features(), EDGE_INDEX).shape == (N, 3)
    headless = PathNN(4, 8, None, collection="sp", k=2, head=None)
    assert headless(features(), EDGE_INDEX, batch=BATCH).shape == (2, 8)


def test_k_beyond_the_diameter_still_runs_its_layers():
    model = PathNN(4, 8, 1, collection="sp", k=4, norm=None, phi="identity")
    edge_index = both_directions([(0, 1)])
    trie = extract_paths(edge_index, 2, collection="sp", k=4)
    x = features()[:2]
    h = model.encoder(x)
    h = h + model.lstm(h, trie.length(1))
    assert torch.allclose(model.embed(x, edge_index), h.sum(dim=0, keepdim=True), atol=1e-6)


def test_edge_features_of_all_kinds():
    continuous = PathNN(4, 8, 1, collection="ap", k=2, edge_channels=5)
    assert continuous(features(), EDGE_INDEX, edge_attr=torch.randn(EDGE_INDEX.size(1), 5)).shape == (1, 1)
    several = PathNN((4, 2), 8, 1, collection="ap", k=2, edge_channels=(5, 6, 2)).eval()
    x, edge_attr = torch.ones(N, 2, dtype=torch.long), torch.randint(0, 2, (EDGE_INDEX.size(1), 3))
    out = several(x, EDGE_INDEX, edge_attr=edge_attr)
    several.edge_encoder.edge_types = several.edge_encoder.forward
    assert torch.allclose(out, several(x, EDGE_INDEX, edge_attr=edge_attr), atol=1e-5)


def test_config_describes_the_model_in_plain_values():
    model = PathNN((28,), 8, 1, collection="ap", k=4, edge_channels=(4,), phi="mlp", dropout=0.1, extend=True)
    text = json.dumps(model.config.to_dict())
    twin = PathNN.from_config(json.loads(text))
    assert twin.config == model.config
    twin.load_state_dict(model.state_dict())
    assert model.config.distances is True
    assert model.config.encoder == "categorical"
    with pytest.raises(ValueError, match=r"unknown options \['depth'\]"):
        PathNNConfig.from_dict({**model.config.to_dict(), "depth": 3})
    with pytest.raises(ValueError, match=r"options \['k'\] are missing"):
        PathNNConfig.from_dict({key: v for key, v in model.config.to_dict().items() if key != "k"})


def test_weights_survive_saving():
    model = PathNN(4, 8, 1, collection="ap", k=2)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    twin = PathNN.from_config(model.config)
    twin.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(model.eval()(features(), EDGE_INDEX), twin.eval()(features(), EDGE_INDEX))


def test_autocast_keeps_the_gates_in_float32():
    model = PathNN(4, 8, 1, collection="ap", k=3, edge_channels=(3,)).eval()
    expected = model(features(), EDGE_INDEX, edge_attr=bonds())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = model.lstm(torch.randn(N, 8).bfloat16(), extract_paths(EDGE_INDEX, N, collection="ap", k=3).length(1),
                       model.edge_encoder.edge_types(bonds()))  # fmt: skip
        assert h.dtype == torch.float32
        out = model(features(), EDGE_INDEX, edge_attr=bonds())
        out.float().sum().backward()
    assert relative_difference(out.float(), expected) < 0.05


@pytest.mark.filterwarnings("ignore")  # of the compiler's own
def test_compiled_equals_eager():
    model = PathNN(4, 8, 1, collection="ap", k=2, edge_channels=(3,)).eval()
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=2)
    expected = model(features(), trie=trie, batch=BATCH, edge_attr=bonds(), batch_size=2)
    compiled = torch.compile(model, backend="eager")
    out = compiled(features(), trie=trie, batch=BATCH, edge_attr=bonds(), batch_size=2)
    assert torch.allclose(out, expected, atol=1e-6)
    out.sum().backward()
    assert model.lstm.weight_hh_l0.grad.abs().sum() > 0


def test_training_reduces_the_loss():
    torch.manual_seed(0)
    model = PathNN(4, 8, 1, collection="ap", k=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=2)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = F.mse_loss(model(features(), trie=trie, batch=BATCH), torch.tensor([[1.0], [-1.0]]))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.1 * losses[0]


def test_errors_say_the_way_out():
    model = PathNN(4, 8, 1, collection="ap", k=2, edge_channels=(3,))
    trie = extract_paths(EDGE_INDEX, N, collection="ap", k=2)
    good = {"trie": trie, "edge_attr": bonds()}

    def other(**options):
        return extract_paths(EDGE_INDEX, N, **{"collection": "ap", "k": 2, **options})

    for changes, message in (
        ({"trie": None}, "give trie=, or edge_index"),
        ({"trie": other(collection="sp+", distances=True)}, r"collection='sp\+', but the model expected 'ap'"),
        ({"trie": other(k=1)}, "k=1, but the model expected 2"),
        ({"edge_attr": bonds()[:-1]}, "rows, but the paths were extracted from"),
        ({"trie": other(extend=True)}, "extended=True, but the model expected False"),
        ({"trie": other(distances=False)}, "the trie has none. Extract paths with distances=True"),
        ({"edge_attr": None}, "edge_attr is missing"),
        ({"edge_attr": bonds()[:3]}, "edge_attr has 3 rows"),
        ({"edge_attr": bonds() + 5}, "from 0 to 2, got 5 to"),
        ({"edge_attr": bonds().float()}, "expected integers"),
        ({"batch": BATCH[:3]}, "one graph id per vertex"),
    ):
        with pytest.raises(ValueError, match=message):
            model(features(), **{**good, **changes})
    with pytest.raises(ValueError, match=r"\[num_nodes, 4\], got \(12, 5\)"):
        model(features(5), **good)
    with pytest.raises(ValueError, match="num_nodes=12, but the model expected 5"):
        model(features()[:5], **good)
    with pytest.raises(ValueError, match="floating point"):
        model(torch.ones(N, 4, dtype=torch.long), **good)
    with pytest.raises(ValueError, match="reads no edges"):
        PathNN(4, 8, 1, collection="ap", k=2)(features(), **good)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"collection": "xp"}, "collection='xp'"),
        ({"k": 0}, "k=0"),
        ({"hidden_channels": 0}, "hidden_channels=0"),
        ({"dropout": 1.0}, r"dropout=1\.0"),
        ({"phi": "gelu"}, "phi='gelu' is unknown"),
        ({"norm": "layer"}, "norm='layer' is unknown"),
        ({"readout": "max"}, "readout='max' is unknown"),
        ({"head": "deep"}, "head='deep' is unknown"),
        ({"encoder": "conv"}, "encoder='conv' is unknown"),
        ({"in_channels": -1}, "in_channels=-1"),
        ({"edge_channels": ()}, "edge_channels="),
        ({"head": None}, "expected None"),
        ({"out_channels": None}, "expected a number with head='mlp'"),
    ],
)
def test_options_that_do_not_exist(options, message):
    good = {"in_channels": 4, "hidden_channels": 8, "out_channels": 1, "collection": "sp", "k": 2}
    with pytest.raises(ValueError, match=message):
        PathNN(**{**good, **options})


def test_the_assertions_can_fail(monkeypatch):
    class FirstVertex(nn.Module):
        def forward(self, h, batch, *, batch_size):
            return h[:1]

    first_vertex_only = PathNN(4, 8, 1, collection="ap", k=2)
    first_vertex_only.readout = FirstVertex()
    with pytest.raises(AssertionError, match="renumbered"):
        assert_permutation_invariant(first_vertex_only, features(), EDGE_INDEX)
    model = PathNN(4, 8, 1, collection="ap", k=2)
    assert_backends_agree(model, features(), EDGE_INDEX)
    monkeypatch.setattr("pathnn.nn.backends.dense.dense_path_states", lambda *a: 1.001 * dense_path_states(*a))
    with pytest.raises(AssertionError, match="differ from"):
        assert_backends_agree(model, features(), EDGE_INDEX)
    assert_permutation_invariant(Baseline("gin", 4, 8, 1), features(), EDGE_INDEX)


def test_a_forward_pass_does_not_check_the_options_of_paths_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = PathNN(3, 8, 2, collection="sp+", k=2, extend=True).eval()
    expected = model(torch.ones(N, 3), EDGE_INDEX)
    assert model.path_options == PathOptions("sp+", 2, extend=True)
    monkeypatch.setattr(PathOptions, "__post_init__", lambda _: pytest.fail("checked again"))
    torch.testing.assert_close(model(torch.ones(N, 3), EDGE_INDEX), expected)


def test_distances_that_are_not_read_are_noticed_once() -> None:
    model = PathNN(4, 8, 2, collection="sp", k=2).eval()
    trie = extract_paths(EDGE_INDEX, N, collection="sp", k=2, distances=True)
    with pytest.warns(UserWarning, match="distances, which this model does not read"):
        out = model(features(), trie=trie)
    assert torch.allclose(model(features(), trie=trie), out)  # no second warning, which would be an error
    assert torch.allclose(model(features(), EDGE_INDEX), out)


def test_parallel_edges_with_different_features_are_noticed() -> None:
    model = PathNN(4, 8, 2, collection="sp", k=2, edge_channels=(9,)).eval()
    twice = torch.cat([EDGE_INDEX, EDGE_INDEX[:, :1]], dim=1)
    expected = model(features(), EDGE_INDEX, edge_attr=bonds())
    first = model(features(), twice, edge_attr=torch.cat([bonds(), bonds()[:1]]))
    with pytest.warns(UserWarning, match="has several rows with different edge_attr"):
        other = model(features(), twice, edge_attr=torch.cat([bonds(), bonds()[:1] + 1]))
    assert torch.allclose(first, expected)
    assert torch.allclose(other, expected)


def test_a_model_draws_paths_in_each_training_call_and_the_same_in_evaluation() -> None:
    options = {"collection": "ap", "k": 3, "max_paths_per_source": 1}
    model = PathNN(4, 8, 2, **options, norm=None, encoder_norm=False)
    torch.manual_seed(0)
    drawn = [model(features(), EDGE_INDEX) for _ in range(4)]
    assert not all(torch.allclose(one, drawn[0]) for one in drawn[1:])
    model.eval()
    trie = extract_paths(EDGE_INDEX, N, **options, seed=0)
    assert torch.allclose(model(features(), EDGE_INDEX), model(features(), trie=trie))
    fixed = PathNN(4, 8, 2, **options, seed=3, norm=None, encoder_norm=False)
    assert torch.equal(fixed(features(), EDGE_INDEX), fixed(features(), EDGE_INDEX))
    assert torch.equal(fixed(features(), EDGE_INDEX), fixed.eval()(features(), EDGE_INDEX))
    assert fixed.config == model.config
    with pytest.raises(ValueError, match="max_paths_per_source=0: expected an integer"):
        PathNN(4, 8, 2, collection="ap", k=3, max_paths_per_source=0)


def test_a_model_of_directed_paths_follows_the_direction_of_edges():
    one_way = torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]])
    x = torch.rand(4, 3)
    model = PathNN(3, 8, 2, collection="ap", k=2, directed=True).eval()
    expected = model(x, trie=extract_paths(one_way, 4, collection="ap", k=2, directed=True))
    assert torch.equal(model(x, one_way), expected)
    assert not torch.allclose(model(x, torch.cat([one_way, one_way.flip(0)], dim=1)), expected)
    assert PathNN.from_config(model.config.to_dict()).path_options.directed
    with pytest.raises(ValueError, match="directed=True"):
        PathNN(3, 8, 2, collection="ap", k=2)(x, one_way)
