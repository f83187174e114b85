"""Whole steps on padded batches, with the GPU's kernels in Triton's interpreter, are the steps of the CPU."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from engine_tasks import largest_shape
from pathnn.data.packed import PackedGraphs
from pathnn.nn import Baseline, DeepPathNN, PathNN
from pathnn.nn.baselines import BaselineName
from pathnn.nn.cuda_graphs.padded_modules import can_be_padded, reads_edges, reads_paths
from pathnn.nn.readout import GraphScale
from pathnn.training.cuda_graphs.capture import CudaGraphForward, CudaGraphStep
from pathnn.training.cuda_graphs.padded_batch import PaddedBatches
from pathnn.training.setup import Model, with_paths
from triton_on_cpu import Interpreted, difference, large_batches, same_dropout

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Converting a tensor")  # exp2 of 1000
ATOMS, BONDS = (9, 5, 150), (5, 6, 2)
NUMBER = 16


def random_graphs(*, collection: Any = "ap", k: int = 2, bonds: tuple[int, ...] | None = BONDS) -> PackedGraphs:
    """Small graphs, the first of them complete."""
    torch.manual_seed(0)
    nodes = [5, *torch.randint(1, 6, (NUMBER - 1,)).tolist()]
    pairs = [torch.triu(torch.rand(n, n) < (2.0 if i == 0 else 0.4), 1).nonzero().t() for i, n in enumerate(nodes)]
    graphs = PackedGraphs.from_edges([torch.cat([e, e.flip(0)], dim=1) for e in pairs], nodes)
    kinds = None if bonds is None else torch.stack([torch.randint(0, b, (graphs.num_edges,)) for b in bonds], dim=1)
    x = torch.stack([torch.randint(0, size, (graphs.num_nodes,)) for size in ATOMS], dim=1)
    return replace(graphs, x=x, edge_attr=kinds, y=torch.randn(NUMBER, 1)).with_paths(collection=collection, k=k)


def eager(model: Model, graphs: PackedGraphs, index: Tensor) -> Tensor:
    batch = graphs.select(index)
    assert batch.x is not None
    structure: Any = {"trie": batch.trie} if reads_paths(model) else {}
    structure |= {"edge_index": batch.edge_index} if reads_edges(model) else {}
    structure |= {"random_walk_pe": batch.random_walk_pe} if isinstance(model, DeepPathNN) else {}
    structure |= {"graph_attr": batch.graph_attr}
    out: Tensor = model(batch.x, **structure, batch=batch.batch, edge_attr=batch.edge_attr, batch_size=batch.num_graphs)
    return out


def assert_same_step(model: Model, graphs: PackedGraphs, step: CudaGraphStep, interpreted: Interpreted) -> None:
    """Loss, gradients and statistics of BatchNorm, in two batches; the first has the complete graph."""
    loss = nn.L1Loss()
    for index in (torch.arange(4), torch.arange(7, 11)):
        value = step(index)
        model.zero_grad()
        with interpreted.off():
            truth = loss(eager(model.train(), graphs, index), graphs.select(index).y)
            truth.backward()
        assert difference(value, truth.detach()) <= 1e-5
        ours, theirs = (_gradient(network) for network in (step.model, model))
        assert difference(ours, theirs) <= 1e-5
        for buffer, expected in zip(step.model.buffers(), model.buffers(), strict=True):
            assert difference(buffer.float(), expected.float()) <= 1e-5


def _gradient(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize(
    ("collection", "k", "bonds", "dropout", "recompute", "large"),
    [
        ("ap", 2, BONDS, 0.5, True, False),
        ("sp", 2, (300,), 0.5, False, False),
        ("sp", 2, (600,), 0.0, False, False),
        ("sp+", 3, None, 0.0, False, False),
        ("sp", 2, BONDS, 0.0, False, True),
        ("ap", 2, None, 0.5, True, True),
    ],
)
def test_step(
    collection: Any,
    k: int,
    bonds: tuple[int, ...] | None,
    dropout: float,
    recompute: bool,
    large: bool,
    interpreted: Interpreted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same_dropout(monkeypatch)
    if large:
        large_batches(monkeypatch)
    graphs = random_graphs(collection=collection, k=k, bonds=bonds)
    options: Any = {"collection": collection, "k": k, "edge_channels": bonds, "dropout": dropout, "readout": "mean"}
    model = PathNN(ATOMS, 20, 1, phi="mlp", **options)
    capacity = largest_shape(graphs, 4)
    step = CudaGraphStep(copy.deepcopy(model), graphs, nn.L1Loss(), capacity=capacity, recompute=recompute)
    assert isinstance(step.batches, PaddedBatches)
    step.batches.block, step.batches.parts = 16, 3 if recompute else 1  # as where a graph has very many paths
    assert_same_step(model, graphs, step, interpreted)


@pytest.mark.parametrize("name", get_args(BaselineName))
def test_step_of_a_baseline(name: Any, interpreted: Interpreted) -> None:
    graphs = random_graphs()
    model = Baseline(name, ATOMS, 16, 1, num_layers=2, edge_channels=BONDS)
    capacity = largest_shape(graphs, 4, paths=False)
    step = CudaGraphStep(copy.deepcopy(model), graphs, nn.L1Loss(), capacity=capacity)
    assert_same_step(model, graphs, step, interpreted)


@pytest.mark.parametrize(
    "options",
    [
        {"bonds": BONDS},
        {"bonds": (4,), "virtual_node": True, "readout": "mean", "activation": "gelu", "dropout": 0.5},
        {"bonds": None, "message_passing": False},
        {"bonds": (300,), "read_paths": False, "feed_forward": False},
        {"bonds": None, "walk_length": 0},
        {"bonds": BONDS, "prefixes": True, "recompute": False},
        {"bonds": None, "prefixes": True},
    ],
)
def test_step_of_pathnn_plus(
    options: dict[str, Any], interpreted: Interpreted, monkeypatch: pytest.MonkeyPatch
) -> None:
    same_dropout(monkeypatch)
    recompute = options.pop("recompute", True)
    model, graphs = deep_model(**options)
    capacity = largest_shape(graphs, 4, paths=model.reads_paths).with_room()
    assert can_be_padded(model, graphs.edge_index)
    step = CudaGraphStep(copy.deepcopy(model), graphs, nn.L1Loss(), capacity=capacity, recompute=recompute)
    assert_same_step(model, graphs, step, interpreted)


def deep_model(*, bonds: tuple[int, ...] | None, **options: Any) -> tuple[DeepPathNN, PackedGraphs]:
    """A small model, and graphs with what it reads."""
    graphs, common = random_graphs(bonds=bonds), {"collection": "ap", "k": 2, "num_layers": 2, "walk_length": 5}
    model = DeepPathNN(ATOMS, 20, 1, **{**common, "edge_channels": bonds, **options})
    return model, with_paths(graphs, model, "cpu")


@pytest.mark.parametrize("read_paths", [True, False])
def test_prediction_of_pathnn_plus(read_paths: bool, interpreted: Interpreted) -> None:
    model, graphs = deep_model(bonds=BONDS, virtual_node=True, read_paths=read_paths)
    capacity = largest_shape(graphs, 4, paths=read_paths).with_room()
    predict = CudaGraphForward(model.eval(), graphs, capacity=capacity)
    with torch.inference_mode():
        value = predict(torch.arange(4))
        with interpreted.off():
            assert difference(value, eager(model, graphs, torch.arange(4))) <= 1e-5


def test_custom_parts_are_not_captured() -> None:
    model, graphs = deep_model(bonds=None)
    assert can_be_padded(model, graphs.edge_index)
    model.blocks[1].message_passing = nn.Identity()  # might wait for the GPU, or read padding
    assert not can_be_padded(model, graphs.edge_index)
    model, graphs = deep_model(bonds=None)
    model.blocks[0].paths.lstm.backend = "dense"
    assert not can_be_padded(model, graphs.edge_index)


def test_prediction(interpreted: Interpreted) -> None:
    graphs = random_graphs()
    model = PathNN(ATOMS, 20, 1, collection="ap", k=2, edge_channels=BONDS, phi="mlp").eval()
    predict = CudaGraphForward(model, graphs, capacity=largest_shape(graphs, 4))
    with torch.inference_mode():
        value = predict(torch.arange(4))
        with interpreted.off():
            assert difference(value, eager(model, graphs, torch.arange(4))) <= 1e-5


def test_features_of_graphs(interpreted: Interpreted) -> None:
    graphs = replace(random_graphs(), graph_attr=torch.rand(NUMBER, 3))
    assert graphs.graph_attr is not None
    model = PathNN(ATOMS, 20, 1, collection="ap", k=2, edge_channels=BONDS, phi="mlp", graph_channels=3)
    assert isinstance(model.graph_scale, GraphScale)
    model.graph_scale.fit(graphs.graph_attr)
    assert can_be_padded(model, graphs.edge_index)
    step = CudaGraphStep(copy.deepcopy(model), graphs, nn.L1Loss(), capacity=largest_shape(graphs, 4))
    assert_same_step(model, graphs, step, interpreted)


@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_graphs_with_loops_are_not_captured(name: Any, interpreted: Interpreted) -> None:
    graphs = random_graphs()
    graphs = replace(graphs, edge_index=graphs.edge_index.clone())
    graphs.edge_index[:, 0] = 0
    model = Baseline(name, ATOMS, 16, 1, edge_channels=BONDS)
    assert can_be_padded(Baseline("gin", ATOMS, 16, 1, edge_channels=BONDS), graphs.edge_index)
    assert not can_be_padded(model, graphs.edge_index)
