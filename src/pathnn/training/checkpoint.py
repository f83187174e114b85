"""The facts of a task that a trained model needs later: written into its file, compared with new data."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.fingerprints import DataFingerprint, graph_fingerprints
from pathnn.data.metrics import METRICS
from pathnn.data.packed import PackedGraphs
from pathnn.data.readers.atom_features import FEATURES, MoleculeFeatures
from pathnn.data.targets import TargetScale
from pathnn.data.task import Categorical, Features, Task, Vocabulary
from pathnn.provenance import installed_version
from pathnn.training.config import RunConfig
from pathnn.training.errors import CheckpointError, MismatchError
from pathnn.training.setup import Model, describe, from_description
from pathnn.training.tensor_file import read_tensors, write_tensors
from pathnn.training.tree import flatten, unflatten


@dataclass(frozen=True)
class TaskSignature:
    """What a model was trained for, as plain values.

    >>> facts = TaskSignature("a", "regression", 1, [119, 9], None, "MAE", False, 1.0, ["logS"])
    >>> TaskSignature.from_dict(facts.to_dict()) == facts
    True
    """

    name: str
    target: str
    out_channels: int
    node_features: int | list[int] | None
    edge_features: int | list[int] | None
    metric_name: str
    maximize: bool
    scale: float
    classes: list[str]
    target_mean: tuple[float, ...] = ()
    target_std: tuple[float, ...] = ()
    data: DataFingerprint | None = None
    seen: str = field(default="", compare=False)
    vocabulary: Vocabulary = field(default_factory=dict)

    @staticmethod
    def of(task: Task, scale: TargetScale, data: DataFingerprint | None = None, seen: str = "") -> TaskSignature:
        """The facts of a task, the scale of its targets, the print of its data, and those of the graphs to train on
        (`pathnn.training.checkpoint`)."""
        return TaskSignature(
            name=task.name,
            target=task.target,
            out_channels=task.out_channels,
            node_features=_features(task.node_features),
            edge_features=_features(task.edge_features),
            metric_name=task.metric_name,
            maximize=task.maximize,
            scale=task.scale,
            classes=list(task.classes),
            target_mean=scale.mean,
            target_std=scale.std,
            data=data,
            seen=seen,
            vocabulary=dict(task.vocabulary),
        )

    @property
    def target_scale(self) -> TargetScale:
        """How outputs become targets."""
        return TargetScale(tuple(self.target_mean), tuple(self.target_std))

    @property
    def metric(self) -> str | None:
        """The name of the metric of training, as `with_metric` takes it; None where there is nothing to choose."""
        return next((name for name, facts in METRICS.items() if facts.name == self.metric_name), None)

    @property
    def molecule_features(self) -> MoleculeFeatures:
        """The features of SMILES that the model can read, if it can read any."""
        mine = self.node_features, self.edge_features
        known = {name: tuple(_features(entry) for entry in pair) for name, pair in FEATURES.items()}
        return next((name for name, sizes in known.items() if sizes == mine), "cip")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TaskSignature:
        """The inverse of `to_dict`."""
        known = {entry.name for entry in fields(cls)}
        try:
            facts = {name: value for name, value in values.items() if name in known}
            for name in ("target_mean", "target_std"):
                facts[name] = tuple(facts.get(name, ()))
            facts["data"] = DataFingerprint.from_dict(facts.get("data"))
            return cls(**facts)
        except TypeError as error:
            raise CheckpointError(f"the facts of the task cannot be read: {error}.") from error

    def check_inputs(self, task: Task) -> None:
        """Raise `MismatchError` unless the model can read the features of `task`."""
        for name, expected, came in (
            ("vertex features", self.node_features, _features(task.node_features)),
            ("edge features", self.edge_features, _features(task.edge_features)),
        ):
            if not _fits(came, expected):
                raise MismatchError(
                    f"{task.name} has {_words(came)} as {name}, but the model was trained on {self.name} "
                    f"with {_words(expected)}. Give data of the same kind, or train a model on this data."
                )

    def check_targets(self, task: Task) -> None:
        """Raise `MismatchError` unless the model's outputs can be compared with the targets of `task`."""
        if (task.target, task.out_channels) != (self.target, self.out_channels):
            raise MismatchError(
                f"{task.name} asks for {task.target} of {task.out_channels}, but the model was trained on "
                f"{self.name} for {self.target} of {self.out_channels}. Name the target column that it was "
                "trained on (--target), or use predict, which needs no targets."
            )


