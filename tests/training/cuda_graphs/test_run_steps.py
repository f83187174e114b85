"""Training on a GPU goes through CUDA graphs, gives what it gives without them, and gives it again."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from engine_tasks import largest_shape, one_thread as one_thread, random_graph, tiny_config, tiny_task
from pathnn.data import Task, task_from_graphs
from pathnn.data.packed import PackedGraphs
from pathnn.nn import PathLSTM
from pathnn.nn.baselines import BaselineName
from pathnn.nn.cuda_graphs.padded_copies import PaddedShape
from pathnn.paths.extract import extract_paths
from pathnn.training import RunConfig, TrainState, build_model, fabric_for, make_loaders, run, train
from pathnn.training.cuda_graphs import run_steps
from pathnn.training.cuda_graphs.capture import CudaGraphStep
from pathnn.training.cuda_graphs.padded_batch import graph_sizes
from pathnn.training.cuda_graphs.run_steps import CudaGraphStepper
from pathnn.training.loop import make_stepper
from pathnn.training.scoring import apply

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
EDGES = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])


def trained(
    config: RunConfig, *, task: Task | None = None, graphs: bool = True, monkeypatch: Any = None
) -> tuple[list[float], dict[str, Tensor]]:
    """Losses and scores of each epoch, and the weights after the last."""
    task = tiny_task(60) if task is None else task
    model = build_model(config, task)
    fabric = fabric_for(config)
    loaders = make_loaders(task, config, model, device=fabric.device)
    state = TrainState.start(model, config, fabric, maximize=task.maximize)
    assert isinstance(make_stepper(state, loaders, config), CudaGraphStepper)
    if not graphs:
        monkeypatch.setattr(run_steps, "can_be_captured", lambda *_: False)
    epochs = [value for e in train(model, loaders, config, state=state) for value in (e.train_loss, e.val_loss)]
    return epochs, state.weights()


def config_of(**changes: Any) -> RunConfig:
    return tiny_config(device="cuda", options={"hidden_channels": 16, "dropout": 0.0}, epochs=2, **changes)


def task_of(kind: str) -> Task:
    """The tiny task with classes, yes-or-no targets, several (some of them not known), edge features, or double
    features."""
    task = tiny_task(60, classes=kind == "classes")
    graphs, generator = task.graphs, torch.Generator().manual_seed(1)
    y = graphs.y
    assert y is not None
    assert graphs.x is not None
    if kind in ("binary", "multilabel", "partly known"):
        y = torch.rand(60, 1 if kind == "binary" else 3, generator=generator).round()
    if kind == "partly known":
        y[::2, 0] = y[1::3, 1] = torch.nan
    edges = torch.randn(graphs.num_edges, 2, generator=generator) if kind == "edges" else None
    x = graphs.x.double() if kind == "double" else graphs.x
    return task_from_graphs(replace(graphs, x=x, y=y, edge_attr=edges), name="tiny")


KINDS = ["classes", "binary", "multilabel", "partly known", "edges", "double", "standardized", "sp"]


@pytest.mark.filterwarnings("ignore:No positive samples")  # the few graphs of the validation set may all lack a label
@pytest.mark.parametrize("kind", KINDS)
def test_graphs_give_what_single_operations_give(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: Any = {"standardized": {"standardize": True}, "sp": {"collection": "sp"}}.get(kind, {})
    config, task = config_of(**changes), task_of(kind)
    with_graphs, _ = trained(config, task=task)
    without, _ = trained(config, task=task, graphs=False, monkeypatch=monkeypatch)
    torch.testing.assert_close(torch.tensor(with_graphs), torch.tensor(without), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kind", ["classes", "edges"])
@pytest.mark.parametrize("name", get_args(BaselineName))
def test_baselines_have_graphs_too(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(config_of(), model=name, options={"hidden_channels": 16, "num_layers": 3})
    with_graphs, _ = trained(config, task=task_of(kind))
    without, _ = trained(config, task=task_of(kind), graphs=False, monkeypatch=monkeypatch)
    ours, theirs = torch.tensor(with_graphs), torch.tensor(without)
    torch.testing.assert_close(ours[::2], theirs[::2], rtol=2e-3, atol=2e-3)
    # A bias before BatchNorm has no gradient but rounding, whose sign Adam follows: it shows in evaluation alone.
    torch.testing.assert_close(ours[1::2], theirs[1::2], rtol=5e-2, atol=5e-2)


PLUS: dict[str, Any] = {"hidden_channels": 16, "num_layers": 2, "walk_length": 5, "dropout": 0.0}
VARIANTS: dict[str, dict[str, Any]] = {
    "pathnn+": {}, "control": {"read_paths": False}, "virtual node": {"virtual_node": True, "activation": "gelu"},
    "no messages": {"message_passing": False}, "prefixes": {"prefixes": True},
}  # fmt: skip


@pytest.mark.parametrize("ema", [None, 0.9])
@pytest.mark.parametrize("variant", VARIANTS)
def test_pathnn_plus_has_graphs_too(variant: str, ema: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a moving average, the captured predictions are those of the averaged model."""
    common: Any = {"model": "pathnn+", "ema": ema, "optimizer": "adamw", "schedule": "cosine", "warmup": 1}
    config = replace(config_of(), options={**PLUS, **VARIANTS[variant]}, **common)
    with_graphs, _ = trained(config, task=task_of("edges"))
    without, _ = trained(config, task=task_of("edges"), graphs=False, monkeypatch=monkeypatch)
    ours, theirs = torch.tensor(with_graphs), torch.tensor(without)
    torch.testing.assert_close(ours[::2], theirs[::2], rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(ours[1::2], theirs[1::2], rtol=5e-2, atol=5e-2)  # as for baselines


@pytest.mark.parametrize("name", get_args(BaselineName))
def test_the_step_of_a_baseline_is_the_same_step(name: str) -> None:
    config = replace(config_of(), model=name, options={"hidden_channels": 16, "num_layers": 3})
    task = task_of("edges")
    model = build_model(config, task).cuda()
    loaders = make_loaders(task, config, model, device="cuda")
    graphs, index, loss = loaders.train.graphs, loaders.train.index[:8], torch.nn.L1Loss()
    capacity = largest_shape(graphs, 8, paths=False)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    value = CudaGraphStep(model, graphs, loss, capacity=capacity)(index)
    grads = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).clone()
    after = {key: value.clone() for key, value in model.named_buffers()}
    model.load_state_dict(before)
    model.zero_grad()
    truth = loss(apply(model.train(), loaders.train.batch(index)), graphs.y[index.cuda()])  # type: ignore[index]
    truth.backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    assert float(value) == pytest.approx(float(truth.detach()), rel=1e-5)
    assert float((grads - expected).norm() / expected.norm()) <= 1e-4
    for key, buffer in model.named_buffers():
        torch.testing.assert_close(after[key], buffer, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_same_seed_gives_the_same_bits(dropout: float) -> None:
    config = tiny_config(device="cuda", options={"hidden_channels": 16, "dropout": dropout}, epochs=2)
    (losses, weights), (again, others) = trained(config), trained(config)
    assert losses == again
    assert all(torch.equal(weights[name], others[name]) for name in weights)


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = run(tiny_config(device="cuda", epochs=4), tmp_path / "whole", task=tiny_task())
    run(tiny_config(device="cuda", epochs=2), tmp_path / "parts", task=tiny_task())
    parts = run(tiny_config(device="cuda", epochs=4), tmp_path / "parts", task=tiny_task(), resume=True)
    assert parts["val_score"] == whole["val_score"]
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(("precision", "tolerance"), [("tf32", 0.02), ("bf16-mixed", 0.1)])
def test_less_precision_gives_about_the_same(precision: Any, tolerance: float) -> None:
    exact, _ = trained(config_of())
    about, _ = trained(config_of(precision=precision))
    torch.testing.assert_close(torch.tensor(about), torch.tensor(exact), rtol=tolerance, atol=tolerance)


def test_batches_that_fit_no_graph_are_trained_on_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = trained(config_of())
    small = lambda sizes, number: [PaddedShape.holding((sizes.double().mean(dim=0) * number).long(), number)]  # noqa: E731
    monkeypatch.setattr(PaddedShape, "shapes", small)  # holds about half of the batches
    values, _ = trained(config_of())
    torch.testing.assert_close(torch.tensor(values), torch.tensor(expected), rtol=2e-3, atol=2e-3)


def test_gradients_of_some_inputs_do_not_disturb_those_of_the_weights() -> None:
    trie = extract_paths(EDGES, 4, collection="ap", k=2, distances=True).to("cuda").length(2)
    lstm = PathLSTM(16, distances=3).cuda()
    h = torch.randn(4, 16, device="cuda", requires_grad=True)
    out = lstm(h, trie).square().sum()
    torch.autograd.grad(out, h, retain_graph=True)
    first = torch.autograd.grad(out, list(lstm.parameters()), retain_graph=True)
    again = torch.autograd.grad(out, list(lstm.parameters()))
    fresh = torch.autograd.grad(lstm(h, trie).square().sum(), list(lstm.parameters()))
    for a, b, c in zip(first, again, fresh, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)
        assert bool(a.abs().sum() > 0)


def larger_task(number: int) -> Task:
    """Random graphs of 5 to 30 vertices: their batches take megabytes."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(5, 31, (number,), generator=generator).tolist()
    graphs = PackedGraphs.from_edges([random_graph(size, generator) for size in sizes], sizes)
    x, y = torch.randn(graphs.num_nodes, 3, generator=generator), torch.randn(number, 1, generator=generator)
    return task_from_graphs(replace(graphs, x=x, y=y), name="larger")


def release_memory() -> None:
    gc.collect()
    torch.cuda.empty_cache()


def test_several_shapes_take_little_more_memory_than_the_largest() -> None:
    """Batches come in any order of size, the smallest first here."""
    options = {"hidden_channels": 128, "dropout": 0.5}
    task, config = larger_task(400), replace(config_of(batch_size=32, collection="ap", k=3), options=options)
    sizes, used = [], []
    for largest_only in (True, False):
        model = build_model(config, task).cuda()
        loaders = make_loaders(task, config, model, device="cuda")
        state = TrainState.start(model, config, fabric_for(config), maximize=task.maximize)
        graphed = make_stepper(state, loaders, config)
        assert isinstance(graphed, CudaGraphStepper)
        amounts = graph_sizes(loaders.train.graphs)
        batches = [index for epoch in range(4) for index in loaders.train.indices(epoch) if index.numel() == 32]
        batches.sort(key=lambda index: int(amounts[index].sum()), reverse=largest_only)
        release_memory()
        before = torch.cuda.memory_reserved()
        for index in batches[:1] if largest_only else batches:
            graphed.train_step(index, 1.0)
        release_memory()
        sizes.append(len(graphed._steps))
        used.append(torch.cuda.memory_reserved() - before)
        del graphed, state, loaders, model
        release_memory()
    assert sizes[1] >= 3
    assert sizes[0] <= 2
    assert used[1] <= 1.5 * used[0]
