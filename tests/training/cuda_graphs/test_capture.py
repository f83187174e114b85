"""A step as a CUDA graph is the same step: same loss, gradients and statistics as operation by operation."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from engine_tasks import largest_shape
from pathnn.data.packed import PackedGraphs
from pathnn.nn import PathNN
from pathnn.training.cuda_graphs.capture import CudaGraphForward, CudaGraphStep
from pathnn.training.cuda_graphs.padded_batch import PaddedBatches

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
ATOMS = (9, 5, 150)


@pytest.fixture(autouse=True)
def _triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHNN_TRITON", "1")


def random_graphs(
    number: int, *, extend: bool = False, kinds: tuple[int, ...] = (4,), complete: int = 0
) -> PackedGraphs:
    torch.manual_seed(0)
    nodes = torch.randint(1, 12, (number,)).tolist()
    nodes[:complete] = [16] * complete
    chance = [1.1] * complete + [0.35] * (number - complete)
    pairs = [torch.triu(torch.rand(n, n) < p, 1).nonzero().t() for n, p in zip(nodes, chance, strict=True)]
    graphs = PackedGraphs.from_edges([torch.cat([e, e.flip(0)], dim=1) for e in pairs], nodes)
    graphs = replace(
        graphs,
        x=torch.stack([torch.randint(0, size, (graphs.num_nodes,)) for size in ATOMS], dim=1),
        edge_attr=torch.stack([torch.randint(0, kind, (graphs.num_edges,)) for kind in kinds], dim=1),
        y=torch.randn(number, 1),
    )
    return graphs.with_paths(collection="ap", k=3, extend=extend).to("cuda")


def model_for(*, extend: bool = False, kinds: tuple[int, ...] = (4,)) -> PathNN:
    torch.manual_seed(1)
    return PathNN(ATOMS, 24, 1, collection="ap", k=3, edge_channels=kinds, phi="mlp", extend=extend).cuda()


def eager(model: PathNN, graphs: PackedGraphs, index: Tensor) -> Tensor:
    batch = graphs.select(index)
    assert batch.x is not None
    out: Tensor = model(
        batch.x, trie=batch.trie, batch=batch.batch, edge_attr=batch.edge_attr, batch_size=batch.num_graphs
    )
    return out


def difference(value: Tensor, truth: Tensor) -> float:
    return float((value - truth).norm() / truth.norm().clamp(min=1e-3))


@pytest.mark.parametrize("extend", [False, True])
@pytest.mark.parametrize("kinds", [(4,), (5, 6, 2), (300,)])
@pytest.mark.parametrize(("complete", "recompute"), [(0, True), (3, False)])
def test_step_is_the_same_step(extend: bool, kinds: tuple[int, ...], complete: int, recompute: bool) -> None:
    graphs = random_graphs(64, extend=extend, kinds=kinds, complete=complete)
    model = model_for(extend=extend, kinds=kinds)
    twin, loss = copy.deepcopy(model), nn.L1Loss()
    step = CudaGraphStep(twin, graphs, loss, capacity=largest_shape(graphs, 16), recompute=recompute)
    assert isinstance(step.batches, PaddedBatches)
    assert (step.batches.parts > 1) == (complete > 0)
    done = 0
    for index in torch.randperm(64).split(16):
        if not step.fits(index):
            continue
        value = step(index)
        model.zero_grad()
        truth = loss(eager(model, graphs, index), graphs.select(index).y)
        truth.backward()
        assert difference(value, truth.detach()) <= 1e-5
        for ours, theirs in zip(twin.parameters(), model.parameters(), strict=True):
            assert ours.grad is not None
            assert theirs.grad is not None
            assert difference(ours.grad, theirs.grad) <= 1e-3
        for ours_buffer, theirs_buffer in zip(twin.buffers(), model.buffers(), strict=True):
            assert difference(ours_buffer.float(), theirs_buffer.float()) <= 1e-4
        done += 1
    assert done >= 2


def test_prediction_is_the_same_prediction() -> None:
    graphs, model = random_graphs(64), model_for()
    predict = CudaGraphForward(model, graphs, capacity=largest_shape(graphs, 16))
    fitting = [index for index in torch.randperm(64).split(16) if predict.fits(index)]
    assert len(fitting) >= 3
    for index in fitting:
        with torch.inference_mode():
            assert difference(predict(index), eager(model.eval(), graphs, index)) <= 1e-5


def trained() -> list[Tensor]:
    graphs, model = random_graphs(64), model_for()
    step = CudaGraphStep(model, graphs, nn.L1Loss(), capacity=largest_shape(graphs, 16))
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    fitting = [index for index in torch.arange(64).split(16) if step.fits(index)]
    assert len(fitting) >= 3
    for index in fitting * 5:
        step(index)
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def test_the_same_seed_gives_the_same_bits() -> None:
    assert all(torch.equal(a, b) for a, b in zip(trained(), trained(), strict=True))


def test_a_batch_that_does_not_fit_is_refused() -> None:
    graphs, model = random_graphs(64), model_for()
    step = CudaGraphStep(model, graphs, nn.L1Loss(), capacity=largest_shape(graphs, 16))
    assert not step.fits(torch.arange(15))
    with pytest.raises(ValueError, match="fits"):
        step(torch.arange(15))


def test_no_step_waits_for_the_gpu() -> None:
    graphs, model = random_graphs(64), model_for()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    step = CudaGraphStep(model, graphs, nn.L1Loss(), capacity=largest_shape(graphs, 16))
    batches = [index for index in torch.arange(64).split(16) if step.fits(index)]
    assert batches
    step(batches[0])
    optimizer.step()  # makes its state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "a prototype feature"
        torch.cuda.set_sync_debug_mode("error")
        try:
            for index in batches:
                step(index)
                optimizer.step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
