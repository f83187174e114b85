"""Files of a run that a person can edit: the checkpoint says what the run was, and nothing is overwritten."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.training import EnsembleFolder, RunConfig, RunFolder, RunFolderError, load_model, run, run_ensemble
from pathnn.training.checkpoint import checked_config
from pathnn.training.run_folder import RESUMABLE

EDITS: dict[str, Any] = {
    "data": "other", "fold": 1, "folds": 3, "split_seed": 1, "split_by": "part",
    "splits": "split.csv", "clean": "salts", "descriptors": "rdkit", "smiles": "drug", "target": ["logS"],
    "kind": "regression", "skip_invalid": True, "metric": "rmse", "model": "gin", "preset": "csl",
    "variant": "released", "collection": "sp", "k": 1, "batch_size": 4, "drop_single": False, "max_entries": 100,
    "lr": 0.01, "weight_decay": 0.1, "patience": 1, "min_lr": 1e-5, "stop_at": 0.5, "plateau_factor": 0.5,
    "plateau_patience": 1, "plateau_direction": "released", "clip": 1.0, "standardize": True, "seed": 1,
    "precision": "64-true", "options": {"hidden_channels": 4, "dropout": 0.2},
    "optimizer": "adamw", "schedule": "cosine", "warmup": 1, "ema": 0.5, "loss": "mse", "class_weights": True,
    "epochs": 4, "device": "auto", "devices": 2, "num_nodes": 2, "calibration": 0.1,
    "max_paths_per_source": 3, "redraw": True, "logger": "csv", "kernel": "ridge", "keep": "last",
}  # fmt: skip


class Interrupt(Exception):
    """Stands for anything that ends a run from outside."""


def stop_after_two(epoch, ready) -> None:
    if epoch.epoch == 2:
        raise Interrupt


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an interrupted run, a finished one, and a finished one without its state."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.raises(Interrupt):
        run(tiny_config(), folder / "interrupted", task=tiny_task(), report=stop_after_two)
    run(tiny_config(), folder / "finished", task=tiny_task())
    shutil.copytree(folder / "finished", folder / "tidied")
    (folder / "tidied" / "last.ckpt").unlink()
    return folder


def edited(runs: Path, stage: str, tmp_path: Path, **changes: Any) -> RunFolder:
    """A copy of a run whose `config.yaml` says something else."""
    shutil.copytree(runs / stage, tmp_path / stage)
    folder = RunFolder(tmp_path / stage)
    folder.write_config(RunConfig.from_dict({**folder.read_config().to_dict(), **changes}))
    return folder


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files with their content and time."""
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def test_every_option_is_tried():
    assert set(EDITS) == {entry.name for entry in fields(RunConfig)}
    before = tiny_config().to_dict()
    assert all(before[name] != value for name, value in EDITS.items())


@pytest.mark.parametrize("name", [name for name in EDITS if name not in RESUMABLE])
@pytest.mark.parametrize("stage", ["interrupted", "finished", "tidied"])
def test_an_edited_config_is_refused_and_nothing_is_changed(runs, tmp_path, stage, name):
    folder = edited(runs, stage, tmp_path, **{name: EDITS[name]})
    before = everything(tmp_path)
    file = "model.safetensors" if stage == "tidied" else "last.ckpt"
    old, new = tiny_config().to_dict()[name], EDITS[name]
    shown = f"{name} is {new!r} there and {old!r} in {file}"
    if name == "options":
        shown = f"options.hidden_channels is 4 there and 8 in {file}"
    for asked in (folder.read_config(), tiny_config()):  # as the command line does, and as a program
        with pytest.raises(RunFolderError) as error:
            run(asked, folder.path, task=tiny_task(), resume=True)
        assert f"config.yaml was changed after the run began: {shown}. Restore these values" in str(error.value)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", RESUMABLE)
@pytest.mark.parametrize("stage", ["interrupted", "finished"])
def test_where_and_how_long_a_run_goes_may_be_edited(runs, tmp_path, stage, name):
    folder = edited(runs, stage, tmp_path, **{name: EDITS[name]})
    assert checked_config(folder) == replace(tiny_config(), **{name: EDITS[name]})
    if name == "epochs":
        assert run(folder.read_config(), folder.path, task=tiny_task(), resume=True)["epochs"] == 4


