"""The loop: when it stops, which epoch is best, what it measures."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, strategies as st

from engine_tasks import one_thread as one_thread, partly_known_task, tiny_config, tiny_task
from pathnn.data import task_from_graphs
from pathnn.data.task import TargetScale
from pathnn.nn import paper_config
from pathnn.training import (
    MismatchError,
    RunConfig,
    RunError,
    TrainState,
    build_model,
    evaluate,
    fabric_for,
    loop,
    make_loaders,
    model_outputs,
    train,
)
from pathnn.training.checkpoint import TaskSignature
from pathnn.training.loop import Stepper, _mean_loss
from pathnn.training.recipes import RUNS, exp, paper_run, peptides_func, zinc
from pathnn.training.scoring import Evaluation, apply
from pathnn.training.setup import own_share


def start(config: RunConfig, task=None):
    task = tiny_task() if task is None else task
    model = build_model(config, task)
    loaders = make_loaders(task, config, model, device="cpu")
    state = TrainState.start(model, config, fabric_for(config), maximize=task.maximize)
    return model, loaders, state


def with_scores(monkeypatch, scores: list[float]) -> None:
    """Let the validation scores be these; the test score is 100 times the validation score of its epoch."""
    said = iter(scores)
    now: list[float] = []

    def validate(*_, **options):
        now.append(next(said))
        return Evaluation(0.0, now[-1], 1)

    monkeypatch.setattr(loop, "validate", validate)
    monkeypatch.setattr(loop, "evaluate", lambda *_, **options: Evaluation(0.0, now[-1] * 100, 1))


def test_ties_go_to_the_later_epoch(monkeypatch):
    with_scores(monkeypatch, [0.5, 0.3, 0.3, 0.4])
    config = tiny_config(epochs=4)
    model, loaders, state = start(config)
    epochs = list(train(model, loaders, config, state=state))
    assert [epoch.best for epoch in epochs] == [True, True, True, False]
    assert [epoch.test_score for epoch in epochs] == [50.0, 30.0, 30.0, None]
    assert (state.best.epoch, state.best.val_score, state.best.test_score) == (3, 0.3, 30.0)


def test_the_test_score_does_not_choose_the_epoch(monkeypatch):
    """The better the validation score, the worse the test score."""
    val = iter([0.5, 0.3, 0.4, 0.2])
    test = iter([1.0, 2.0, 3.0])

    monkeypatch.setattr(loop, "validate", lambda *_, **options: Evaluation(0.0, next(val), 1))
    monkeypatch.setattr(loop, "evaluate", lambda *_, **options: Evaluation(0.0, next(test), 1))
    config = tiny_config(epochs=4)
    model, loaders, state = start(config)
    epochs = list(train(model, loaders, config, state=state))
    assert [epoch.best for epoch in epochs] == [True, True, False, True]
    assert (state.best.epoch, state.best.val_score, state.best.test_score) == (4, 0.2, 3.0)
    for name, weight in model.state_dict().items():
        assert torch.equal(state.best.weights[name].cpu(), weight.cpu()), "the weights are those of that epoch"


@pytest.mark.parametrize(
    ("changes", "scores", "epochs", "reason"),
    [
        ({"patience": 2}, [0.5, 0.4, 0.6, 0.7, 0.1], 4, "2 epochs without"),
        ({"stop_at": 0.2}, [0.5, 0.2, 0.1], 2, "reached 0.2"),
        ({"min_lr": 3e-4, "plateau_factor": 0.5, "plateau_patience": 0}, [0.5, 0.6, 0.7, 0.1], 3, "learning rate"),
        ({"min_lr": 2.5e-4, "plateau_factor": 0.5, "plateau_patience": 0}, [0.5, 0.6, 0.7, 0.1], 3, "fell to 0.00025"),
        ({}, [0.5, 0.6, 0.7, 0.8, 0.9], 5, "5 epochs"),
    ],
)
def test_when_training_stops(monkeypatch, changes, scores, epochs, reason):
    with_scores(monkeypatch, scores)
    config = tiny_config(epochs=5, **changes)
    model, loaders, state = start(config)
    assert len(list(train(model, loaders, config, state=state))) == epochs
    assert reason in state.stop_reason(config, maximize=False)


def test_the_released_scheduler_takes_lower_for_better(monkeypatch):
    rates = {}
    for direction in ("metric", "released"):
        with_scores(monkeypatch, [0.1, 0.2, 0.3])
        changes = {"plateau_factor": 0.5, "plateau_patience": 0, "plateau_direction": direction}
        config = tiny_config(epochs=3, **changes)
        model, loaders, state = start(config, tiny_task(classes=True))
        list(train(model, loaders, config, state=state))
        rates[direction] = state.lr
    assert rates == {"metric": 1e-3, "released": 2.5e-4}


def test_an_epoch_names_the_learning_rate_it_was_trained_with(monkeypatch):
    with_scores(monkeypatch, [0.1, 0.2, 0.3])
    config = tiny_config(epochs=3, plateau_factor=0.5, plateau_patience=0)
    model, loaders, state = start(config)
    assert [epoch.lr for epoch in train(model, loaders, config, state=state)] == [1e-3, 1e-3, 5e-4]
    assert state.lr == 2.5e-4


def test_a_scheduler_goes_on_counting_where_it_was(monkeypatch):
    """Two epochs without a better score, of which the first was before the state was saved."""
    with_scores(monkeypatch, [0.1, 0.2, 0.3])
    config = tiny_config(epochs=3, plateau_factor=0.5, plateau_patience=1)
    model, loaders, state = start(config)
    next(epoch for epoch in train(model, loaders, config, state=state) if epoch.epoch == 2)
    assert state.lr == 1e-3
    other, loaders, again = start(config)
    again.load_state_dict(state.state_dict())
    assert (again.epoch, again.seconds) == (2, state.seconds)
    list(train(other, loaders, config, state=again))
    assert again.lr == 5e-4


def test_every_epoch_has_an_order_of_its_own(monkeypatch):
    seen = []

    class Recorder(Stepper):
        def train_step(self, index, share):
            seen.append(index)
            return super().train_step(index, share)

    monkeypatch.setattr(loop, "Stepper", Recorder)
    config = tiny_config(epochs=2, batch_size=5)
    model, loaders, state = start(config)
    list(train(model, loaders, config, state=state))
    first, second = torch.cat(seen[: len(seen) // 2]), torch.cat(seen[len(seen) // 2 :])
    assert torch.equal(first.sort()[0], loaders.train.index.sort()[0])
    assert torch.equal(second.sort()[0], first.sort()[0])
    assert not torch.equal(first, second)


@pytest.mark.parametrize("clip", [None, 1e-3])
def test_gradients_are_clipped_where_that_is_asked_for(clip):
    config = tiny_config(epochs=1, clip=clip)
    model, loaders, state = start(config)
    list(train(model, loaders, config, state=state))
    norm = float(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm())
    assert (norm <= 1.01e-3) == (clip is not None)


def test_the_optimizer_has_the_weight_decay_and_the_learning_rate_of_the_config():
    _, _, state = start(tiny_config(lr=0.02, weight_decay=0.003))
    (group,) = state.plain_optimizer.param_groups
    assert (group["lr"], group["weight_decay"]) == (0.02, 0.003)


def test_the_loss_of_an_epoch_is_the_mean_over_graphs():
    batches = [torch.arange(3), torch.arange(1)]
    assert _mean_loss(torch.tensor([1.0, 4.0]), batches, 1) == pytest.approx(7 / 4)


def test_the_moving_average_is_that_of_all_steps(monkeypatch):
    """By hand: weights and statistics of BatchNorm after every step."""
    steps = []

    class Recorder(Stepper):
        def train_step(self, index, share):
            steps.append(copy.deepcopy(self.state.model.state_dict()))  # after the step before
            return super().train_step(index, share)

    monkeypatch.setattr(loop, "Stepper", Recorder)
    config = tiny_config(epochs=2, ema=0.7, lr=0.05)
    model, loaders, state = start(config)
    epochs = list(train(model, loaders, config, state=state))
    steps.append(copy.deepcopy(model.state_dict()))
    expected = steps[1]
    for after in steps[2:]:
        expected = {name: 0.7 * mean + 0.3 * after[name] for name, mean in expected.items()}
    for name, found in state.evaluated.state_dict().items():
        if found.is_floating_point():
            torch.testing.assert_close(found, expected[name], msg=name)
            assert not torch.equal(found, model.state_dict()[name]) or "lstm.mask" in name, name
    found = evaluate(state.evaluated, loaders.val, loaders.task)
    assert epochs[-1].val_score == pytest.approx(found.score)
    assert found.score != pytest.approx(evaluate(model, loaders.val, loaders.task).score)


def test_adamw_decays_weights_apart_from_gradients():
    config = tiny_config(optimizer="adamw", weight_decay=0.1, epochs=1)
    model, loaders, state = start(config)
    assert type(state.plain_optimizer) is torch.optim.AdamW
    ends = [copy.deepcopy(model.state_dict())]
    for optimizer in ("adam", "adamw"):
        config = tiny_config(optimizer=optimizer, weight_decay=0.1, epochs=1)
        model, loaders, state = start(config)
        list(train(model, loaders, config, state=state))
        ends.append(model.state_dict())
    assert len({float(end["head.linear1.weight"].norm()) for end in ends}) == 3


@pytest.mark.parametrize("schedule", ["plateau", "cosine"])
def test_learning_rates_rise_and_fall(monkeypatch, schedule):
    with_scores(monkeypatch, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    config = tiny_config(epochs=6, warmup=2, schedule=schedule, lr=0.9, plateau_factor=0.5, plateau_patience=0)
    model, loaders, state = start(config)
    rates = [epoch.lr for epoch in train(model, loaders, config, state=state)]
    fall = [0.9 * (1 + math.cos(math.pi * i / 4)) / 2 for i in range(4)]
    # the first score after the warm-up is the best, and each later one is worse
    assert rates == pytest.approx([0.3, 0.6, *(fall if schedule == "cosine" else [0.9, 0.9, 0.45, 0.225])])


@pytest.mark.parametrize("name", ["l1", "mse", "huber"])
def test_the_loss_of_a_regression_is_that_of_the_config(name):
    config = tiny_config(loss=name, options={"hidden_channels": 8, "dropout": 0.0}, batch_size=100, epochs=1)
    for task in (tiny_task(), partly_known_task()):
        model, loaders, state = start(config, task)
        batch = loaders.train.batch(loaders.train.indices(0)[0])
        with torch.no_grad():
            out = apply(copy.deepcopy(model).train(), batch)
        wrong = (out - batch.y)[~batch.y.isnan()].abs()
        each = {"l1": wrong, "mse": wrong**2, "huber": torch.where(wrong < 1, wrong**2 / 2, wrong - 0.5)}[name]
        (epoch,) = train(model, loaders, config, state=state)
        assert epoch.train_loss == pytest.approx(float(each.mean()), rel=1e-5)


@pytest.mark.parametrize("kind", ["class", "binary", "multilabel"])
@pytest.mark.parametrize("precision", ["32-true", "64-true"])
def test_rare_classes_weigh_more(kind, precision):
    """By hand: the loss of a batch of all training graphs, in which classes have the same weight together."""
    base = tiny_task(80)
    density = base.graphs.y
    labels = torch.cat([density > 2.3, density > 2.1], dim=1).float()
    if kind == "multilabel":
        labels[::3, 0] = labels[1::3, 1] = torch.nan
    y = {"class": labels[:, 0].long(), "binary": labels[:, :1], "multilabel": labels}[kind]
    task = task_from_graphs(replace(base.graphs, y=y), name="tiny", kind=kind)
    config = tiny_config(class_weights=True, batch_size=100, epochs=1, precision=precision,
                         options={"hidden_channels": 8, "dropout": 0.0})  # fmt: skip
    model, loaders, state = start(config, task)
    batch = loaders.train.batch(loaders.train.indices(0)[0])
    with torch.no_grad():
        out = apply(copy.deepcopy(model).train(), batch)
    if kind == "class":
        counts = torch.bincount(batch.y, minlength=2)
        each = [-out[i].log_softmax(0)[c] * len(out) / (2 * counts[c]) for i, c in enumerate(batch.y)]
    else:
        each = []
        for logits, truth in zip(out.T, batch.y.T, strict=True):
            weight = float((truth == 0).sum() / (truth == 1).sum())
            assert weight != 1
            for logit, label in zip(logits, truth, strict=True):
                if not label.isnan():
                    chance = logit.sigmoid() if label == 1 else 1 - logit.sigmoid()
                    each.append(-chance.log() * (weight if label == 1 else 1))
    (epoch,) = train(model, loaders, config, state=state)
    assert epoch.train_loss == pytest.approx(float(sum(each) / len(each)), rel=1e-5)
    assert math.isfinite(epoch.val_loss)


def test_a_loss_is_for_regression():
    with pytest.raises(RunError, match="loss='mse' is for regression, but the target of tiny is of the kind 'class'"):
        start(tiny_config(loss="mse"), tiny_task(classes=True))


@pytest.mark.parametrize("model_name", ["pathnn", "gin", "gatedgcn", "mlp"])
def test_training_learns(model_name):
    config = tiny_config(model=model_name, epochs=15, lr=0.01, options={"hidden_channels": 8}, standardize=True)
    model, loaders, state = start(config)
    losses = [epoch.train_loss for epoch in train(model, loaders, config, state=state)]
    assert losses[-1] < 0.9 * losses[0]


def test_evaluation_is_the_plain_metric_of_all_graphs():
    config = tiny_config(batch_size=5)
    task = tiny_task(classes=True)
    model, loaders, _ = start(config, task)
    model.eval()
    index = loaders.train.index
    with torch.no_grad():
        batch = loaders.train.batch(index)
        out = apply(model, batch)
    expected = float((out.argmax(dim=1) == batch.y).float().mean()) * 100
    loader = replace_shuffle(loaders.train)
    found = evaluate(model, loader, task)
    assert found.score == pytest.approx(expected)
    assert found.loss == pytest.approx(float(torch.nn.functional.cross_entropy(out, batch.y)), rel=1e-5)
    torch.testing.assert_close(model_outputs(model, loader), out)


def replace_shuffle(loader):
    loader.shuffle = False
    return loader


def test_a_last_single_graph_is_left_out_with_batch_norm_only():
    task = tiny_task(num_graphs=21)  # 17 to train on
    for options, sizes in (
        ({"hidden_channels": 8}, [4] * 4),
        ({"hidden_channels": 8, "norm": None, "encoder_norm": False}, [4] * 4 + [1]),
    ):
        config = tiny_config(batch_size=4, options=options)
        _, loaders, _ = start(config, task)
        assert [batch.numel() for batch in loaders.train.indices(0)] == sizes


@given(st.integers(1, 5), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_shares_cover_every_batch_once(world_size, sizes):
    batches = list(torch.split(torch.arange(sum(sizes)), sizes))
    parts = [list(own_share(batches, rank, world_size)) for rank in range(world_size)]
    assert all(len(part) == len(batches) for part in parts), "every process takes part in every step"
    for i, batch in enumerate(batches):
        counted = torch.cat([part[i][0] for part in parts if part[i][1] > 0])
        assert counted.tolist() == batch.tolist()
        assert sum(part[i][1] for part in parts) == pytest.approx(1.0)


def test_pieces_change_nothing_but_rounding():
    losses = []
    for max_entries in (None, 64):
        config = tiny_config(max_entries=max_entries, options={"hidden_channels": 8})
        model, loaders, state = start(config)
        losses.append([epoch.train_loss for epoch in train(model, loaders, config, state=state)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


def test_mixed_precision_trains():
    config = tiny_config(precision="bf16-mixed", epochs=2)
    model, loaders, state = start(config)
    assert len(list(train(model, loaders, config, state=state))) == 2
    assert next(model.parameters()).dtype == torch.float32


def test_a_model_is_not_used_on_data_that_does_not_fit():
    facts = TaskSignature.of(tiny_task(), TargetScale())
    facts.check_inputs(tiny_task(seed=1))
    with pytest.raises(MismatchError, match="regression"):
        facts.check_targets(tiny_task(classes=True))
    with pytest.raises(MismatchError, match="4 numbers"):
        replace(facts, node_features=4).check_inputs(tiny_task())


def test_a_task_without_targets_is_refused():
    task = tiny_task()
    bare = replace(task, target="none", loss=None)
    with pytest.raises(RunError, match="--target"):
        build_model(tiny_config(), bare)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("collection", ["sp", "sp+", "ap"])
def test_the_papers_runs_have_the_papers_models(name, collection):
    config = paper_run(name, collection)
    model = paper_config(name, collection=collection, k=config.k)
    assert (config.data, config.preset, config.k) == (name, name, model.k)
    assert RunConfig.from_yaml(config.to_yaml()) == config


def test_facts_of_the_papers_runs():
    assert (zinc().epochs, zinc().min_lr, zinc().plateau_patience) == (1000, 1e-5, 20)
    assert peptides_func(released=True).plateau_direction == "released"
    assert [exp(c).batch_size for c in ("sp", "ap")] == [32, 16]
