"""Scores of paths add up to what the paths add, and mean what they say."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from pathnn import PathLSTM, PathNN, extract_paths
from pathnn.explain import Explanation, PathScore, explain_paths
from pathnn.explain.attribution import WeightedBatch, explain_graphs, reference_inputs
from pathnn.nn import Baseline

EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 1], [1, 2, 3, 4, 0, 2, 5]])  # a ring of five with a chord and a tail
GRAPH = torch.cat([EDGES, EDGES.flip(0)], dim=1)


def make(**options: Any) -> PathNN:
    torch.manual_seed(0)
    model = PathNN(3, out_channels=2, **{"hidden_channels": 8, "collection": "ap", "k": 3, **options})
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2.0)
    return model.train()  # a model in training mode is explained as it predicts


@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
@pytest.mark.parametrize(
    "options",
    [{}, {"aggregation": "mean", "norm": None}, {"extend": True}, {"normalize": True}, {"phi": "mlp", "dropout": 0.5}],
    ids=str,
)
def test_scores_add_up(collection, options):
    x = torch.rand(6, 3)
    model = make(collection=collection, **options)
    found = explain_paths(model, x, GRAPH, output=1)
    assert model.training
    model.eval()
    assert found.prediction == pytest.approx(model(x, GRAPH)[0, 1].item(), rel=1e-4)
    assert found.baseline == pytest.approx(model(x, GRAPH[:, :0])[0, 1].item(), rel=1e-4), "vertices alone"
    whole = found.prediction - found.baseline
    assert abs(found.rest) <= 0.01 * sum(float(score.abs().sum()) for score in found.scores)
    parts = found.rest + sum(path.score for path in found.ranked())
    assert parts == pytest.approx(whole)
    assert found.vertex_scores().sum().item() == pytest.approx(whole - found.rest)
    assert sum(found.edge_scores().values()) == pytest.approx(whole - found.rest)
    assert [a.shape for a in found.paths] == [b.shape for b in trie_of(model).to_paths()]


def some_graphs(number: int, **more: Any) -> list[Data]:
    generator = torch.Generator().manual_seed(5)
    sizes = [(6, GRAPH), (4, GRAPH[:, (GRAPH < 4).all(dim=0)]), (2, GRAPH[:, :0])]
    return [
        Data(x=torch.rand(n, 3, generator=generator), edge_index=edges, **more)
        for n, edges in (sizes[i % 3] for i in range(number))
    ]


@pytest.mark.parametrize(
    "options",
    [{}, {"extend": True, "collection": "sp"}, {"readout": "mean", "phi": "mlp"}, {"graph_channels": 2}],
    ids=str,
)
def test_the_reference_is_the_mean_prediction_for_other_graphs(options):
    """Vertices are paths of length 0, and all scores add up to the prediction minus the mean prediction."""
    model = make(**options).eval()
    channels = options.get("graph_channels", 0)
    others, graphs = some_graphs(7), some_graphs(3)
    for i, graph in enumerate([*others, *graphs]):
        graph.graph_attr = torch.tensor([[0.1 * i, -0.2]]) if channels else None
    each = [model(g.x, g.edge_index, graph_attr=g.get("graph_attr"))[0, 1].item() for g in others]
    found = explain_graphs(model, graphs, output=1, reference=reference_inputs(model, others))
    for graph, one in zip(graphs, found, strict=True):
        own = model(graph.x, graph.edge_index, graph_attr=graph.get("graph_attr"))[0, 1].item()
        assert one.prediction == pytest.approx(own, rel=1e-4, abs=1e-5)
        assert one.baseline == pytest.approx(sum(each) / len(each), rel=1e-4, abs=1e-5)
        assert abs(one.rest) <= 0.01 * sum(float(score.abs().sum()) for score in one.scores) + 1e-6
        parts = one.rest + one.descriptors + sum(path.score for path in one.ranked())
        assert parts == pytest.approx(one.prediction - one.baseline, abs=1e-6)
        assert one.paths[0].flatten().tolist() == list(range(graph.num_nodes))
        assert (one.descriptors != 0) == bool(channels)
        whole = one.prediction - one.baseline - one.rest - one.descriptors
        assert one.vertex_scores().sum().item() == pytest.approx(whole, abs=1e-6)


def test_a_batch_is_explained_like_each_of_its_graphs():
    model, graphs = make(), some_graphs(4)
    reference = reference_inputs(model, some_graphs(3))
    for given in (None, reference):
        for graph, one in zip(graphs, explain_graphs(model, graphs, reference=given), strict=True):
            alone = explain_paths(model, graph.x, graph.edge_index, reference=given)
            assert one.prediction == pytest.approx(alone.prediction, rel=1e-4)
            assert one.baseline == pytest.approx(alone.baseline, rel=1e-4)
            for a, b, c, d in zip(one.paths, alone.paths, one.scores, alone.scores, strict=True):
                assert a.equal(b)
                torch.testing.assert_close(c, d, rtol=1e-3, atol=1e-5)


def trie_of(model: PathNN):
    config = model.config
    return extract_paths(GRAPH, 6, collection=config.collection, k=config.k, extend=config.extend)


def test_edges_and_categories_are_read():
    torch.manual_seed(0)
    model = PathNN((4, 3), 8, 1, collection="ap", k=2, encoder="categorical", edge_channels=(5,))
    x, bonds = torch.stack([torch.randint(4, (6,)), torch.randint(3, (6,))], dim=1), torch.randint(5, (14, 1))
    found = explain_paths(model, x, GRAPH, edge_attr=bonds)
    assert abs(found.rest) <= 0.01 * abs(found.prediction - found.baseline)


def test_in_a_linear_model_a_score_is_what_the_path_changes():
    """One layer, no norm, no phi, a linear head: leaving a path out takes away just its score."""
    model = make(k=1, norm=None, phi="identity", head="linear").double()
    x = torch.rand(6, 3).double()
    found = explain_paths(model, x, GRAPH)
    batch = WeightedBatch(model, [Data(x=x, edge_index=GRAPH)])
    scores = found.scores[0]
    for path in range(scores.numel()):
        weights = batch.weights(1.0)
        weights[6 + path] = 0.0  # after the weights of six vertices
        left = batch.outputs(weights)[0, 0].item()
        assert found.prediction - left == pytest.approx(scores[path].item(), abs=1e-6)


@pytest.mark.parametrize("collection", ["sp+", "ap"])
def test_the_numbering_of_vertices_does_not_matter(collection):
    model, x, order = make(collection=collection), torch.rand(6, 3), torch.randperm(6)
    place = order.argsort()
    one = {path.vertices: path.score for path in explain_paths(model, x, GRAPH).ranked()}
    for path in explain_paths(model, x[order], place[GRAPH]).ranked():
        back = tuple(order[list(path.vertices)].tolist())
        assert one[min(back, back[::-1])] == pytest.approx(path.score, abs=1e-4)


def test_a_network_that_learned_a_motif_points_at_it():
    """Graphs with three kinds of vertices; the target is the number of edges between kinds 0 and 1."""
    generator = torch.Generator().manual_seed(1)
    torch.manual_seed(1)
    model = PathNN(3, 16, 1, collection="ap", k=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    kinds = torch.randint(3, (64, 6), generator=generator)
    batch = torch.arange(64).repeat_interleave(6)
    edge_index = torch.cat([GRAPH + 6 * i for i in range(64)], dim=1)
    x = nn.functional.one_hot(kinds.flatten(), 3).float()
    trie = extract_paths(edge_index, 6 * 64, collection="ap", k=2, batch=batch)
    y = torch.stack([motif(row).float().sum() for row in kinds])[:, None]
    for _ in range(80):
        optimizer.zero_grad()
        nn.functional.l1_loss(model(x, trie=trie, batch=batch, batch_size=64), y).backward()
        optimizer.step()
    right = total = 0
    for row, features in zip(kinds, x.view(64, 6, 3), strict=True):
        edges = {
            path.vertices: path.score for path in explain_paths(model, features, GRAPH).ranked() if path.length == 1
        }
        best = sorted(edges, key=lambda edge: -edges[edge])[: int(motif(row).sum())]
        right += sum({int(row[u]), int(row[v])} == {0, 1} for u, v in best)
        total += len(best)
    assert total > 50
    assert right / total > 0.8, "by chance it is a fifth"


def motif(kinds: torch.Tensor) -> torch.Tensor:
    ends = kinds[EDGES].sort(dim=0).values
    return (ends[0] == 0) & (ends[1] == 1)


def test_the_unit_can_be_changed():
    found = explain_paths(make(), torch.rand(6, 3), GRAPH)
    other = found.rescaled(2.0, 5.0)
    assert other.prediction == pytest.approx(2 * found.prediction + 5)
    assert other.rest == pytest.approx(2 * found.rest, abs=1e-9)
    assert other.ranked()[0].score == pytest.approx(2 * found.ranked()[0].score)


def test_a_path_and_its_reverse_are_one():
    paths = (torch.tensor([[0, 1], [1, 0]]), torch.tensor([[2, 1, -1]]))
    found = Explanation(3.0, 1.0, paths, (torch.tensor([0.5, 0.25]), torch.tensor([1.25])), 3)
    assert found.ranked() == [PathScore((1, 2), 1.25), PathScore((0, 1), 0.75)], "a dummy token is not a vertex"
    assert found.vertex_scores().tolist() == [0.375, 1.0, 0.625]
    assert found.edge_scores() == {(0, 1): 0.75, (1, 2): 1.25}
    assert found.rest == pytest.approx(0.0)


def test_a_graph_without_edges_has_nothing_to_explain():
    found = explain_paths(make(), torch.rand(2, 3), GRAPH[:, :0])
    assert found.ranked() == []
    assert found.prediction == pytest.approx(found.baseline)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (lambda: Baseline("gin", 3, 8, 2), {}, "model is a Baseline: expected a PathNN"),
        (lambda: make(readout=None), {}, "readout=None, an output for each vertex"),
        (make, {"output": 2}, "output=2: expected 0 to 1"),
        (make, {"output": 1.0}, "output=1.0: expected 0 to 1"),
    ],
)
def test_what_cannot_be_explained_is_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        explain_paths(model(), torch.rand(6, 3), GRAPH, **options)
    with pytest.raises(ValueError, match="x is None"):
        explain_paths(make(), None, GRAPH)


class ScaledLSTM(PathLSTM):
    """The sums differ from the representations of paths."""

    def forward(self, h: torch.Tensor, trie: Any, edges: Any = None) -> torch.Tensor:
        return 3 * super().forward(h, trie, edges)


class ScaledPaths(PathLSTM):
    """The sums are those of the representations of paths."""

    def path_representations(self, h: torch.Tensor, trie: Any, edges: Any = None) -> torch.Tensor:
        return 3 * super().path_representations(h, trie, edges)

    def forward(self, h: torch.Tensor, trie: Any, edges: Any = None) -> torch.Tensor:
        rows = self.path_representations(h, trie, edges)
        return torch.zeros_like(h).index_add(0, trie.source, rows)


class Counting(nn.Module):
    def forward(self, h: torch.Tensor, trie: Any, edges: Any) -> torch.Tensor:
        return torch.zeros_like(h).index_add(0, trie.source, h.new_ones(trie.num_paths, h.size(1)))


class Residual(nn.Module):
    def forward(self, h: torch.Tensor, lstm: Any, trie: Any, edges: Any) -> torch.Tensor:
        return 2 * h + lstm(h, trie, edges)


class OwnLSTM(nn.Module):
    """A layer that reads its paths with an LSTM of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = PathLSTM(8)

    def forward(self, h: torch.Tensor, lstm: Any, trie: Any, edges: Any) -> torch.Tensor:
        return h + self.lstm(h, trie, edges)


