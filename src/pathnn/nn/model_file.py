"""Read the network of a model file: its config and its weights.

`pathnn.training.checkpoint` writes these files, and adds the config of the run and the signature of the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathnn.checks import check_choice
from pathnn.files import FileError, read_tensors
from pathnn.hub import pretrained_file
from pathnn.nn.baselines import Baseline
from pathnn.nn.path_nn import PathNN

Model = PathNN | Baseline

MODEL, MODEL_VERSION = "pathnn-model", 1
"""The format of a model file; raise the version when the meaning of its content changes."""


def describe(model: Model) -> dict[str, Any]:
    """Return the class and the config of a model as plain values.

    >>> describe(Baseline("gin", 3, 8, 2))["class"]
    'Baseline'
    """
    return {"class": type(model).__name__, "config": model.config.to_dict()}


def from_description(description: Mapping[str, Any]) -> Model:
    """Return an untrained model as `describe` described it."""
    classes: dict[str, type[PathNN] | type[Baseline]] = {"PathNN": PathNN, "Baseline": Baseline}
    name = check_choice("class", description["class"], tuple(classes))
    return classes[name].from_config(description["config"])


def read_model(path: Path) -> tuple[Model, dict[str, Any]]:
    """Return the network of a model file, in evaluation mode, and the metadata; raise `FileError` otherwise."""
    tensors, meta = read_tensors(path, kind=MODEL, version=MODEL_VERSION)
    try:
        model = from_description(meta["model"])
        dtype = next((tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()), None)
        model.to(dtype).load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise FileError(f"{path} has no model that this version can read: {error}") from error
    return model.eval(), meta


def load_pretrained(name: str) -> PathNN:
    """Return a trained PathNN by name, in evaluation mode."""
    model, _ = read_model(pretrained_file(name))
    if not isinstance(model, PathNN):
        raise ValueError(f"the trained model {name!r} is a {type(model).__name__}, not a PathNN: use load_model.")
    return model
