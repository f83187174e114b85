"""The runs that each experiment asks for stay the same: a changed key would make finished runs missing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from pathnn_reproduction.experiments import TABLES, get_experiment

STORED = json.loads((Path(__file__).parent / "plans.json").read_text())


@pytest.mark.parametrize("name", TABLES)
def test_number_and_hash_of_the_keys(name: str) -> None:
    """If a change is intended, write the new values into plans.json, and say why in the commit."""
    keys = [list(spec.key.values()) for spec in get_experiment(name).specs]
    assert [len(keys), hashlib.sha256(json.dumps(keys).encode()).hexdigest()] == STORED[name]
