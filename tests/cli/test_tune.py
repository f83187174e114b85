"""`pathnn tune`: the best setting is one that `pathnn train` takes; bad input is a sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from pathnn.cli.app import make_app

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")
optuna = pytest.importorskip("optuna", reason="a search needs optuna (extra tune)")

SMALL = ["--target", "size", "--epochs", "2", "--hidden", "8", "--k", "2", "--collection", "sp", "--device", "cpu"]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("csv") / "molecules.csv"
    smiles = ["C" * n + tail for n in range(1, 7) for tail in ("O", "N", "c1ccccc1", "C(=O)O", "Cl")]
    path.write_text("\n".join(["smiles,size", *(f"{text},{len(text)}" for text in smiles)]) + "\n")
    return path


def call(*arguments: object):
    return CliRunner().invoke(make_app(), [str(argument) for argument in arguments])


def test_the_best_setting_is_a_config_of_train(molecules, tmp_path):
    out = tmp_path / "search"
    result = call("tune", molecules, "--trials", 2, "--out", out, "--json", *SMALL)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert not {"k", "hidden_channels", "collection"} & set(found["best"])
    trained = call("train", molecules, "--config", out / "config.yaml", "--out", tmp_path / "run", "--json")
    assert trained.exit_code == 0, trained.stderr
    assert json.loads(trained.stdout)["val_score"] == found["val_score"]
    again = call("tune", molecules, "--trials", 2, "--out", out, *SMALL)
    assert f"pathnn train {molecules} --config {out / 'config.yaml'}" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--trials", "0"], 2, "--trials"),
        (["--lr", "-1"], 2, "expected a number above 0"),
        (["--devices", "2"], 1, "leave out devices"),
        (["--storage", "nonsense"], 1, "Expected a database of Optuna"),
        (["--target", "mass"], 1, "mass"),
        (["--dropout", "0.1", "--lr", "0.01", "--weight-decay", "0", "--epochs", "0"], 2, "epochs=0"),
    ],
)
def test_bad_input_is_a_sentence(molecules, tmp_path, arguments, code, message):
    result = call("tune", molecules, "--out", tmp_path / "search", *SMALL, *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_without_optuna_the_extra_is_named(molecules, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = call("tune", molecules, "--out", tmp_path / "search", *SMALL)
    assert (result.exit_code, "pip install 'pathnn[tune]'" in result.stderr) == (1, True)


@pytest.mark.slow
def test_a_search_in_two_processes_continues_after_a_kill(molecules, tmp_path):
    out = tmp_path / "search"
    command = [sys.executable, "-m", "pathnn.cli", "tune", molecules, "--trials", 6, "--jobs", 2, "--out", out, *SMALL]
    options = [*map(str, command), "--epochs", "20"]
    with subprocess.Popen(options, stderr=subprocess.PIPE, text=True) as search:
        assert search.stderr is not None
        next(line for line in search.stderr if "finished" in line)
        os.kill(search.pid, signal.SIGKILL)
    time.sleep(5)  # the other processes see that the command is gone
    assert subprocess.run(options, check=False).returncode == 0
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{out}/tune.db")
    finished = [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED")]
    assert len(finished) in (6, 7)  # two processes may begin the last trial at the same moment


def test_a_search_says_how_each_trial_ended_counted_from_1(molecules, tmp_path):
    command = [sys.executable, "-m", "pathnn.cli", "tune", molecules, "--trials", 2, "--out", tmp_path, *SMALL]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert "[I " not in done.stderr, "the log of Optuna"
    assert [line[:16] for line in done.stderr.splitlines()] == ["trial 1 finished", "trial 2 finished"]
    number = optuna.load_study(study_name=None, storage=f"sqlite:///{tmp_path}/tune.db").best_trial.number
    assert f"in trial {number + 1} of 2" in done.stdout