def test_all_that_was_edited_is_shown(runs, tmp_path):
    folder = edited(runs, "finished", tmp_path, lr=0.5, k=1, epochs=9, options={"dropout": 0.2, "phi": "relu"})
    with pytest.raises(RunFolderError) as error:
        checked_config(folder)
    for part in (
        "k is 1 there and 2 in last.ckpt",
        "lr is 0.5 there and 0.001 in",
        "options.phi is 'relu' there and None in",
        "options.hidden_channels is None there and 8 in",
    ):
        assert part in str(error.value)
    assert "epochs" not in str(error.value)


def test_before_the_first_checkpoint_there_is_nothing_to_compare_with(runs, tmp_path):
    folder = edited(runs, "interrupted", tmp_path, lr=0.5)
    folder.state.unlink()
    folder.model.unlink()
    run(folder.read_config(), folder.path, task=tiny_task(), resume=True)
    assert load_model(folder.model).config.lr == 0.5


@pytest.mark.parametrize("stage", ["interrupted", "finished", "tidied"])
@pytest.mark.parametrize("wish", [{}, {"resume": True}])
def test_a_run_without_its_config_is_not_overwritten(runs, tmp_path, stage, wish):
    shutil.copytree(runs / stage, tmp_path / "run")
    (tmp_path / "run" / "config.yaml").unlink()
    before, wider = everything(tmp_path), tiny_config(options={"hidden_channels": 16})
    with pytest.raises(RunFolderError, match=r"holds a run already|has no config\.yaml"):
        run(wider, tmp_path / "run", task=tiny_task(), **wish)
    assert everything(tmp_path) == before
    run(wider, tmp_path / "run", task=tiny_task(), overwrite=True)
    assert load_model(tmp_path / "run" / "model.safetensors").config == wider


def test_the_model_of_others_is_not_replaced(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"someone's")
    for wish in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(RunFolderError):
            run(tiny_config(), tmp_path, task=tiny_task(), **wish)
    assert (tmp_path / "model.safetensors").read_bytes() == b"someone's"


def test_scores_come_from_the_checkpoint(runs, tmp_path):
    shutil.copytree(runs / "finished", tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    true = folder.read_result()
    wrong = {"test_score": 0.0, "val_score": 0.0, "best_epoch": 7, "seconds": 0.1, "seed": 9, "parameters": 1}
    folder.write_result({**true, **wrong})
    assert run(tiny_config(), folder.path, task=tiny_task(), resume=True) == true
    assert folder.read_result() == true


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ensembles") / "two"
    run_ensemble(tiny_config(), out, 2, task=tiny_task())
    return out


@pytest.mark.parametrize("seed", [0, 1])
def test_an_edited_config_of_one_seed_is_refused_before_any_is_trained(ensemble, tmp_path, seed):
    shutil.copytree(ensemble, tmp_path / "two")
    folder = EnsembleFolder(tmp_path / "two").member(seed)
    folder.write_config(replace(folder.read_config(), lr=0.5))
    before = everything(tmp_path)
    with pytest.raises(RunFolderError, match=rf"seed-{seed}/config.yaml was changed .* lr is 0.5 there and 0.001 in"):
        run_ensemble(tiny_config(epochs=5), tmp_path / "two", 2, task=tiny_task(), resume=True)
    assert everything(tmp_path) == before


def test_the_scores_of_an_ensemble_come_from_the_checkpoints(ensemble, tmp_path):
    shutil.copytree(ensemble, tmp_path / "two")
    true, member = EnsembleFolder(ensemble).read_result(), EnsembleFolder(tmp_path / "two").member(1)
    member.write_result({**member.read_result(), "test_score": 0.0, "val_score": 0.0})
    EnsembleFolder(tmp_path / "two").write_result({**true, "test_each": [0.0, 0.0], "test_mean": 0.0})
    found = run_ensemble(tiny_config(), tmp_path / "two", 2, task=tiny_task(), resume=True)
    assert {**found, "time": None} == {**true, "time": None}
    assert {**json.loads((tmp_path / "two" / "result.json").read_text()), "time": None} == {**true, "time": None}
