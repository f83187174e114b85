"""The untrained network, merged and plain, beside the exact test."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import networkx as nx
import pytest
import torch

from pathnn.data import load_dataset
from pathnn.nn import PathNN
from pathnn.paths import PathExplosionError
from pathnn.paths.options import COLLECTIONS
from pathnn.theory.examples import hexagon, open_triplet, triangle, two_triangles
from pathnn.theory.graphs import edges_to_index
from pathnn.theory.isomorphism import all_pairs, check_pairs, isomorphism_test, untrained_models
from pathnn.theory.merged import merged_embeddings
from pathnn_reproduction.experiments.brec_protocol import disjoint_union


def numbered(graph: nx.Graph, seed: int = 0):
    order = torch.randperm(len(graph), generator=torch.Generator().manual_seed(seed)).tolist()
    number = dict(zip(graph, order, strict=True))
    return edges_to_index([(number[u], number[v]) for u, v in graph.edges]), len(graph)


def some_graphs():
    chosen = [nx.petersen_graph(), nx.cycle_graph(7), nx.star_graph(4), nx.grid_2d_graph(3, 3), nx.empty_graph(2)]
    chosen += [nx.gnp_random_graph(9, 0.35, seed=seed) for seed in range(3)]
    return [numbered(graph) for graph in chosen]


@torch.no_grad()
def plain_embeddings(models, graphs):
    """What the models compute if they read every path of all graphs in one batch."""
    edge_index, num_nodes, batch = disjoint_union(graphs)
    ones = torch.ones(num_nodes, 1).double()
    return torch.stack([model.embed(ones, edge_index, batch=batch, batch_size=len(graphs)) for model in models])


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize(("extend", "distances"), list(product([False, True], repeat=2)))
def test_merged_equals_plain(collection, extend, distances):
    models = untrained_models(collection=collection, k=4, seeds=2, extend=extend, distances=distances)
    merged = merged_embeddings(models, some_graphs())
    torch.testing.assert_close(merged, plain_embeddings(models, some_graphs()), rtol=1e-9, atol=1e-9)


def test_memory_changes_nothing():
    models = untrained_models(collection="ap", k=4, seeds=1, phi="relu")
    whole = merged_embeddings(models, some_graphs())
    torch.testing.assert_close(merged_embeddings(models, some_graphs(), memory=10_000), whole)


def test_sequences_without_a_table(monkeypatch):
    models = untrained_models(collection="ap", k=4, seeds=1)
    whole = merged_embeddings(models, some_graphs())
    monkeypatch.setattr("pathnn.theory.merged.TABLE", 0)
    torch.testing.assert_close(merged_embeddings(models, some_graphs()), whole)


@pytest.mark.parametrize("phi", ["tanh", "mlp"])
def test_batch_norm_counts_every_vertex(phi):
    """The merged statistics are those of a batch of all graphs."""
    model = untrained_models(collection="ap", k=3, seeds=1, phi=phi)[0]
    graphs = some_graphs()
    merged = merged_embeddings([model], graphs)
    torch.testing.assert_close(merged, plain_embeddings([model], graphs), rtol=1e-9, atol=1e-9)


def test_the_paper_s_model_is_what_is_tested():
    ours = untrained_models(collection="ap", k=4, seeds=2)
    torch.manual_seed(1)
    paper = PathNN.from_paper("sr", collection="ap").double()
    assert ours[1].config == paper.config
    for name, weight in paper.state_dict().items():
        assert ours[1].state_dict()[name].equal(weight)


def test_a_network_never_beats_the_exact_test():
    """On random regular graphs and relabelled copies of them; no network tells copies apart."""
    graphs = [numbered(nx.random_regular_graph(3, 10, seed=i // 2), seed=i) for i in range(16)]
    pairs = all_pairs(len(graphs))
    copies = (pairs[:, 1] == pairs[:, 0] + 1) & (pairs[:, 0] % 2 == 0)
    for k, phi in product((2, 4, 6), ("identity", "tanh")):
        found = isomorphism_test(graphs, k=k, phi=phi, seeds=2)
        assert all(rate >= found.exact_failure_rate for rate in found.failure_rate)
        assert found.sum_failure_rate >= found.exact_failure_rate
        assert found.wl1_failure_rate == 1
        of_copies = isomorphism_test(graphs, pairs[copies], k=k, phi=phi, seeds=2)
        assert of_copies.exact_failure_rate == 1
        assert of_copies.failure_rate == (1, 1)


def test_strongly_regular_graphs(mirror: Path):
    """The paper's: nothing is told apart without distances at K = 4; what sums lose, tanh gives back."""
    graphs = load_dataset("sr261034").graphs
    paper = isomorphism_test(graphs, seeds=2)
    assert [round(rate * paper.pairs) for rate in paper.failure_rate] == [3, 3]
    assert (paper.graphs, paper.pairs, round(paper.sum_failure_rate * 45), round(paper.exact_failure_rate * 45)) == (
        10, 45, 3, 2,
    )  # fmt: skip
    assert paper.wl1_failure_rate == paper.wl3_failure_rate == 1
    assert isomorphism_test(graphs, seeds=2, phi="tanh").failure_rate == (paper.exact_failure_rate,) * 2
    without = isomorphism_test(graphs, distances=False, seeds=2)
    assert without.exact_failure_rate == 1
    assert without.failure_rate == (1, 1)
    assert isomorphism_test(graphs, k=5, seeds=0).exact_failure_rate == 0


