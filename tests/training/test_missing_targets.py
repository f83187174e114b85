"""Training and scoring where some targets are not known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine_tasks import one_thread as one_thread, partly_known_task, tiny_config, tiny_task
from pathnn.data import task_from_graphs
from pathnn.data.task import TargetScale, with_metric
from pathnn.inference import score
from pathnn.training import RunError, TrainState, build_model, fabric_for, load_model, make_loaders, run
from pathnn.training.ensemble import Ensemble, predict, score_ensemble
from pathnn.training.errors import NotFiniteError
from pathnn.training.loop import Stepper, train_epoch

nan = torch.nan


def test_a_step_learns_from_what_is_known_only():
    """One batch by hand: the gradients of the mean over the known targets, each written as a term."""
    task, config = partly_known_task(), tiny_config(batch_size=100, options={"hidden_channels": 8, "dropout": 0.0})
    model, fabric = build_model(config, task), fabric_for(config)
    loaders = make_loaders(task, config, model, device="cpu")
    state = TrainState.start(model, config, fabric, maximize=task.maximize)
    split, y = task.splits[0], task.graphs.y
    assert y is not None
    batch = loaders.train.batch(split.train)
    out = model.train()(batch.x, trie=batch.trie, batch=batch.batch)
    terms = [(out[i, j] - y[g, j]).abs() for i, g in enumerate(split.train) for j in range(2) if not y[g, j].isnan()]
    mean = torch.stack(terms).mean()
    expected = torch.autograd.grad(mean, list(model.parameters()), allow_unused=True)
    loss = train_epoch(state, loaders, config, Stepper(state, loaders))
    assert loss == pytest.approx(float(mean.detach()), rel=1e-5)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        if gradient is not None:
            torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_a_run_and_the_scores_of_each_target(tmp_path: Path):
    task, config = partly_known_task(40), tiny_config(standardize=True)
    result = run(config, tmp_path / "run", task=task)
    trained = load_model(tmp_path / "run" / "model.safetensors")
    test = task.splits[0].test
    found = score_ensemble(Ensemble((trained,)), task, test)
    assert task.graphs.y is not None
    out, y = predict(trained, task, test), trained.signature.target_scale.encode(task.graphs.y[test])
    known = ~y.isnan()
    assert found.together.loss == pytest.approx(float((out - y)[known].abs().mean()), rel=1e-5)
    assert found.together.score == pytest.approx(result["test_score"], rel=1e-5)
    assert len(found.together.targets) == 2
    assert [*result["targets"]] == ["test", "val"]
    assert result["targets"]["test"] == pytest.approx(found.together.targets, rel=1e-5)
    assert sum(found.together.targets.values()) / 2 == pytest.approx(found.together.score, rel=1e-5)
    full = replace(task.graphs, y=torch.ones(40, 2))
    assert score(trained, task_from_graphs(full, name="tiny", kind="regression"), test).score > 0


def test_the_scale_passes_over_what_is_not_known():
    y = torch.tensor([[1.0, nan], [3.0, 5.0], [nan, 9.0]])
    scale = TargetScale.of(y)
    assert (scale.mean, scale.std) == ((2.0, 7.0), (1.0, 2.0))
    assert bool(scale.encode(y).isnan().eq(y.isnan()).all())


def test_a_target_that_no_training_graph_has_is_refused(tmp_path: Path):
    task = partly_known_task()
    y = task.graphs.y
    assert y is not None
    y[task.splits[0].train, 1] = nan
    y[:, 0] = torch.arange(24.0)
    with pytest.raises(RunError, match=r"'twice' .* is not known for any of the"):
        run(tiny_config(), tmp_path / "run", task=task)


@pytest.mark.parametrize("row", [[nan, nan], [torch.inf, nan]])
def test_a_graph_without_targets_or_with_an_infinite_one_is_named(row: list[float], tmp_path: Path):
    task = partly_known_task()
    assert task.graphs.y is not None
    task.graphs.y[7] = torch.tensor(row)
    with pytest.raises(NotFiniteError, match="targets of graph 7"):
        run(tiny_config(), tmp_path / "run", task=task)


def test_graphs_without_targets_can_be_predicted(tmp_path: Path):
    task = partly_known_task()
    run(tiny_config(epochs=1), tmp_path / "run", task=task)
    trained = load_model(tmp_path / "run" / "model.safetensors")
    unknown = task_from_graphs(replace(task.graphs, y=torch.full((24, 2), nan)), kind="regression")
    torch.testing.assert_close(predict(trained, unknown), predict(trained, task))
    with pytest.raises(NotFiniteError, match="targets of graph 0 of own"):
        score(trained, unknown)


@pytest.mark.parametrize("metric", ["ap", "roc-auc"])
def test_a_metric_that_is_not_defined_in_validation_is_refused(metric: str, tmp_path: Path):
    task = tiny_task()
    y = torch.ones(24, 2)
    y[::2] = 0
    y[task.splits[0].val] = 0
    y[3, 0] = nan
    task = task_from_graphs(replace(task.graphs, y=y), name="tiny")
    title = {"ap": "AP", "roc-auc": "ROC-AUC"}[metric]
    with pytest.raises(RunError, match=f"{title} is not defined for any target of the 2 validation graphs of tiny"):
        run(tiny_config(metric=metric), tmp_path / "run", task=task)


def test_a_run_goes_on_with_its_metric_by_name_or_not(tmp_path: Path):
    task = partly_known_task()
    run(tiny_config(epochs=1, metric="mae"), tmp_path / "run", task=task)
    run(tiny_config(epochs=2), tmp_path / "run", task=task, resume=True)
    assert run(tiny_config(metric="mae"), tmp_path / "run", task=task, resume=True)["epochs"] == 3
    with pytest.raises(RunError, match="cannot be resumed with metric='rmse'"):
        run(tiny_config(metric="rmse"), tmp_path / "run", task=task, resume=True)


def test_known_targets_that_are_all_the_same_teach_nothing(tmp_path: Path):
    y = torch.ones(24, 2)
    y[::2, 0] = y[1::2, 1] = nan
    task = task_from_graphs(replace(tiny_task().graphs, y=y), name="tiny")
    with pytest.raises(RunError, match="are the same"):
        run(tiny_config(), tmp_path / "run", task=task)


@pytest.mark.parametrize("told_by", ["the config", "the task"])
def test_a_model_is_measured_by_the_metric_of_its_training(told_by: str, tmp_path: Path):
    task, by_rmse = tiny_task(), told_by == "the config"
    config = tiny_config(metric="rmse" if by_rmse else None)
    result = run(config, tmp_path / "run", task=task if by_rmse else with_metric(task, "rmse"))
    trained, test = load_model(tmp_path / "run" / "model.safetensors"), task.splits[0].test
    assert task.graphs.y is not None
    error = predict(trained, task, test) - task.graphs.y[test]
    assert score(trained, task, test).score == pytest.approx(float(error.square().mean().sqrt()), rel=1e-5)
    assert score(trained, task, test).score == pytest.approx(result["test_score"], rel=1e-5)
    assert score_ensemble(Ensemble((trained,)), task, test).metric == "RMSE"
    assert score(trained, task, test, metric="mae").score == pytest.approx(float(error.abs().mean()), rel=1e-5)
    together = score_ensemble(Ensemble((trained,)), task, test, metric="mae").together
    assert together.score == pytest.approx(float(error.abs().mean()), rel=1e-5)


def test_a_model_of_the_default_metric_is_measured_by_it(tmp_path: Path):
    task = tiny_task()
    result = run(tiny_config(metric="mae"), tmp_path / "run", task=task)
    trained, test = load_model(tmp_path / "run" / "model.safetensors"), task.splits[0].test
    assert score(trained, with_metric(task, "rmse"), test).score == pytest.approx(result["test_score"], rel=1e-5)
