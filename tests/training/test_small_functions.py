"""Test the return values of small functions of training."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from pathnn.data import PackedGraphs, load_dataset, task_from_graphs
from pathnn.training import RunConfig
from pathnn.training.config import run_seed, yaml_options
from pathnn.training.ensemble import statistics
from pathnn.training.loop import at_least_as_good
from pathnn.training.recipes import add_descriptors, paper_run, tu, zinc
from pathnn.training.run_folder import config_differences, draw_curves, final_name, finite
from pathnn.training.scoring import align_classes, all_scores, as_targets
from pathnn.training.setup import data_key


def test_the_key_of_data_is_a_name_or_its_content() -> None:
    csl = load_dataset("csl")
    assert data_key(RunConfig(data="csl"), csl) == "csl"
    assert data_key(RunConfig(data="mine.g6"), csl) == data_key(RunConfig(data="/home/me/mine.g6"), csl)


def test_seeds_differ() -> None:
    one, two = RunConfig(data="csl", seed=1), RunConfig(data="csl", seed=2)
    assert run_seed(one, "csl") == run_seed(one, "csl") != run_seed(two, "csl")


def test_a_number_with_an_exponent_is_a_number() -> None:
    assert yaml_options("lr: 1e-4") == {"lr": 1e-4}


def test_differences_of_configs() -> None:
    other = RunConfig(data="a", k=2, options={"phi": "relu"})
    assert config_differences(RunConfig(data="a"), other) == [("k", 4, 2), ("options.phi", None, "relu")]


def test_runs_of_the_paper() -> None:
    assert (zinc().min_lr, zinc("sp").batch_size, tu("nci1", "sp", k=3).patience) == (1e-5, 128, 250)
    assert (paper_run("zinc", "sp").epochs, paper_run("atlas")) == (1000, None)
    assert add_descriptors("zinc", {}) == {}
    assert add_descriptors("molecules.csv", {"descriptors": None}) == {"descriptors": None}


def test_numbers_that_json_does_not_have() -> None:
    assert finite({"loss": math.nan, "epoch": 1}) == {"loss": None, "epoch": 1}


def test_names_of_temporary_files() -> None:
    assert [final_name(name) for name in (".last.ckpt.0a1b.tmp", "last.ckpt")] == ["last.ckpt", "last.ckpt"]


def test_curves_have_losses_and_scores() -> None:
    epoch = {"epoch": 1, "train_loss": 2.0, "val_loss": 2.1, "val_score": 10.0, "best": True}
    assert len(draw_curves([epoch], metric_name="accuracy").axes) == 2


def test_nan_is_worse_than_any_number() -> None:
    assert at_least_as_good(0.5, 0.5, True)
    assert not at_least_as_good(math.nan, 0.1, False)
    assert at_least_as_good(0.1, math.nan, True)


def test_statistics_need_all_scores() -> None:
    assert statistics("test", [1.0, 3.0]) == {"test_each": [1.0, 3.0], "test_mean": 2.0, "test_std": math.sqrt(2)}
    assert statistics("test", [1.0, None]) == {"test_each": [1.0, None], "test_mean": None, "test_std": None}


def test_scores_of_classes_have_their_units() -> None:
    found = all_scores(torch.eye(10), torch.arange(10), load_dataset("csl"))
    assert found == {"accuracy": 100.0, "balanced-accuracy": 100.0, "f1": 100.0, "mcc": 1.0}


def test_labels_become_numbers_for_a_loss() -> None:
    assert as_targets(torch.tensor([True, False]), torch.zeros(2)).dtype == torch.float32


def test_classes_are_numbered_as_in_training() -> None:
    edge = torch.tensor([[0, 1], [1, 0]])
    graphs = replace(PackedGraphs.from_edges([edge, edge], [2, 2]), y=torch.tensor([9, 3]))
    assert align_classes(task_from_graphs(graphs), ["3", "7", "9"]).graphs.y.tolist() == [2, 0]