class ReadsPaths(nn.Module):
    """A layer that does not call the LSTM."""

    def forward(self, h: torch.Tensor, lstm: Any, trie: Any, edges: Any) -> torch.Tensor:
        return h.index_add(0, trie.source, lstm.path_representations(h, trie, edges))


class Doubled(PathNN):
    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        return 2 * super().forward(*args, **kwargs)


class CountsEdges(PathNN):
    def forward(self, x: torch.Tensor, edge_index: Any = None, **kwargs: Any) -> torch.Tensor:
        edges = 0 if edge_index is None else edge_index.size(1)
        return super().forward(x, edge_index, **kwargs) + edges


class ReadsData(PathNN):
    def forward(self, data: Any) -> torch.Tensor:
        return super().forward(data.x, data.edge_index)


def with_part(name: str, part: Any, **options: Any) -> PathNN:
    """A model with a custom LSTM, or with a custom first layer."""
    model = make(**options)
    if isinstance(part, PathLSTM):
        part.load_state_dict(model.lstm.state_dict())
    if name == "lstm":
        model.lstm = part
    else:
        model.convs[0] = part
    return model


def of_class(kind: type[PathNN]) -> PathNN:
    torch.manual_seed(0)
    return kind(3, 8, 2, collection="ap", k=3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: with_part("lstm", ScaledLSTM(8, distances=4)), r"the model predicts .* but its weighted paths give"),
        (lambda: with_part("lstm", Counting()), "the model's lstm is a Counting: expected a PathLSTM"),
        (lambda: with_part("convs", OwnLSTM()), r"without edges\), but its weighted paths give"),
        (lambda: with_part("convs", ReadsPaths()), r"cannot be weighted \(.*path_representations"),
        (lambda: of_class(CountsEdges), "but its weighted paths give"),
        (lambda: of_class(ReadsData), r"cannot be weighted \(.*unexpected keyword argument"),
    ],
)
def test_a_model_that_is_not_the_sum_of_its_paths_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        explain_paths(model(), torch.rand(6, 3), GRAPH)


