"""The config of a run names the metrics, models and splits of other packages, and imports none of them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest
import yaml

from pathnn.data.metrics import OF_KIND
from pathnn.data.readers.molecules import Clean
from pathnn.nn.baselines import BaselineName
from pathnn.training import RunError, config
from pathnn.training.config import RunConfig


def test_names_are_those_of_other_packages() -> None:
    assert sorted(config.METRICS) == sorted({name for metrics in OF_KIND.values() for name in metrics})
    assert ("pathnn", "pathnn+", *get_args(BaselineName)) == config.MODELS
    assert get_args(config.Clean) == get_args(Clean)


def test_it_imports_nothing_heavy() -> None:
    body = ast.parse(Path(config.__file__).read_text()).body
    found = [node.module for node in body if isinstance(node, ast.ImportFrom) and node.module]
    found += [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
    assert {name for name in found if name.startswith("pathnn")} == {
        "pathnn.checks", "pathnn.paths.options", "pathnn.training.errors",
    }  # fmt: skip
    assert not {"torch", "yaml", "numpy"} & set(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"splits": 3}, "splits=3: expected a text"),
        ({"split_by": 4}, "split_by=4: expected a text"),
        ({"smiles": ["a"]}, "smiles=.*: expected a text"),
        ({"epochs": 3.0}, "epochs=3.0: expected a whole number of at least 1"),
        ({"epochs": True}, "epochs=True: expected a whole number"),
        ({"folds": 1}, "folds=1: expected a whole number of at least 2"),
        ({"patience": "auto"}, "patience='auto': expected a whole number of at least 0"),
        ({"max_entries": 0}, "max_entries=0: expected a whole number of at least 1"),
        ({"seed": None}, "seed=None: expected a whole number"),
        ({"lr": 0}, "lr=0: expected a number above 0"),
        ({"lr": float("inf")}, "lr=inf: expected a number above 0"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1: expected a number of at least 0"),
        ({"stop_at": float("nan")}, "stop_at=nan: expected a number"),
        ({"plateau_factor": 1}, "plateau_factor=1: expected a number between 0 and 1"),
    ],
)
def test_values_of_a_wrong_type_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(RunError, match=message):
        RunConfig.from_dict({"data": "a.csv", **options})


@pytest.mark.parametrize("name", ["device", "model", "precision", "optimizer", "schedule", "variant"])
@pytest.mark.parametrize("value", [None, "other", ["cpu"]])
def test_unknown_names_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name}=.* is unknown: expected one of"):
        RunConfig.from_dict({"data": "a.csv", name: value})


def test_options_without_a_value_may_be_none() -> None:
    none = dict.fromkeys(["kind", "metric", "clean", "loss", "patience", "max_entries", "split_seed", "clip", "ema"])
    config = RunConfig.from_dict({"data": "a.csv", "weight_decay": 0, "min_lr": -1, "max_entries": "auto"})
    assert (config.max_entries, RunConfig.from_dict({"data": "a.csv", **none}).max_entries) == ("auto", None)


def test_names_of_columns_that_yaml_reads_as_numbers_are_text() -> None:
    assert RunConfig.from_yaml("data: a.csv\ndescriptors: [mass, 2024]").descriptors == ("mass", "2024")


@pytest.mark.parametrize("name", ["Löslichkeit (mg/l)", "溶解度", "a😀", "bad\udcff", "a: b\u0085"])
def test_yaml_has_letters_as_they_are_and_reads_escaped_ones(name: str) -> None:
    config = RunConfig(data="a.csv", target=(name,))
    escaped = yaml.safe_dump(config.to_dict(), sort_keys=False)  # as earlier versions wrote it
    assert RunConfig.from_yaml(config.to_yaml()) == RunConfig.from_yaml(escaped) == config
    config.to_yaml().encode()
    if name[0] in "L溶":
        assert name in config.to_yaml()


def test_a_metric_is_named_in_any_case() -> None:
    assert RunConfig(data="a.csv", metric="MAE") == RunConfig(data="a.csv", metric="mae")
