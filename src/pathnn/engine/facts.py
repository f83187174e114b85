"""The facts of a task that a trained model needs later: written into its file, compared with new data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pathnn.data.fingerprints import DataPrint
from pathnn.data.metrics import METRICS
from pathnn.data.readers.smiles import FEATURES, MoleculeFeatures
from pathnn.data.targets import TargetScale
from pathnn.data.task import Categorical, Features, Task, Vocabulary
from pathnn.engine.errors import CheckpointError, MismatchError


@dataclass(frozen=True)
class TaskFacts:
    """What a model was trained for, as plain values.

    >>> facts = TaskFacts("a", "regression", 1, [119, 9], None, "MAE", False, 1.0, ["logS"])
    >>> TaskFacts.from_dict(facts.to_dict()) == facts
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
    data: DataPrint | None = None
    seen: str = field(default="", compare=False)
    vocabulary: Vocabulary = field(default_factory=dict)

    @staticmethod
    def of(task: Task, scale: TargetScale, data: DataPrint | None = None, seen: str = "") -> TaskFacts:
        """The facts of a task, the scale of its targets, the print of its data, and those of the graphs to train on
        (`pathnn.engine.seen`)."""
        return TaskFacts(
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
    def from_dict(cls, values: Mapping[str, Any]) -> TaskFacts:
        """The inverse of `to_dict`."""
        known = {entry.name for entry in fields(cls)}
        try:
            facts = {name: value for name, value in values.items() if name in known}
            for name in ("target_mean", "target_std"):
                facts[name] = tuple(facts.get(name, ()))
            facts["data"] = DataPrint.from_dict(facts.get("data"))
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
