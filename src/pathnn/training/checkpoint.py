"""Read and write the files of a run that hold tensors: the best model, and the state to resume from.

A model file also has the config of the run and the signature of its task, which new data is compared with.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.fingerprints import DataFingerprint, graph_fingerprints
from pathnn.data.metrics import OF_KIND
from pathnn.data.packed import PackedGraphs
from pathnn.data.readers.descriptors import Descriptors
from pathnn.data.readers.molecules import MoleculeFeatures
from pathnn.data.readers.smiles import FEATURES
from pathnn.data.task import Categorical, Features, TargetScale, Task, Vocabulary
from pathnn.files import FileError, flatten, read_tensors, unflatten, write_tensors
from pathnn.nn.model_file import MODEL, MODEL_VERSION, Model, describe, read_model
from pathnn.nn.path_nn import PathModel
from pathnn.provenance import versions
from pathnn.training.config import RunConfig
from pathnn.training.errors import CheckpointError, MismatchError, RunFolderError
from pathnn.training.run_folder import RESUMABLE, RunFolder, config_differences, writing


@dataclass(frozen=True)
class TaskSignature:
    """The properties of its task that a trained model must know, as plain values.

    `training_graphs` has the fingerprints of the graphs that it was trained on (`training_fingerprints`).

    >>> signature = TaskSignature("a", "regression", 1, [119, 9], None, "MAE", False, 1.0, ["logS"])
    >>> TaskSignature.from_dict(signature.to_dict()) == signature
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
    training_graphs: str = field(default="", compare=False)
    vocabulary: Vocabulary = field(default_factory=dict)
    descriptors: Descriptors | None = None

    @staticmethod
    def of(
        task: Task, scale: TargetScale, data: DataFingerprint | None = None, training_graphs: str = ""
    ) -> TaskSignature:
        """Return the signature of a task whose targets were standardized with `scale`."""
        same = ("name", "target", "out_channels", "metric_name", "maximize", "scale", "descriptors")
        return TaskSignature(
            **{name: vars(task)[name] for name in same},
            node_features=feature_width(task.node_features),
            edge_features=feature_width(task.edge_features),
            classes=list(task.classes),
            target_mean=scale.mean,
            target_std=scale.std,
            data=data,
            training_graphs=training_graphs,
            vocabulary=dict(task.vocabulary),
        )

    @property
    def target_scale(self) -> TargetScale:
        """Return the transformation between outputs and targets."""
        return TargetScale(tuple(self.target_mean), tuple(self.target_std))

    @property
    def metric(self) -> str | None:
        """Return the name of the metric of training for `with_metric`; None if it is unknown."""
        metrics = OF_KIND.get(self.target, {})
        return next((name for name, info in metrics.items() if info.name == self.metric_name), None)

    @property
    def molecule_features(self) -> MoleculeFeatures:
        """Return which features of SMILES the model reads, if it reads any."""
        mine = self.node_features, self.edge_features
        known = {name: tuple(feature_width(entry) for entry in pair) for name, pair in FEATURES.items()}
        return next((name for name, sizes in known.items() if sizes == mine), "cip")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TaskSignature:
        """Return the signature that `to_dict` was called on."""
        try:
            found = {entry.name: values[entry.name] for entry in fields(cls) if entry.name in values}
            for name in ("target_mean", "target_std"):
                found[name] = tuple(found.get(name, ()))
            found["data"] = DataFingerprint.from_dict(found.get("data"))
            found["descriptors"] = Descriptors.from_dict(found.get("descriptors"))
            return cls(**found)
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"the signature of the task cannot be read: {error}.") from error

    def check_inputs(self, task: Task) -> None:
        """Raise `MismatchError` unless the model can read the features of `task`."""
        for name, expected, came in (
            ("vertex features", self.node_features, feature_width(task.node_features)),
            ("edge features", self.edge_features, feature_width(task.edge_features)),
        ):
            if not _fits(came, expected):
                raise MismatchError(
                    f"{task.name} has {_words(came)} as {name}, but the model was trained on {self.name} "
                    f"with {_words(expected)}. Give data of the same kind, or train a model on this data."
                )
        if self.descriptors not in (None, task.descriptors):
            raise MismatchError(
                f"the model reads {self.descriptors}, and {task.name} was read "
                f"{f'with {task.descriptors}' if task.descriptors else 'without'}: read it with "
                "load_data(descriptors=signature.descriptors)."
            )

    def check_smiles(self) -> None:
        """Raise `MismatchError` unless the model reads the features of SMILES."""
        atoms, bonds = map(feature_width, FEATURES[self.molecule_features])
        if not (_fits(atoms, self.node_features) and _fits(bonds, self.edge_features)):
            raise MismatchError(f"models of {self.name} do not read SMILES: train a model on a table of molecules.")

    def check_targets(self, task: Task) -> None:
        """Raise `MismatchError` unless the model's outputs can be compared with the targets of `task`."""
        if (task.target, task.out_channels) != (self.target, self.out_channels):
            raise MismatchError(
                f"{task.name} has {task.out_channels} outputs of the kind {task.target}, but the model was trained on "
                f"{self.name} for {self.out_channels} of the kind {self.target}. Name the target column that it was "
                "trained on (--target), or use predict, which needs no targets."
            )


def feature_width(features: Features | None) -> int | list[int] | None:
    """Return the number of features, or the sizes of categories; None without features."""
    if isinstance(features, Categorical):
        return list(features.sizes)
    return None if features is None else features.channels


def _fits(came: int | list[int] | None, expected: int | list[int] | None) -> bool:
    """Return whether widths are equal; categories need as many columns, with no more values than in training."""
    if isinstance(came, list) and isinstance(expected, list):
        return len(came) == len(expected) and all(a <= b for a, b in zip(came, expected, strict=True))
    return came == expected


