"""The config of a run names the metrics, models and splits of other packages, and imports none of them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from pathnn.data.metrics import METRIC_NAMES
from pathnn.data.readers.molecules import Clean
from pathnn.nn.baselines import BaselineName
from pathnn.training import RunError, config
from pathnn.training.config import RunConfig


def test_names_are_those_of_other_packages() -> None:
    assert sorted(config.METRICS) == sorted(METRIC_NAMES)
    assert ("pathnn", *get_args(BaselineName)) == config.MODELS
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
    ],
)
def test_values_of_a_wrong_type_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(RunError, match=message):
        RunConfig.from_dict({"data": "a.csv", **options})


def test_names_of_columns_that_yaml_reads_as_numbers_are_text() -> None:
    assert RunConfig.from_yaml("data: a.csv\ndescriptors: [mass, 2024]").descriptors == ("mass", "2024")
