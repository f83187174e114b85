"""Runs that are trained together are the runs that they would be alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from engine_tasks import tiny_task
from pathnn.data import task_from_graphs
from pathnn.nn import PathNN
from pathnn.nn.stack import Stack
from pathnn.paths.options import Collection
from pathnn.training import RunConfig, RunStoppedError, build_model, make_loaders, run
from pathnn.training import together as together_module
from pathnn.training.cuda_graphs.padded_batch import PaddedShape, graph_sizes
from pathnn.training.scoring import apply
from pathnn.training.stacked_steps import StackedAdam, StackedSteps, plan_of
from pathnn.training.together import TogetherError, run_together

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture(autouse=True)
def _triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHNN_TRITON", "1")


def config_of(
    seed: int, *, collection: Collection = "sp", k: int = 2, epochs: int = 3, dropout: float = 0.0
) -> RunConfig:
    return RunConfig(
        data="tiny", preset="nci1", collection=collection, k=k, batch_size=8, device="cuda", seed=seed, epochs=epochs,
        options={"hidden_channels": 16, "dropout": dropout, "in_channels": 3, "out_channels": 2},
    )  # fmt: skip


@pytest.mark.parametrize(("collection", "k"), [("sp", 2), ("sp+", 3), ("ap", 3), ("sp", 1)])
def test_each_network_has_the_gradients_that_it_has_alone(collection: Collection, k: int) -> None:
    task, configs = tiny_task(40, classes=True), [config_of(seed, collection=collection, k=k) for seed in range(3)]
    models = [build_model(config, task).cuda() for config in configs]
    loaders = make_loaders(task, configs[0], models[0], device="cuda")
    graphs, loss = loaders.train.graphs, nn.CrossEntropyLoss(reduction="none")
    stack = Stack([model for model in models if isinstance(model, PathNN)])
    first, adam = models[0], StackedAdam(stack, weight_decay=0.0)
    assert isinstance(first, PathNN)
    capacity = PaddedShape.typical(graphs, 8, margin=5.0)
    steps = StackedSteps(first, stack, adam, graphs, loss, capacity=capacity)
    batches = [torch.arange(8), torch.arange(10, 17), torch.arange(20, 28)]  # the second has one graph less
    plan = plan_of([[batch] for batch in batches], graph_sizes(graphs), 8)[0].cuda()
    steps.step(plan, torch.zeros(3, 3, device="cuda"))  # nobody changes its weights
    found = stack.views(stack.grad)
    for i, (model, batch) in enumerate(zip(models, batches, strict=True)):
        model.train()
        values = loss(apply(model, loaders.train.batch(batch)), graphs.y[batch.cuda()])  # type: ignore[index]
        values.mean().backward()
        assert float(steps.total[i]) == pytest.approx(float(values.detach().sum()), rel=1e-4)
        ours = torch.cat([found[name][i].flatten() for name, _ in model.named_parameters()])
        theirs = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        assert float((ours - theirs).norm() / theirs.norm()) <= 1e-4
        for name, buffer in model.named_buffers():
            if name in stack.statistics:
                torch.testing.assert_close(stack.statistics[name][i], buffer, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gin", "gcn", "graphsage", "mlp"])
def test_baselines_are_trained_together_as_alone(name: str, tmp_path: Path) -> None:
    task = tiny_task(60, classes=True)
    options = {"hidden_channels": 16, "num_layers": 3}
    configs = [replace(config_of(seed), model=name, preset=None, options=options) for seed in range(3)]
    list(run_together(configs, [tmp_path / f"together{i}" for i in range(3)], task=task))
    for i, config in enumerate(configs):
        run(config, tmp_path / f"alone{i}", task=task)
        losses = [[epoch["train_loss"] for epoch in metrics(tmp_path / f"{how}{i}")] for how in ("together", "alone")]
        assert losses[0] == pytest.approx(losses[1], rel=2e-3)


@pytest.mark.parametrize("name", ["gin", "gcn", "mlp"])
def test_baselines_on_molecules_are_trained_together_as_alone(name: str, tmp_path: Path) -> None:
    task = tiny_task(60)
    graphs = task.graphs
    atoms, bonds = torch.randint(0, 7, (graphs.num_nodes, 2)), torch.randint(0, 3, (graphs.num_edges, 1))
    task = task_from_graphs(replace(graphs, x=atoms, edge_attr=bonds), name="tiny")
    options = {"hidden_channels": 16, "num_layers": 3, "readout": "mean"}
    plateau = {"plateau_factor": 0.5, "plateau_patience": 0, "epochs": 6}
    configs = [replace(config_of(seed), model=name, preset=None, options=options, **plateau) for seed in range(3)]
    list(run_together(configs, [tmp_path / f"together{i}" for i in range(3)], task=task))
    for i, config in enumerate(configs):
        run(config, tmp_path / f"alone{i}", task=task)
        for key in ("train_loss", "val_score", "lr"):
            values = [[epoch[key] for epoch in metrics(tmp_path / f"{how}{i}")] for how in ("together", "alone")]
            assert values[0] == pytest.approx(values[1], rel=5e-3)


def metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_runs_together_are_the_runs_alone(tmp_path: Path) -> None:
    task, configs = tiny_task(60, classes=True), [config_of(seed) for seed in range(3)]
    found = dict(run_together(configs, [tmp_path / f"together{i}" for i in range(3)], task=task))
    for i, config in enumerate(configs):
        alone = run(config, tmp_path / f"alone{i}", task=task)
        result = found[i]
        assert isinstance(result, dict)
        assert (result["epochs"], result["together"], alone["together"]) == (alone["epochs"], 3, 1)
        ours, theirs = metrics(tmp_path / f"together{i}"), metrics(tmp_path / f"alone{i}")
        for name in ("train_loss", "lr"):
            values = [[epoch[name] for epoch in epochs] for epochs in (ours, theirs)]
            assert values[0] == pytest.approx(values[1], rel=2e-3)


def test_runs_that_were_stopped_go_on_together_or_alone(tmp_path: Path) -> None:
    task, configs = tiny_task(60, classes=True), [config_of(seed, epochs=4) for seed in range(3)]
    whole = [tmp_path / f"whole{i}" for i in range(3)]
    parts = [tmp_path / f"parts{i}" for i in range(3)]
    list(run_together(configs, whole, task=task))
    asked = iter([False, True])
    with pytest.raises(RunStoppedError, match="3 runs were stopped"):
        list(run_together(configs, parts, task=task, stop=lambda: next(asked)))
    run(configs[2], parts[2], task=task, resume=True)
    assert sorted(number for number, _ in run_together(configs, parts, task=task)) == [0, 1, 2]
    for i in range(3):
        losses = [[epoch["train_loss"] for epoch in metrics(folder[i])] for folder in (whole, parts)]
        assert losses[0] == pytest.approx(losses[1], rel=0 if i < 2 else 2e-3)


def test_one_run_that_diverges_does_not_disturb_the_others(tmp_path: Path) -> None:
    task, configs = tiny_task(60, classes=True), [config_of(seed, collection="ap", k=3) for seed in range(2)]
    expected = dict(run_together(configs, [tmp_path / "a0", tmp_path / "a1"], task=task))
    wrong = replace(configs[1], seed=7)
    run(replace(wrong, epochs=1), tmp_path / "b1", task=task)
    from pathnn.training.checkpoint import load_state, save_state

    state = load_state(tmp_path / "b1" / "last.ckpt")
    state["model"]["head.linear2.bias"] += float("nan")
    save_state(tmp_path / "b1" / "last.ckpt", state, config=wrong)
    (tmp_path / "b1" / "result.json").unlink()
    found = dict(run_together([configs[0], wrong], [tmp_path / "b0", tmp_path / "b1"], task=task))
    assert "not a finite number" in str(found[1])
    first, second = found[0], expected[0]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["val_score"] == second["val_score"]
    losses = [[epoch["train_loss"] for epoch in metrics(tmp_path / name)] for name in ("a0", "b0")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_each_network_has_its_own_dropout(tmp_path: Path) -> None:
    task, configs = tiny_task(60, classes=True), [config_of(0), config_of(0, dropout=0.5), config_of(0, dropout=0.9)]
    folders = [tmp_path / str(i) for i in range(3)]
    list(run_together(configs, folders, task=task))
    run(configs[0], tmp_path / "alone", task=task)
    losses = [[epoch["train_loss"] for epoch in metrics(folder)] for folder in [*folders, tmp_path / "alone"]]
    assert losses[0] == pytest.approx(losses[3], rel=2e-3)
    assert losses[0][0] != pytest.approx(losses[1][0], rel=1e-2)
    assert losses[1][0] != pytest.approx(losses[2][0], rel=1e-2)


def test_where_memory_is_short_some_wait_for_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together_module, "most_together", lambda run: 2)
    task, configs = tiny_task(60, classes=True), [config_of(seed) for seed in range(3)]
    epochs: list[int] = []
    found = dict(
        run_together(
            configs, [tmp_path / str(i) for i in range(3)], task=task, report=lambda number, _: epochs.append(number)
        )
    )
    assert epochs == [0, 1] * 3 + [2] * 3
    assert [result["together"] for result in found.values() if isinstance(result, dict)] == [2, 2, 1]


def test_runs_that_differ_in_more_are_refused(tmp_path: Path) -> None:
    configs = [config_of(0), config_of(1, k=3)]
    with pytest.raises(TogetherError, match="more than fold, seed and dropout"):
        list(run_together(configs, [tmp_path / "a", tmp_path / "b"], task=tiny_task(40, classes=True)))