def _words(features: int | list[int] | None) -> str:
    if isinstance(features, list):
        return f"categories of sizes {features}"
    return "nothing" if features is None else f"{features} numbers"


STATE, STATE_VERSION = "pathnn-state", 1
"""The format of a state; raise the version when the meaning of its content changes."""

MOST = 200_000
"""Fingerprints of more training graphs are not kept: they would be larger than the model."""


def training_fingerprints(graphs: PackedGraphs, index: Tensor) -> str:
    """Return the fingerprints of the graphs `index` as text for `TaskSignature`; "" for more than `MOST` graphs."""
    if index.numel() > MOST:
        return ""
    prints = np.unique(graph_fingerprints(graphs.subset(index.cpu()))).astype("<u8")
    return base64.b64encode(prints.tobytes()).decode()


def join_fingerprints(texts: Sequence[str]) -> str:
    """Return the fingerprints of several training parts together, as `training_fingerprints` does of one."""
    parts = [np.frombuffer(base64.b64decode(text), dtype="<u8") for text in texts]
    return base64.b64encode(np.unique(np.concatenate(parts)).tobytes()).decode()


def training_overlap(signature: TaskSignature, task: Task, index: Tensor | None = None) -> Tensor | None:
    """Return for each of the graphs `index` (None: all) whether it was in the training data of a model.

    The numbering of the vertices does not matter. Returns None if the model's file has no fingerprints.

    ```python
    trained = load_model(Path("run/model.safetensors"))
    overlap = training_overlap(trained.signature, load_data("new.csv", targets=[]))
    ```
    """
    if not signature.training_graphs:
        return None
    graphs = task.graphs if index is None else task.graphs.subset(index)
    before = np.frombuffer(base64.b64decode(signature.training_graphs), dtype="<u8")
    return torch.from_numpy(np.isin(graph_fingerprints(graphs), before))


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model, in evaluation mode, with the config of its run and the signature of its task."""

    model: Model
    config: RunConfig
    signature: TaskSignature
    epoch: int
    val_score: float
    versions: Mapping[str, str | None]
    test_score: float | None = None


def save_model(path: Path, trained: TrainedModel, weights: Mapping[str, Tensor] | None = None) -> None:
    """Write a trained model, with the `weights` of another epoch if they are given."""
    meta = {
        "model": describe(trained.model),
        "config": trained.config.to_dict(),
        "task": trained.signature.to_dict(),
        "epoch": trained.epoch,
        "val_score": trained.val_score,
        "test_score": trained.test_score,
        "versions": dict(trained.versions),
    }
    with writing(path):
        tensors = trained.model.state_dict() if weights is None else weights
        write_tensors(path, tensors, kind=MODEL, version=MODEL_VERSION, meta=meta)


def load_model(path: Path | str) -> TrainedModel:
    """Read a model that `save_model` wrote. A file from a stranger cannot execute code.

    ```python
    trained = load_model("run/model.safetensors")
    trained.model, trained.config, trained.val_score
    ```
    """
    path = Path(path)
    with _reading(path):
        model, meta = read_model(path)
        config = RunConfig.from_dict(meta["config"])
        sample = config.max_paths_per_source
        if sample is not None and isinstance(model, PathModel):
            model.path_options = replace(model.path_options, max_paths_per_source=sample, seed=None)
        scores = int(meta["epoch"]), float(meta["val_score"]), dict(meta["versions"])
        test_score = meta.get("test_score")  # not in the files of earlier versions
        return TrainedModel(model, config, TaskSignature.from_dict(meta["task"]), *scores, test_score)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise `CheckpointError` for an error while a file of a run is read."""
    try:
        yield
    except FileError as error:
        again = "Expected a file that pathnn train wrote; to replace it, train again with --overwrite."
        raise CheckpointError(f"{error} {again}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} does not hold a whole run that this version can read: {error}") from error


def save_state(path: Path, state: Mapping[str, Any], *, config: RunConfig) -> None:
    """Write the state of a run, as `TrainState.state_dict` returns it."""
    tensors: dict[str, Tensor] = {}
    tree = flatten(dict(state), "state", tensors)
    meta = {"state": tree, "config": config.to_dict(), "versions": versions()}
    with writing(path):
        write_tensors(path, tensors, kind=STATE, version=STATE_VERSION, meta=meta)


def load_state(path: Path) -> dict[str, Any]:
    """Read a state that `save_state` wrote, on the CPU."""
    with _reading(path):
        tensors, meta = read_tensors(path, kind=STATE, version=STATE_VERSION)
        return dict(unflatten(meta["state"], tensors))


def checked_config(folder: RunFolder) -> RunConfig:
    """Read `config.yaml`, and raise `RunFolderError` if the state or the model has another; `RESUMABLE` may differ."""
    config, file = folder.read_config(), folder.state if folder.state.exists() else folder.model
    if not file.exists():
        return config  # nothing was trained yet
    kind, version = (STATE, STATE_VERSION) if file == folder.state else (MODEL, MODEL_VERSION)
    with _reading(file):
        trained = RunConfig.from_dict(read_tensors(file, kind=kind, version=version)[1]["config"])
    different = [
        f"{name} is {now!r} there and {before!r} in {file.name}"
        for name, now, before in config_differences(config, trained)
        if name not in RESUMABLE
    ]
    if different:
        raise RunFolderError(
            f"{folder.config} was changed after the run began: {'; '.join(different)}. Restore these values in "
            "config.yaml, or start a new run in another folder."
        )
    return config