@pytest.mark.parametrize(
    "model",
    [
        lambda: with_part("lstm", ScaledPaths(8, distances=4)),
        lambda: with_part("convs", Residual()),
        lambda: of_class(Doubled),
        lambda: make(backend="dense"),
        lambda: make(max_entries=1),
        lambda: make(k=6, hidden_channels=64, norm=None, phi="identity"),
        lambda: make().double(),
        lambda: make().bfloat16(),
        lambda: make(head="linear").half(),
    ],
    ids=["lstm", "conv", "model", "dense", "pieces", "large", "float64", "bfloat16", "float16"],
)
def test_custom_modules_and_other_arithmetic_are_explained(model):
    model = model()
    x = torch.rand(6, 3).to(next(model.parameters()).dtype)
    found = explain_paths(model, x, GRAPH)
    half = x.dtype in (torch.bfloat16, torch.float16)
    assert found.prediction == pytest.approx(model.eval()(x, GRAPH)[0, 0].item(), rel=0.1 if half else 1e-4)
    assert any(path.score != 0 for path in found.ranked())


def test_an_explanation_needs_no_gradients_around_it():
    model, x = make(), torch.rand(6, 3)
    expected = explain_paths(model, x, GRAPH).prediction
    with torch.no_grad():
        assert explain_paths(model, x, GRAPH).prediction == expected
    with torch.inference_mode():
        assert explain_paths(model, x * 1.0, GRAPH).prediction == expected
