"""The hash that identifies the config of a results line. It does not depend on `RunConfig`.

`results/*.jsonl` were written with the names and defaults of version 1. `RunConfig` may rename an option (add the new
name to `RENAMED`), change a default (nothing to do) or get an option (add it to `ADDED`); old lines stay valid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pathnn.training.config import RunConfig

V1_DEFAULTS: Mapping[str, Any] = MappingProxyType({
    "data": "", "fold": 0, "split_seed": None, "split_by": None, "smiles": None, "target": None, "kind": None,
    "skip_invalid": False, "metric": None, "model": "pathnn", "options": {}, "preset": None, "variant": "paper",
    "collection": "ap", "k": 4, "batch_size": 32, "drop_single": None, "max_entries": "auto", "epochs": 200,
    "lr": 1e-3, "weight_decay": 0.0, "patience": None, "min_lr": None, "stop_at": None, "plateau_factor": None,
    "plateau_patience": 20, "plateau_direction": "metric", "clip": None, "standardize": False, "seed": 0,
    "device": "auto", "devices": 1, "num_nodes": 1, "precision": "32-true",
})  # fmt: skip
"""The defaults of `RunConfig` when the first 1,794 lines were written. Never edit this table."""

ADDED: Mapping[str, Any] = MappingProxyType({})
"""Options added to `RunConfig` later, each with the value that changes nothing. Never change a value."""

RENAMED: Mapping[str, str] = MappingProxyType({})
"""Today's name of an option of `RunConfig` -> its name in `V1_DEFAULTS` or `ADDED`."""

PLACE = ("device", "devices", "num_nodes", "max_entries")
"""Options that say where and in what pieces a run is computed, and not what is computed."""


def v1_options(config: RunConfig) -> dict[str, Any]:
    """Return the options of a config under the names that results files use.

    >>> v1_options(RunConfig(data="csl"))["lr"]
    0.001
    """
    return {RENAMED.get(name, name): value for name, value in config.to_dict().items()}


def config_hash(options: Mapping[str, Any]) -> str:
    """Hash what a run computes: the options that differ from `V1_DEFAULTS` and `ADDED`, without those of `PLACE`.

    `options` has the names of a results file, as `v1_options` and the lines of results files have them.

    >>> config_hash({"data": "csl", "device": "cpu"}) == config_hash({"data": "csl", "max_entries": 1000, "k": 4})
    True
    >>> config_hash({"data": "csl"}) == config_hash({"data": "csl", "k": 3})
    False
    """
    defaults = {**V1_DEFAULTS, **ADDED}
    chosen = {
        name: value
        for name, value in options.items()
        if name not in PLACE and (name not in defaults or value != defaults[name])
    }
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:16]
