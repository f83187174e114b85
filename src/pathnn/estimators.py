"""Estimators of scikit-learn that train on molecules or graphs: `PathRegressor` and `PathClassifier`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import assert_all_finite, check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "the estimators need scikit-learn, which is not installed: pip install 'pathnn[chem]'.", name=error.name
    ) from error

from pathnn.checks import check_choice
from pathnn.data.errors import BadRowsError, DataError
from pathnn.data.fingerprints import first_copies
from pathnn.data.load import task_from_graphs
from pathnn.data.packed import from_pyg
from pathnn.data.readers.descriptors import Descriptors
from pathnn.data.readers.molecules import Clean
from pathnn.data.readers.smiles import FEATURES, smiles_graphs
from pathnn.data.readers.table import Table
from pathnn.data.splits import deal
from pathnn.data.task import Split, TargetKind, Task, with_metric
from pathnn.device import resolve
from pathnn.inference.predictor import BATCH_SIZE
from pathnn.paths.options import Collection
from pathnn.provenance import versions
from pathnn.training.checkpoint import TaskSignature, TrainedModel, load_model, save_model, training_fingerprints
from pathnn.training.config import DESCRIPTORS
from pathnn.training.ensemble import predict
from pathnn.training.loop import Epoch, TrainState, fabric_for, train
from pathnn.training.recipes import fill_in
from pathnn.training.setup import build_model, make_loaders

Array = np.ndarray[Any, np.dtype[Any]]

NAME = "X"
"""The name of the molecules in messages."""


@dataclass(kw_only=True, eq=False, repr=False)
class PathEstimator(BaseEstimator):
    """What both estimators share: their parameters, training in memory, outputs, files and pickles."""

    epochs: int | None = None
    k: int | None = None
    collection: Collection = "ap"
    hidden_channels: int = 64
    dropout: float = 0.0
    lr: float = 1e-3
    batch_size: int = 32
    descriptors: str | None = "auto"
    clean: Clean | None = None
    metric: str | None = None
    validation_fraction: float = 0.1
    settings: Mapping[str, Any] | None = None
    device: str = "auto"
    random_state: Any = None
    model_: TrainedModel = field(init=False)
    history_: list[Epoch] = field(init=False)

    def save(self, path: str | Path) -> None:
        """Write the model to a file that `pathnn predict`, `evaluate`, `explain` and `embed` read."""
        check_is_fitted(self)
        save_model(Path(path), self.model_)

    def _train(self, X: Any, y: Array, kind: TargetKind, names: Sequence[str]) -> None:
        """Train on targets `[rows, targets]` or classes `[rows]`, and keep the epoch that is best in validation."""
        given = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        seed = int(check_random_state(given.pop("random_state")).randint(2**31 - 1))
        share, settings = given.pop("validation_fraction"), dict(given.pop("settings") or {})
        if not 0 < share < 1:
            raise ValueError(f"validation_fraction={share}: expected a number between 0 and 1.")
        check_choice("descriptors", self.descriptors, ("auto", *DESCRIPTORS, None))
        if self.descriptors == "auto":
            given["descriptors"] = None if _are_graphs(_rows(X)) else "standard"
        described = None if given["descriptors"] is None else Descriptors.of(given["descriptors"])
        task = _read(X, self.clean, described)
        check_consistent_length(range(len(task.graphs)), y)
        groups, targets = first_copies(task.graphs), torch.tensor(y)
        part = deal(groups, (1 - share, share), y=targets if kind == "class" else None, seed=seed)
        if not part.any():
            raise ValueError(f"{NAME} has n_samples={len(y)}: expected at least ten, since some choose the epoch.")
        split = Split((part == 0).nonzero().flatten(), (part == 1).nonzero().flatten(), part[:0])
        if len(names) == 2 and kind == "class" and all(len(np.unique(y[i])) == 2 for i in (split.train, split.val)):
            kind, names, targets = "binary", (), targets.double()  # ROC-AUC chooses the epoch
        features = {"node_features": task.node_features, "edge_features": task.edge_features}
        graphs = replace(task.graphs, y=targets)
        made = task_from_graphs(graphs, name=NAME, kind=kind, targets=tuple(names), **features)
        task = with_metric(replace(made, splits=(split,), groups=groups, descriptors=described), self.metric)
        options = {name: given.pop(name) for name in ("hidden_channels", "dropout")} | settings.pop("options", {})
        chosen = {name: value for name, value in given.items() if value is not None}
        config = fill_in(NAME, task, {**chosen, "seed": seed, **settings}, options)
        fabric = fabric_for(config)
        with torch.random.fork_rng(devices=[]):  # leave the global generator as it is
            model = build_model(config, task)
            loaders = make_loaders(task, config, model, device=fabric.device)
            state = TrainState.start(model, config, fabric, maximize=task.maximize)
            self.history_ = list(train(model, loaders, config, state=state))
        assert state.best is not None
        model.load_state_dict(state.best.weights)
        signature = TaskSignature.of(task, loaders.scale, loaders.data, training_fingerprints(task.graphs, split.train))
        found = state.best.epoch, state.best.val_score
        self.model_ = TrainedModel(model.eval(), config, signature, *found, versions())

    def _outputs(self, X: Any) -> Tensor:
        """Return the outputs of the network, `[rows, outputs]`, in the unit of the targets, as float64."""
        check_is_fitted(self)
        config, signature = self.model_.config, self.model_.signature
        task = _read(X, config.clean, signature.descriptors)
        trained = replace(self.model_, config=replace(config, batch_size=max(config.batch_size, BATCH_SIZE)))
        out = predict(trained, task, device=resolve(self.device))
        return signature.target_scale.decode(out).double().cpu()

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters, and the model as the content of a file without code."""
        state = dict(super().__getstate__())
        if "model_" in state:
            with tempfile.TemporaryDirectory() as folder:
                self.save(Path(folder) / "model")
                state["model_"] = (Path(folder) / "model").read_bytes()
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        state = dict(state)
        if "model_" in state:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "model").write_bytes(state["model_"])
                state["model_"] = load_model(Path(folder) / "model")
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.target_tags.multi_output = isinstance(self, RegressorMixin)
        return tags


