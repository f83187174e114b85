"""The model of a run, made to fit its task, and what is written of it into a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from pathnn.checks import check_choice
from pathnn.data.task import Categorical, Features, Task
from pathnn.engine.config import RunConfig
from pathnn.engine.errors import CheckpointError, RunError
from pathnn.engine.seeding import data_key, seed_torch
from pathnn.nn import Baseline, BaselineConfig, PathNN, PathNNConfig, paper_config

Model = PathNN | Baseline


def build_model(config: RunConfig, task: Task) -> Model:
    """The untrained model of a run: its weights come from the run's seed, its widths from the task.

    ```python
    task = load_dataset("csl")
    model = build_model(RunConfig(data="csl", collection="sp+", k=3), task)
    ```
    """
    seed_torch(config, data_key(config, task), "weights")
    options = {**_fitting(task), **config.options}
    try:
        if config.model == "pathnn":
            paths = {"collection": config.collection, "k": config.k}
            return PathNN.from_config({**_preset(config), **options, **paths})
        return Baseline.from_config({"hidden_channels": 64, **options, "name": config.model})
    except TypeError as error:
        raise RunError(f"an option of the model has a value of the wrong type: {error}.") from error


def describe(model: Model) -> dict[str, Any]:
    """A model without its weights, as plain values.

    >>> describe(Baseline("gin", 3, 8, 2))["class"]
    'Baseline'
    """
    return {"class": type(model).__name__, "config": model.config.to_dict()}


def from_description(description: Mapping[str, Any]) -> Model:
    """The untrained model that `describe` described."""
    makers: dict[str, type[PathNN] | type[Baseline]] = {"PathNN": PathNN, "Baseline": Baseline}
    try:
        maker = makers[check_choice("class", description["class"], tuple(makers))]
        return maker.from_config(description["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the checkpoint describes a model that this version cannot make: {error}") from error


def has_batch_norm(model: nn.Module) -> bool:
    """Whether a batch of one graph could be too little for this model to learn from."""
    return any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules())


def path_options(model: Model) -> PathNNConfig | None:
    """Which paths a model reads, None for a baseline."""
    return None if isinstance(model.config, BaselineConfig) else model.config


def _preset(config: RunConfig) -> dict[str, Any]:
    if config.preset is None:
        return {"hidden_channels": 64}
    return paper_config(config.preset, collection=config.collection, k=config.k, variant=config.variant).to_dict()


def _fitting(task: Task) -> dict[str, Any]:
    """What the data decides: widths, kinds of encoders, number of outputs."""
    if task.loss is None or task.target == "none":
        raise RunError(
            f"{task.name} has no targets to train on ({task.notes}). For a CSV name the column: --target COLUMN "
            "(in Python: target=(COLUMN,))."
        )
    if task.target == "class" and task.out_channels < 2:
        raise RunError(f"{task.name} has one class only: there is nothing to tell apart. Name another --target.")
    check_targets(task)
    if task.node_features is None:
        raise RunError(f"{task.name} has no vertex features: give graphs an x, or pack them with ones.")
    return {
        "in_channels": _width(task.node_features),
        "encoder": "categorical" if isinstance(task.node_features, Categorical) else "mlp",
        "edge_channels": None if task.edge_features is None else _width(task.edge_features),
        "out_channels": task.out_channels,
    }


def check_targets(task: Task) -> None:
    """Raise `RunError` where the targets teach nothing: all the same, or no two graphs of a class."""
    y = task.graphs.y
    if y is None or len(task.graphs) < 2:
        return
    if task.target == "class" and torch.unique(y).numel() == len(task.graphs):
        raise RunError(f"{task.name} has {len(y)} classes for as many graphs: expected a target that graphs share.")
    first = y.nan_to_num(-torch.inf).amax(dim=0) if task.partly_known else y[:1]
    if task.target != "class" and bool(((y == first) | (y.isnan() & task.partly_known)).all()):
        raise RunError(f"all targets of {task.name} are the same: there is nothing to learn. Name another --target.")


def _width(features: Features) -> int | tuple[int, ...]:
    return features.sizes if isinstance(features, Categorical) else features.channels
