"""The two tensor files of a run: the best model, to use and share, and the last state, to go on from."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from pathnn.engine.build import Model, describe, from_description
from pathnn.engine.config import RunConfig
from pathnn.engine.errors import CheckpointError
from pathnn.engine.facts import TaskFacts
from pathnn.engine.tensor_file import read_tensors, write_tensors
from pathnn.engine.tree import flatten, unflatten
from pathnn.provenance import installed_version

MODEL, MODEL_VERSION = "pathnn-model", 1
STATE, STATE_VERSION = "pathnn-state", 1
"""Names of the formats. Versions are raised when the meaning of what is written changes."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, in evaluation mode, with the run that made it and the task it was made for."""

    model: Model
    config: RunConfig
    facts: TaskFacts
    epoch: int
    val_score: float
    versions: Mapping[str, str | None]
    test_score: float | None = None


def save_model(
    path: Path,
    model: Model,
    weights: Mapping[str, Tensor],
    *,
    config: RunConfig,
    facts: TaskFacts,
    epoch: int,
    val_score: float,
    test_score: float | None = None,
    made_with: Mapping[str, str | None] | None = None,
) -> None:
    """Write a model with the `weights` of one of its epochs. `made_with`: the versions of what trained it, if not
    those here.
    """
    meta = {
        "model": describe(model),
        "config": config.to_dict(),
        "task": facts.to_dict(),
        "epoch": epoch,
        "val_score": val_score,
        "test_score": test_score,
        "versions": versions() if made_with is None else dict(made_with),
    }
    write_tensors(path, weights, kind=MODEL, version=MODEL_VERSION, meta=meta)


def load_model(path: Path) -> Trained:
    """Read a model that `save_model` wrote. A file from a stranger cannot execute code.

    ```python
    trained = load_model(Path("run/model.safetensors"))
    trained.model, trained.config, trained.val_score
    ```
    """
    tensors, meta = read_tensors(path, kind=MODEL, version=MODEL_VERSION)
    try:
        model = from_description(meta["model"])
        dtype = next((tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()), None)
        model.to(dtype).load_state_dict(tensors)
        return Trained(
            model.eval(),
            RunConfig.from_dict(meta["config"]),
            TaskFacts.from_dict(meta["task"]),
            int(meta["epoch"]),
            float(meta["val_score"]),
            dict(meta["versions"]),
            meta.get("test_score"),  # not in the files of earlier versions
        )
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} does not hold a whole model: {error}") from error


def save_state(path: Path, state: Mapping[str, Any], *, config: RunConfig) -> None:
    """Write the state of a run, as `TrainState.state_dict` gives it."""
    tensors: dict[str, Tensor] = {}
    tree = flatten(dict(state), "state", tensors)
    meta = {"state": tree, "config": config.to_dict(), "versions": versions()}
    write_tensors(path, tensors, kind=STATE, version=STATE_VERSION, meta=meta)


def load_state(path: Path) -> dict[str, Any]:
    """Read a state that `save_state` wrote, on the CPU."""
    tensors, meta = read_tensors(path, kind=STATE, version=STATE_VERSION)
    try:
        state = unflatten(meta["state"], tensors)
        return dict(state)
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} does not hold a whole state: {error!r}.") from error


def config_of_model(path: Path) -> RunConfig:
    """The config of the run that wrote a model file; the file's checksum vouches for it."""
    return _config(path, read_tensors(path, kind=MODEL, version=MODEL_VERSION)[1])


def config_of_state(path: Path) -> RunConfig:
    """The config of the run that wrote a state; the file's checksum vouches for it."""
    return _config(path, read_tensors(path, kind=STATE, version=STATE_VERSION)[1])


def _config(path: Path, meta: Mapping[str, Any]) -> RunConfig:
    try:
        return RunConfig.from_dict(meta["config"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path} holds no config that this version can read: {error}") from error


@cache
def versions() -> dict[str, str | None]:
    """The versions of what trains: Python and the packages that numbers depend on."""
    return {"python": platform.python_version(), **{name: installed_version(name) for name in PACKAGES}}


PACKAGES = ("pathnn", "torch", "torch_geometric", "lightning", "torchmetrics", "numba", "numpy")