class PathRegressor(RegressorMixin, PathEstimator):
    """Predict numbers for molecules or graphs, with the interface of scikit-learn.

    `X` is a list, array, pandas Series or one-column DataFrame of SMILES, RDKit molecules or PyG graphs. A molecule
    that cannot be read raises `ValueError`, which names its place. Training writes no files.

    Args:
        epochs: the largest number of epochs; None as in `pathnn train`, 30 for molecules.
        k: the largest path length, in edges; None as in `pathnn train`, 4 for molecules.
        collection, hidden_channels, dropout, lr, batch_size, device: as in `pathnn train`.
        descriptors: what the model also reads, "standard", "rdkit" or "morgan"; None for nothing; "auto" is "standard"
            for molecules.
        clean: how molecules are cleaned, "salts" or "tautomers"; None for not at all.
        metric: what chooses the epoch (`pathnn.data.metrics`); None for the default of the targets.
        validation_fraction: the part of the data that chooses the epoch; copies of a molecule stay together.
        settings: other fields of `RunConfig`, such as `{"patience": 10, "options": {"readout": "sum"}}`.
        random_state: a seed, a generator of numpy, or None.

    Attributes:
        model_: the `TrainedModel` of the best epoch.
        history_: the `Epoch` of each epoch.

    >>> smiles = ["C" * n for n in range(1, 21)]
    >>> model = PathRegressor(epochs=2, random_state=0).fit(smiles, range(20))
    >>> model.predict(["CCO", "CC"]).shape
    (2,)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train on targets `[rows]` or `[rows, targets]`; of several targets some may be NaN, which is unknown."""
        if y is None:
            raise ValueError("PathRegressor requires y to be passed, but the target y is None.")
        values = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
        columns = values.reshape(len(values), -1)
        if columns.shape[1] == 1:
            assert_all_finite(columns, input_name="y")
        self._train(X, columns, "regression", _names(y))
        self._flat = values.ndim == 1
        return self

    def predict(self, X: Any) -> Array:
        """Return predicted numbers, in the shape of the targets of `fit`."""
        out = self._outputs(X).numpy()
        return out[:, 0] if self._flat else out


