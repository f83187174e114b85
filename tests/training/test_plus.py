"""PathNN+ in `pathnn train`: resumed runs, predictions, folds, and explanations, which are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from molecule_runs import small_config, write_molecules
from pathnn.data import load_data
from pathnn.explain import explain_paths
from pathnn.inference import Predictor
from pathnn.nn import DeepPathNN
from pathnn.nn.cuda_graphs.padded_modules import can_be_padded
from pathnn.training import RunStoppedError, build_model, make_loaders, run
from pathnn.training.scoring import apply

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

OPTIONS: dict[str, Any] = {"model": "pathnn+", "options": {"hidden_channels": 8, "num_layers": 2, "walk_length": 5}}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_molecules(tmp_path / "molecules.csv")


def test_a_resumed_run_ends_like_an_undisturbed_one_and_predicts(table: Path, tmp_path: Path) -> None:
    config = small_config(table, epochs=3, **OPTIONS)
    whole = run(config, tmp_path / "whole")
    with pytest.raises(RunStoppedError):
        run(config, tmp_path / "cut", stop=lambda: True)
    resumed = run(config, tmp_path / "cut", resume=True)
    assert resumed["test_score"] == whole["test_score"]
    columns = Predictor(tmp_path / "cut")(["CCO", "C(", "c1ccccc1O"])
    name = next(iter(columns))
    assert [value is None for value in columns[name]] == [False, True, False]
    alone = Predictor(tmp_path / "cut")(["c1ccccc1O"])
    assert alone[name][0] == pytest.approx(columns[name][2], rel=1e-5)


def test_batches_carry_the_random_walks(table: Path) -> None:
    task, config = load_data(table, targets="size"), small_config(table, **OPTIONS)
    model = build_model(config, task).eval()
    assert isinstance(model, DeepPathNN)
    batch = next(iter(make_loaders(task, config, model, device="cpu").train))
    assert batch.random_walk_pe is not None
    computed = apply(model, replace(batch, random_walk_pe=None))  # in the call
    torch.testing.assert_close(apply(model, batch), computed)
    assert can_be_padded(model, task.graphs)


def test_folds_and_explain_on_the_command_line(table: Path, tmp_path: Path, cli: Callable[..., Any]) -> None:
    (tmp_path / "config.yaml").write_text("options: {hidden_channels: 8, num_layers: 1, read_paths: false}\n")
    arguments = ["train", str(table), "--target", "size", "--model", "pathnn+", "--epochs", "1", "--folds", "2"]
    paths = ["--config", str(tmp_path / "config.yaml"), "--out", str(tmp_path / "run"), "--device", "cpu", "--json"]
    result = cli(*arguments, *paths)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["out_of_fold_score"] > 0
    refused = cli("explain", tmp_path / "run", table, "--row", "1")
    assert refused.exit_code == 1
    assert refused.exception is None or isinstance(refused.exception, SystemExit)


def test_paths_of_a_block_are_not_explained(table: Path) -> None:
    task = load_data(table, targets="size")
    model = build_model(small_config(table, **OPTIONS), task)
    data = task.graphs[0]
    with pytest.raises(ValueError, match="expected a PathNN"):
        explain_paths(model, data.x, data.edge_index, edge_attr=data.edge_attr)