def _features(features: Features | None) -> int | list[int] | None:
    if isinstance(features, Categorical):
        return list(features.sizes)
    return None if features is None else features.channels


def _fits(came: int | list[int] | None, expected: int | list[int] | None) -> bool:
    """Equal widths; of categories, as many columns with no more values than the model knows."""
    if isinstance(came, list) and isinstance(expected, list):
        return len(came) == len(expected) and all(a <= b for a, b in zip(came, expected, strict=True))
    return came == expected


def _words(features: int | list[int] | None) -> str:
    if isinstance(features, list):
        return f"categories of sizes {features}"
    return "nothing" if features is None else f"{features} numbers"


Leg = dict[str, Any]
"""`device`, `commit`, and `epochs`: the number of the last epoch that was done there."""


@dataclass(frozen=True)
class RunHistory:
    """The legs of a run: those `before`, and the one under way.

    >>> RunHistory("cpu", "a1").until(3)
    [{'device': 'cpu', 'commit': 'a1', 'epochs': 3}]
    >>> RunHistory.after([{"device": "cpu", "commit": "a1", "epochs": 3}], 3, "cpu", "a1").until(7)
    [{'device': 'cpu', 'commit': 'a1', 'epochs': 7}]
    """

    device: str
    commit: str | None
    before: tuple[Leg, ...] = ()

    @staticmethod
    def after(before: Sequence[Leg] | None, epoch: int, device: str, commit: str | None) -> RunHistory:
        """Those of a run that goes on after `epoch`; `before` is None where its state does not say."""
        legs = [{"device": None, "commit": None, "epochs": epoch}] if before is None else list(before)
        if legs and (legs[-1]["device"], legs[-1]["commit"]) == (device, commit):
            legs.pop()
        return RunHistory(device, commit, tuple(legs))

    def until(self, epoch: int) -> list[Leg]:
        """All of them, when `epoch` is done; one that has brought no epoch is none."""
        done = self.before[-1]["epochs"] if self.before else 0
        here = {"device": self.device, "commit": self.commit, "epochs": epoch}
        return [*self.before, *([here] if epoch > done else [])]


MOST = 200_000
"""Prints of more graphs than that would be larger than the model."""


def training_fingerprints(graphs: PackedGraphs, index: Tensor) -> str:
    """The prints of the graphs `index`, as text for `TaskSignature.seen`; "" where there are too many."""
    if index.numel() > MOST:
        return ""
    prints = np.unique(graph_fingerprints(graphs.subset(index.cpu()))).astype("<u8")
    return base64.b64encode(prints.tobytes()).decode()


def training_overlap(facts: TaskSignature, task: Task, index: Tensor | None = None) -> Tensor | None:
    """For each of the graphs `index` of a task (None: all) whether the model was trained on it, or on one that looks
    the same whatever the order of its vertices; None where the model's file does not say.

    ```python
    trained = load_model(Path("run/model.safetensors"))
    seen = training_overlap(trained.facts, load_data("new.csv", targets=[]))
    ```
    """
    if not facts.seen:
        return None
    graphs = task.graphs if index is None else task.graphs.subset(index)
    before = np.frombuffer(base64.b64decode(facts.seen), dtype="<u8")
    return torch.from_numpy(np.isin(graph_fingerprints(graphs), before))


MODEL, MODEL_VERSION = "pathnn-model", 1


STATE, STATE_VERSION = "pathnn-state", 1
"""Names of the formats. Versions are raised when the meaning of what is written changes."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model, in evaluation mode, with the run that made it and the task it was made for."""

    model: Model
    config: RunConfig
    facts: TaskSignature
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
    facts: TaskSignature,
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


def load_model(path: Path) -> TrainedModel:
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
        return TrainedModel(
            model.eval(),
            RunConfig.from_dict(meta["config"]),
            TaskSignature.from_dict(meta["task"]),
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
