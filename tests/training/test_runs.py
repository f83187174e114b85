"""A run and its folder: repeatable, resumable, honest about what is in the way."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine_tasks import assert_same_files, one_thread as one_thread, tiny_config, tiny_task
from pathnn.data import task_from_graphs
from pathnn.data.fingerprints import DataFingerprint
from pathnn.data.task import Categorical, Split
from pathnn.inference import score
from pathnn.training import (
    CheckpointError,
    Epoch,
    MismatchError,
    NotFiniteError,
    RunConfig,
    RunError,
    RunFolder,
    RunFolderError,
    RunStoppedError,
    build_model,
    default_options,
    load_model,
    make_loaders,
    model_outputs,
    predict,
    run,
    runs,
)
from pathnn.training.checkpoint import TaskSignature, load_state, save_state
from pathnn.training.runs import Run


class Interrupt(Exception):
    """Stands for anything that ends a run from outside."""


def stop_after(epochs: int):
    def report(epoch: Epoch, run: Run) -> None:
        if epoch.epoch == epochs:
            raise Interrupt

    return report


def test_a_run_writes_its_folder(tmp_path):
    out = tmp_path / "run"
    result = run(tiny_config(), out, task=tiny_task())
    assert sorted(p.name for p in out.iterdir() if p.name != ".lock") == [
        "config.yaml", "curves.png", "last.ckpt", "metrics.jsonl", "model.safetensors", "result.json",
    ]  # fmt: skip
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    best = min(reversed(lines), key=lambda line: line["val_score"])
    assert (result["best_epoch"], result["val_score"]) == (best["epoch"], best["val_score"])
    assert result["test_score"] == best["test_score"]
    assert json.loads((out / "result.json").read_text()) == result
    assert RunFolder(out).read_config() == tiny_config()
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_model_file_is_the_best_epoch(tmp_path):
    task, config = tiny_task(), tiny_config(epochs=6, lr=0.05)
    result = run(config, tmp_path / "run", task=task)
    trained = load_model(tmp_path / "run" / "model.safetensors")
    assert trained.epoch == result["best_epoch"]
    loaders = make_loaders(task, config, trained.model, device="cpu")
    out = model_outputs(trained.model, loaders.test)
    mae = (out - task.graphs.y[loaders.test.index]).abs().mean()
    assert float(mae) == pytest.approx(result["test_score"], rel=1e-6)


def test_a_model_in_double_precision_is_read_in_double_precision(tmp_path):
    run(tiny_config(epochs=1, precision="64-true"), tmp_path / "run", task=tiny_task())
    trained = load_model(tmp_path / "run" / "model.safetensors")
    assert {p.dtype for p in trained.model.parameters()} == {torch.float64}


def test_the_same_seed_gives_the_same_files(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(tiny_config(seed=seed), tmp_path / name, task=tiny_task())
    assert_same_files(tmp_path / "a", tmp_path / "b")
    a, c = (load_file(tmp_path / name / "last.ckpt") for name in "ac")
    assert not torch.equal(a["state.model.head.linear1.weight"], c["state.model.head.linear1.weight"])


MODERN = {"optimizer": "adamw", "weight_decay": 0.1, "schedule": "cosine", "warmup": 2, "ema": 0.8, "loss": "mse"}


@pytest.mark.parametrize("changes", [{}, {"plateau_factor": 0.5}, {"plateau_factor": 0.5, "warmup": 2}, MODERN])
def test_a_resumed_run_ends_like_an_undisturbed_one(tmp_path, changes):
    config = tiny_config(epochs=5, plateau_patience=0, clip=1.0, standardize=True, **changes)
    run(config, tmp_path / "whole", task=tiny_task())
    for epochs in (1, 2, 4):
        with pytest.raises(Interrupt):
            run(config, tmp_path / "cut", task=tiny_task(), resume=True, report=stop_after(epochs))
    run(config, tmp_path / "cut", task=tiny_task(), resume=True)
    assert_same_files(tmp_path / "whole", tmp_path / "cut")


def test_a_finished_run_of_an_earlier_version_has_no_scores_and_is_reported(tmp_path):
    result = run(tiny_config(), tmp_path / "run", task=tiny_task())
    del result["scores"]
    (tmp_path / "run" / "result.json").write_text(json.dumps(result))
    assert run(tiny_config(), tmp_path / "run", task=tiny_task(), resume=True) == result


@pytest.mark.parametrize("changes", [{}, MODERN])
def test_the_result_has_all_scores_of_the_saved_model(tmp_path, changes):
    task, config = tiny_task(80), tiny_config(lr=0.05, epochs=6, **changes)
    result = run(config, tmp_path / "run", task=task)
    trained = load_model(tmp_path / "run" / "model.safetensors")
    for part, index in (("test", task.splits[0].test), ("val", task.splits[0].val)):
        scores = result["scores"][part]
        assert list(scores) == ["mae", "rmse", "r2", "pearson", "spearman"]
        assert scores["mae"] == pytest.approx(result[f"{part}_score"], rel=1e-5)
        for name, value in scores.items():
            assert score(trained, task, index, metric=name).score == pytest.approx(value, rel=1e-4), name


def test_a_cosine_run_cannot_be_made_longer(tmp_path):
    """Its learning rates depend on the number of epochs."""
    config = tiny_config(schedule="cosine")
    with pytest.raises(Interrupt):
        run(config, tmp_path / "run", task=tiny_task(), report=stop_after(1))
    with pytest.raises(RunError, match=r"began with epochs=3.*Resume without --epochs, or start a new run of 5 epochs"):
        run(replace(config, epochs=5), tmp_path / "run", task=tiny_task(), resume=True)


def test_what_a_kill_leaves_between_two_writes_is_made_good(tmp_path):
    config, out = tiny_config(epochs=4), tmp_path / "cut"
    run(config, tmp_path / "whole", task=tiny_task())
    with pytest.raises(Interrupt):
        run(config, out, task=tiny_task(), report=stop_after(2))
    with (out / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "train_l')
    (out / ".last.ckpt.abc.tmp").write_bytes(b"half")
    (out / "model.safetensors").unlink()
    run(config, out, task=tiny_task(), resume=True)
    assert_same_files(tmp_path / "whole", out)


def test_checkpoints_may_be_rare(tmp_path):
    """The state is saved at the end, when asked to stop, and not in between; the files end up the same."""
    config, out, states = tiny_config(epochs=4), tmp_path / "rare", []
    run(config, tmp_path / "often", task=tiny_task())

    def look(epoch, ready):
        states.append(ready.folder.state.exists())

    with pytest.raises(RunStoppedError, match="stopped after epoch 3"):
        run(config, out, task=tiny_task(), checkpoint_every=1000, report=look, stop=lambda: len(states) == 3)
    assert states == [False] * 3
    assert (out / "last.ckpt").exists()
    run(config, out, task=tiny_task(), resume=True, checkpoint_every=1000, stop=lambda: True)
    assert_same_files(tmp_path / "often", out)


def test_a_kill_between_rare_checkpoints_goes_back_to_the_last(tmp_path):
    config, out = tiny_config(epochs=4), tmp_path / "cut"
    run(config, tmp_path / "whole", task=tiny_task())
    with pytest.raises(Interrupt):
        run(config, out, task=tiny_task(), report=stop_after(3), checkpoint_every=1000)
    assert not (out / "last.ckpt").exists()
    run(config, out, task=tiny_task(), resume=True, checkpoint_every=1000)
    assert_same_files(tmp_path / "whole", out)


def test_a_run_that_is_over_is_only_reported(tmp_path):
    first = run(tiny_config(), tmp_path / "run", task=tiny_task())
    assert run(tiny_config(), tmp_path / "run", task=tiny_task(), resume=True) == first


def test_a_run_can_be_made_longer(tmp_path):
    run(tiny_config(epochs=5), tmp_path / "whole", task=tiny_task())
    run(tiny_config(epochs=2), tmp_path / "longer", task=tiny_task())
    run(tiny_config(epochs=5), tmp_path / "longer", task=tiny_task(), resume=True)
    assert_same_files(tmp_path / "whole", tmp_path / "longer")


def test_a_folder_with_a_run_is_refused(tmp_path):
    run(tiny_config(), tmp_path / "run", task=tiny_task())
    before = {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    with pytest.raises(RunFolderError, match="holds a run already"):
        run(tiny_config(seed=1), tmp_path / "run", task=tiny_task())
    with pytest.raises(RunError, match="with seed=0"):
        run(tiny_config(seed=1), tmp_path / "run", task=tiny_task(), resume=True)
    changed = tiny_config(options={"hidden_channels": 0})
    with pytest.raises(ValueError, match="hidden_channels"):
        run(changed, tmp_path / "run", task=tiny_task(), overwrite=True)
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    run(tiny_config(seed=1), tmp_path / "run", task=tiny_task(), overwrite=True)
    assert RunFolder(tmp_path / "run").read_config().seed == 1


def test_a_folder_with_other_files_is_never_written_to(tmp_path):
    (tmp_path / "thesis.tex").write_text("all of it")
    for choice in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(RunFolderError, match=r"thesis\.tex"):
            run(tiny_config(), tmp_path, task=tiny_task(), **choice)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(RunFolderError, match="is a file"):
        run(tiny_config(), tmp_path / "thesis.tex", task=tiny_task())


def test_another_programs_config_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in {"config.yaml": "lr: 1\n", "result.json": "{}", "notes.txt": "mine"}.items():
        (folder / name).write_text(text)
    for choice in ({}, {"overwrite": True}):
        with pytest.raises(RunFolderError, match=r"holds no run that can be read.*another folder"):
            run(tiny_config(), folder, task=tiny_task(), **choice)
    assert {entry.name: entry.read_text() for entry in folder.iterdir()} == {
        "config.yaml": "lr: 1\n", "result.json": "{}", "notes.txt": "mine",
    }  # fmt: skip


@pytest.mark.parametrize("config", ["data: tiny\nan_option_of_later: 1\n", "", "\0"])
def test_a_run_of_ours_whose_config_cannot_be_read_can_be_replaced(tmp_path: Path, config: str) -> None:
    run(tiny_config(), tmp_path / "run", task=tiny_task())
    (tmp_path / "run" / "config.yaml").write_text(config)
    run(tiny_config(seed=3), tmp_path / "run", task=tiny_task(), overwrite=True)
    assert RunFolder(tmp_path / "run").read_config().seed == 3


def test_a_folder_in_place_of_the_config_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "mine" / "config.yaml").mkdir(parents=True)
    with pytest.raises(RunFolderError, match="holds no run that can be read"):
        run(tiny_config(), tmp_path / "mine", task=tiny_task(), overwrite=True)


def test_two_runs_cannot_share_a_folder(tmp_path):
    with RunFolder(tmp_path / "run").lock(), pytest.raises(RunFolderError, match="another process"):
        run(tiny_config(), tmp_path / "run", task=tiny_task())


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "pickle"])
def test_a_damaged_state_is_refused_and_kept(tmp_path, damage):
    config, out = tiny_config(), tmp_path / "run"
    with pytest.raises(Interrupt):
        run(config, out, task=tiny_task(), report=stop_after(2))
    content = bytearray((out / "last.ckpt").read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[-100] ^= 1
    elif damage == "empty":
        content = bytearray()
    else:
        torch.save({"a": print}, out / "last.ckpt")
        content = bytearray((out / "last.ckpt").read_bytes())
    (out / "last.ckpt").write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        run(config, out, task=tiny_task(), resume=True)
    assert (out / "last.ckpt").read_bytes() == content


def test_a_state_of_another_version_is_refused(tmp_path, monkeypatch):
    config, out = tiny_config(), tmp_path / "run"
    with pytest.raises(Interrupt):
        run(config, out, task=tiny_task(), report=stop_after(1))
    monkeypatch.setattr("pathnn.training.checkpoint.STATE_VERSION", 2)
    with pytest.raises(CheckpointError, match=r"has version 1 .* reads version 2"):
        run(config, out, task=tiny_task(), resume=True)
    with pytest.raises(CheckpointError, match=r"not a pathnn-model file.*pathnn train"):
        load_model(out / "last.ckpt")


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    config, out = tiny_config(epochs=4), tmp_path / "run"
    run(config, tmp_path / "whole", task=tiny_task())
    with pytest.raises(Interrupt):
        run(config, out, task=tiny_task(), report=stop_after(2))
    whole = (out / "last.ckpt").read_bytes()
    with monkeypatch.context() as patch:

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(os, "fsync", full)
        with pytest.raises(RunFolderError, match=r"No space left on device.*--resume"):
            run(config, out, task=tiny_task(), resume=True)
    assert (out / "last.ckpt").read_bytes() == whole
    run(config, out, task=tiny_task(), resume=True)
    assert_same_files(tmp_path / "whole", out)


def test_what_is_not_finite_is_named(tmp_path):
    task = tiny_task()
    task.graphs.x[task.graphs.node_ptr[3] + 1, 0] = float("nan")
    with pytest.raises(NotFiniteError, match="graph 3"):
        run(tiny_config(), tmp_path / "features", task=task)
    task = tiny_task()
    task.graphs.y[4] = float("inf")
    with pytest.raises(NotFiniteError, match="targets of graph 4 of tiny, counted from 0"):
        run(tiny_config(), tmp_path / "target", task=task)
    huge = tiny_config(lr=1e30, epochs=9, options={"hidden_channels": 8, "norm": None, "encoder_norm": False})
    with pytest.raises(NotFiniteError, match=r"loss is not a finite number in epoch \d+, batch \d of 3"):
        run(huge, tmp_path / "loss", task=tiny_task())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epoch": 3}, "did you mean 'epochs'"),
        ({"epochs": 0}, "epochs=0"),
        ({"lr": -1.0}, "lr=-1.0"),
        ({"lr": "fast"}, "lr='fast'"),
        ({"model": "gim"}, "model='gim'"),
        ({"collection": "all"}, "collection"),
        ({"plateau_factor": 2.0}, "plateau_factor"),
        ({"plateau_factor": "0.5"}, "plateau_factor='0.5'"),
        ({"weight_decay": "1e-4"}, "weight_decay='1e-4'"),
        ({"weight_decay": None}, "weight_decay=None"),
        ({"weight_decay": -1.0}, "weight_decay=-1.0"),
        ({"min_lr": "low"}, "min_lr='low'"),
        ({"stop_at": float("nan")}, "stop_at=nan"),
        ({"split_seed": "a"}, "split_seed='a'"),
        ({"options": [1]}, r"options=\[1\]"),
        ({"precision": "8"}, "precision"),
        ({"optimizer": "sgd"}, "optimizer='sgd'"),
        ({"schedule": "linear"}, "schedule='linear'"),
        ({"warmup": -1}, "warmup=-1"),
        ({"ema": 1.0}, "ema=1.0: expected a number between 0 and 1"),
        ({"loss": "l2"}, "loss='l2'"),
        ({"metric": "r3"}, "metric='r3'"),
    ],
)
def test_bad_options_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        RunConfig.from_dict({"data": "tiny", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fold": 7}, "has 1 splits"),
        ({"options": {"hidden": 8}}, "hidden"),
        ({"options": {"hidden_channels": "wide"}}, "hidden_channels='wide'"),
        ({"model": "gin", "options": {"hidden_channels": 0}}, "hidden_channels=0"),
        ({"model": "gin", "options": {"dropout": "0.5"}}, "dropout='0.5'"),
        ({"device": "cuda"}, "no CUDA device"),
        ({"class_weights": True}, "class_weights=True is for classes and labels, but .* kind 'regression'"),
        ({"precision": "16-mixed"}, "needs a GPU"),
    ],
)
def test_bad_runs_are_refused_before_anything_is_written(tmp_path, changes, message):
    if "device" in changes and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ValueError, match=message):
        run(tiny_config(**changes), tmp_path / "run", task=tiny_task())
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_numbers_in_yaml_may_have_an_exponent_only():
    config = RunConfig.from_yaml("data: 'tiny'\nlr: 1e-4\nmin_lr: 1E-5\nweight_decay: 2.e-3\noptions: {dropout: 1e-1}")
    assert (config.lr, config.min_lr, config.weight_decay, config.options["dropout"]) == (1e-4, 1e-5, 2e-3, 0.1)
    named = RunConfig(data="1e5", target=("2e-3",))
    assert RunConfig.from_yaml(named.to_yaml()) == named


@pytest.mark.parametrize("kind", ["class", "binary", "multilabel"])
def test_only_numbers_are_standardized(tmp_path: Path, kind: str) -> None:
    task = tiny_task()
    assert task.graphs.y is not None
    y = (task.graphs.y[:, :1] > 2.3).float().expand(-1, 2 if kind == "multilabel" else 1)
    task = task_from_graphs(replace(task.graphs, y=y.contiguous()), name="tiny", kind=kind)
    with pytest.raises(RunError, match=f"of the kind '{kind}': leave the option out"):
        run(tiny_config(standardize=True), tmp_path / "run", task=task)
    assert not (tmp_path / "run").exists()


def test_a_run_that_goes_on_and_is_killed_before_its_result_has_no_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, longer = tiny_task(), tiny_config(epochs=6)
    run(tiny_config(epochs=2), tmp_path / "run", task=task)
    whole = run(longer, tmp_path / "whole", task=task)

    def killed(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs, "finish_run", killed)
        with pytest.raises(KeyboardInterrupt):
            run(longer, tmp_path / "run", task=task, resume=True)
    again = run(longer, tmp_path / "run", task=task, resume=True)
    names = ("epochs", "best_epoch", "val_score", "test_score", "stopped")
    assert [again[name] for name in names] == [whole[name] for name in names]
    assert again["epochs"] == 6


def test_yaml_cannot_run_code():
    with pytest.raises(RunError, match="plain values"):
        RunConfig.from_yaml("data: !!python/object/apply:os.getcwd []")
    with pytest.raises(RunError, match="expected lines"):
        RunConfig.from_yaml("- 1")


def test_a_refused_run_leaves_no_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="fold=3"):
        run(tiny_config(fold=3), tmp_path / "new", task=tiny_task())
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    with pytest.raises(RunError, match="fold=3"):
        run(tiny_config(fold=3), tmp_path / "old", task=tiny_task())
    assert (tmp_path / "old").is_dir()


def test_a_state_without_a_print_of_its_data_goes_on(tmp_path: Path) -> None:
    """Checkpoints of earlier versions have none."""
    with pytest.raises(Interrupt):
        run(tiny_config(), tmp_path / "run", task=tiny_task(), report=stop_after(2))
    state = load_state(tmp_path / "run" / "last.ckpt")
    task = tiny_task()
    assert state.pop("data") == asdict(DataFingerprint.of(task, task.splits[0]))
    save_state(tmp_path / "run" / "last.ckpt", state, config=tiny_config())
    assert run(tiny_config(), tmp_path / "run", task=tiny_task(), resume=True)["epochs"] == tiny_config().epochs


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    run(tiny_config(), tmp_path / "run", task=tiny_task())
    with pytest.raises(CheckpointError, match=r"is a folder: expected a file, such as the model\.safetensors"):
        load_model(tmp_path / "run")


def test_what_a_kill_has_left_goes_with_the_run(tmp_path: Path) -> None:
    run(tiny_config(epochs=1), tmp_path / "run", task=tiny_task())
    (tmp_path / "run" / ".last.ckpt.abc.tmp").write_bytes(b"half")
    run(tiny_config(epochs=1), tmp_path / "run", task=tiny_task(), overwrite=True)
    assert not (tmp_path / "run" / ".last.ckpt.abc.tmp").exists()


def test_numbers_that_json_does_not_have_are_null_in_the_files(tmp_path: Path) -> None:
    folder, nan = RunFolder(tmp_path), float("nan")
    folder.write_result({"val_score": nan, "test_score": float("inf"), "epochs": 1})
    assert json.loads(folder.result.read_text()) == {"val_score": None, "test_score": None, "epochs": 1}
    folder.add_epoch(Epoch(1, 0.5, nan, nan, None, True, 0.1, 2.0))
    assert [*json.loads(folder.metrics.read_text()).values()] == [1, 0.5, None, None, None, True, 0.1, 2.0]


def test_a_run_with_fewer_lines_than_epochs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Interrupt):
        run(tiny_config(), tmp_path / "run", task=tiny_task(), report=stop_after(2))
    metrics = tmp_path / "run" / "metrics.jsonl"
    metrics.write_text(metrics.read_text().splitlines(keepends=True)[0])
    with pytest.raises(CheckpointError, match=r"has 1 epochs, but last\.ckpt has 2"):
        run(tiny_config(), tmp_path / "run", task=tiny_task(), resume=True)


def test_a_model_is_measured_as_in_training(tmp_path: Path) -> None:
    task = tiny_task()
    task.graphs.y[::4] += 5  # few large errors
    run(tiny_config(epochs=1, metric="rmse"), tmp_path / "run", task=task)
    trained = load_model(tmp_path / "run" / "model.safetensors")
    wrong = predict(trained, task) - task.graphs.y
    mae, rmse = float(wrong.abs().mean()), float(wrong.square().mean().sqrt())
    assert mae < 0.99 * rmse
    assert score(trained, task).score == pytest.approx(rmse, rel=1e-5)
    assert score(trained, task, metric="mae").score == pytest.approx(mae, rel=1e-5)


def test_nothing_is_predicted_from_what_is_not_finite(tmp_path: Path) -> None:
    task = tiny_task()
    run(tiny_config(epochs=1), tmp_path / "run", task=task)
    assert task.graphs.x is not None
    x = task.graphs.x.clone()
    x[5, 1] = torch.nan
    with pytest.raises(NotFiniteError):
        predict(load_model(tmp_path / "run" / "model.safetensors"), task.with_graphs(replace(task.graphs, x=x)))


def test_another_number_of_targets_is_not_compared(tmp_path: Path) -> None:
    task = tiny_task()
    run(tiny_config(epochs=1), tmp_path / "run", task=task)
    assert task.graphs.y is not None
    two = task_from_graphs(replace(task.graphs, y=task.graphs.y.expand(-1, 2).contiguous()), name="two")
    with pytest.raises(MismatchError, match=r"two has 2 outputs .*regression.* 1 of the kind regression"):
        score(load_model(tmp_path / "run" / "model.safetensors"), two)


def test_a_graph_that_is_left_over_is_measured_and_not_trained_on() -> None:
    task, config = tiny_task(), tiny_config()
    order = torch.arange(24)
    task = replace(task, splits=(Split(order[:9], order[9:18], order[18:]),))
    loaders = make_loaders(task, config, build_model(config, task), device="cpu")
    assert [batch.num_graphs for batch in loaders.train] == [8]
    assert [batch.num_graphs for batch in loaders.val] == [8, 1]


def test_own_data_has_defaults_of_its_kind() -> None:
    task = tiny_task()
    assert default_options(task)["standardize"] is True
    assert default_options(tiny_task(classes=True))["standardize"] is False
    labelled = replace(task, node_features=Categorical((5,)))
    molecules = replace(labelled, edge_features=Categorical((4,)))
    assert [default_options(one)["k"] for one in (task, labelled, molecules)] == [2, 2, 4]
    assert [default_options(one)["options"].get("phi") for one in (task, labelled, molecules)] == [None, None, "mlp"]


def test_data_with_fewer_categories_can_be_read_and_none_with_more() -> None:
    facts = TaskSignature("a", "regression", 1, [5, 3], None, "MAE", False, 1.0, [])
    facts.check_inputs(replace(tiny_task(), node_features=Categorical((4, 3))))
    for sizes in ((6, 3), (5,), (5, 3, 1)):
        with pytest.raises(MismatchError, match="categories of sizes"):
            facts.check_inputs(replace(tiny_task(), node_features=Categorical(sizes)))
