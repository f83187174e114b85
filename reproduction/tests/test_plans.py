"""The runs that each experiment asks for stay the same: a changed key would make finished runs missing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from pathnn_reproduction.experiments import TARGETS, get_experiment

STORED = json.loads((Path(__file__).parent / "plans.json").read_text())


@pytest.mark.parametrize("name", TARGETS)
def test_number_and_hash_of_the_keys(name: str) -> None:
    """If a change is intended, write the new values into plans.json, and say why in the commit."""
    keys = [run.key for run in get_experiment(name).runs]
    assert [len(keys), hashlib.sha256(json.dumps(keys).encode()).hexdigest()] == STORED[name]
