"""Read and write the network of a model file: its config and its weights.

`pathnn.training.checkpoint` also writes these files, and adds the config of the run and the signature of the task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pathnn.checks import check_choice
from pathnn.files import FileError, read_tensors, replace_file, sha256, write_tensors
from pathnn.hub import CONFIG, WEIGHTS, find_model
from pathnn.nn.baselines import Baseline
from pathnn.nn.deep_path_nn import DeepPathNN
from pathnn.nn.path_nn import PathModel, PathNN

Model = PathNN | DeepPathNN | Baseline

MODEL, MODEL_VERSION = "pathnn-model", 1
"""The format of a model file; raise the version when the meaning of its content changes."""


def describe(model: PathModel | Baseline) -> dict[str, Any]:
    """Return the class and the config of a model as plain values."""
    return {"class": type(model).__name__, "config": model.config.to_dict()}


def from_description(description: Mapping[str, Any]) -> Model:
    """Return an untrained model as `describe` described it."""
    classes: dict[str, type[Model]] = {kind.__name__: kind for kind in (PathNN, DeepPathNN, Baseline)}
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


def save_pretrained(model: PathModel, folder: Path) -> None:
    """Write the weights of a model and its config, with the checksum of the weights, into a folder."""
    description, weights = describe(model), model.state_dict()
    try:
        from_description(description).to(next(model.parameters()).dtype).load_state_dict(weights)
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"the config of this model does not describe it, so it could not be loaded again: {error} Save its "
            "state_dict() instead."
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / WEIGHTS
    write_tensors(file, weights, kind=MODEL, version=MODEL_VERSION, meta={"model": description})
    replace_file(folder / CONFIG, json.dumps({**description, "sha256": sha256(file)}, indent=2))


def load_pretrained(source: str | PathLike[str]) -> Model:
    """Return a trained model from a name, a folder or a repository of the Hub, in evaluation mode."""
    file = find_model(source)
    model, _ = read_model(file)
    config = file.with_name(CONFIG)
    if file.name == WEIGHTS and config.exists():  # a run folder has none
        try:
            expected = json.loads(config.read_bytes())["sha256"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(
                f"{config} is damaged: expected the JSON that save_pretrained wrote ({error!r})."
            ) from error
        if sha256(file) != expected:
            raise FileError(f"{file} is not the file of {config}: its checksum differs. Use a copy of both.")
    return model