def test_pairs_of_a_dataset(mirror: Path):
    task = load_dataset("exp")
    found = isomorphism_test(task.graphs, task.pair_index()[:20], collection="sp+", k=10, seeds=1)
    assert found.pairs == 20
    assert found.failure_rate == (0,)
    assert found.exact_failure_rate == 0
    assert found.wl1_failure_rate == 1


def test_what_is_left_out_is_none():
    found = isomorphism_test([hexagon(), two_triangles()], k=2, seeds=0, residual=False)
    assert found.failure_rate == ()
    assert found.sum_failure_rate is None
    large = numbered(nx.path_graph(65))
    assert isomorphism_test([large, large], k=1, seeds=0).wl3_failure_rate is None


def test_confused_pairs_are_named():
    graphs = [hexagon(), open_triplet(), two_triangles()]
    found = isomorphism_test(graphs, k=2, distances=False, seeds=1)
    assert found.confused == found.confused_by_network == ((0, 2),)
    assert isomorphism_test(graphs[:1], k=2).failure_rate == ()


def test_refuses_wrong_pairs():
    with pytest.raises(ValueError, match="from 0 to 1"):
        isomorphism_test([hexagon(), hexagon()], torch.tensor([[0, 2]]))
    with pytest.raises(ValueError, match=r"of shape \[pairs, 2\]"):
        check_pairs(torch.zeros(3), 2)
    with pytest.raises(ValueError, match="pairs: expected at most"):
        all_pairs(10_000)


def test_lengths_that_no_path_has_cost_nothing_and_change_nothing() -> None:
    graphs = [open_triplet(), triangle()]
    models = untrained_models(collection="ap", k=70, seeds=1)
    torch.testing.assert_close(merged_embeddings(models, graphs), plain_embeddings(models, graphs))


def test_what_cannot_be_merged_is_refused_before_any_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    pairs = torch.triu(torch.rand(16, 16, generator=generator) < 0.3, 1).nonzero().t()
    graph = (torch.cat([pairs, pairs.flip(0)], dim=1), 16)
    models = untrained_models(collection="ap", k=15, seeds=1)
    monkeypatch.setattr("pathnn.theory.merged._layer", lambda *_: pytest.fail("a layer was computed"))
    with pytest.raises(PathExplosionError, match=r"too many to merge sequences of 16\. Lower k"):
        merged_embeddings(models, [graph])


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_representations_are_the_same_on_a_gpu(collection: str) -> None:
    graphs = some_graphs()
    models = untrained_models(collection=collection, k=4, seeds=2)
    truth = merged_embeddings(models, graphs)
    found = merged_embeddings(models, graphs, device="cuda").cpu()
    torch.testing.assert_close(found, truth)