class PathClassifier(ClassifierMixin, PathEstimator):
    """Predict classes or labels for molecules or graphs, with the interface of scikit-learn.

    The parameters are those of `PathRegressor`. Also has `classes_`: the classes, or the numbers of the labels.

    >>> smiles = ["C" * n for n in range(1, 21)] + ["C" * n + "O" for n in range(20)]
    >>> model = PathClassifier(epochs=2, random_state=0).fit(smiles, ["alkane"] * 20 + ["alcohol"] * 20)
    >>> model.classes_, model.predict_proba(["CCO"]).shape
    (array(['alcohol', 'alkane'], dtype='<U7'), (1, 2))
    """

    classes_: Array

    def fit(self, X: Any, y: Any) -> Self:
        """Train on classes `[rows]`, or on labels of 0 and 1 `[rows, labels]`, some of which may be NaN (unknown)."""
        if y is None:
            raise ValueError("PathClassifier requires y to be passed, but the target y is None.")
        values = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
        if values.ndim == 2 and values.shape[1] > 1:
            labels = check_array(values, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
            self.classes_ = np.arange(labels.shape[1])
            self._train(X, labels, "multilabel", _names(y))
            return self
        y = column_or_1d(check_array(values, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {_plain(self.classes_[0])!r}: expected at least two classes.")
        self._train(X, codes, "class", [str(name) for name in self.classes_])
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, or of each label, `[rows, classes]`."""
        out = self._outputs(X)
        kind = self.model_.signature.target
        if kind == "class":
            return np.asarray(out.softmax(dim=1))
        probability = np.asarray(out.sigmoid())
        return probability if kind == "multilabel" else np.hstack([1 - probability, probability])

    def predict(self, X: Any) -> Array:
        """Return the likeliest classes, or labels of 0 and 1."""
        probability = self.predict_proba(X)
        if self.model_.signature.target == "multilabel":
            return (probability >= 0.5).astype(int)
        return self.classes_[probability.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _names(y: Any) -> list[str]:
    """Return the names of the targets in pandas; [] without names."""
    names: list[Any] = list(y.columns) if hasattr(y, "columns") else [getattr(y, "name", None)]
    return names if all(isinstance(name, str) for name in names) else []


def _plain(value: Any) -> Any:
    """Return a number of numpy, as searches over parameters draw them, as a number of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _rows(X: Any) -> list[Any]:
    """Return the molecules or graphs of a list, an array, or a column of a DataFrame."""
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise ValueError(f"{NAME} is {X!r}: expected a list of SMILES, RDKit molecules or PyG graphs.")
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    shape: tuple[int, ...] = values.shape if hasattr(values, "shape") else (len(values),)
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[1] != 1):
        raise ValueError(f"{NAME} has the shape {shape}: expected one column of molecules or graphs.")
    rows = list(values[:, 0] if len(shape) == 2 else values)
    if not rows:
        raise ValueError(f"{NAME} has 0 samples: expected at least one molecule or graph.")
    return [row[0] if isinstance(row, list | tuple | np.ndarray) and len(row) == 1 else row for row in rows]


def _smiles(molecule: Any) -> tuple[str, str | None]:
    """Return the SMILES of a molecule, and what is wrong with it."""
    if isinstance(molecule, str):
        return molecule, None
    if molecule is None or (isinstance(molecule, float) and np.isnan(molecule)):
        return "", "it is missing"
    if not hasattr(molecule, "GetNumAtoms"):
        return "", f"it is {molecule!r:.200}, not SMILES, an RDKit molecule or a PyG graph"
    from rdkit import Chem

    try:
        return str(Chem.MolToSmiles(molecule)), None
    except (RuntimeError, ValueError) as error:
        return "", f"RDKit cannot write it as SMILES: {error}"


def _are_graphs(rows: list[Any]) -> bool:
    return any(hasattr(row, "edge_index") for row in rows)


def _read(X: Any, clean: Clean | None, descriptors: Descriptors | None) -> Task:
    """Return the graphs of molecules as a task without targets; raise `DataError`, which names bad rows."""
    rows = _rows(X)
    if _are_graphs(rows):
        if clean is not None or descriptors is not None:
            raise ValueError(f"{NAME} has PyG graphs: clean and descriptors are for SMILES and RDKit molecules.")
        return task_from_graphs(replace(from_pyg(rows), y=None), name=NAME, kind="none")
    texts = [_smiles(row) for row in rows]
    problems = {i: problem for i, (_, problem) in enumerate(texts) if problem is not None}
    table = Table(NAME, ("smiles",), tuple((text,) for text, _ in texts), problems)
    try:
        graphs, _ = smiles_graphs(table, smiles="smiles", clean=clean, descriptors=descriptors)
    except BadRowsError as error:
        first = "; ".join(f"{NAME}[{bad.row - 1}]: {bad.reason}" for bad in error.rows[:5])
        raise DataError(
            f"{len(error.rows)} of {len(rows)} molecules cannot be read ({first}{'; ...' * (len(error.rows) > 5)}). "
            "Fix them, or leave them out."
        ) from None
    atoms, bonds = FEATURES["cip"]
    task = task_from_graphs(graphs, name=NAME, node_features=atoms, edge_features=bonds, kind="none")
    return replace(task, descriptors=descriptors)
