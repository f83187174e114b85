"""The config of a run names the metrics, models and splits of other packages, and imports none of them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

from pathnn.data.metrics import METRIC_NAMES
from pathnn.data.readers.clean import Clean
from pathnn.nn.baselines import BaselineName
from pathnn.training import config


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
