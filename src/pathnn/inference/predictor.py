"""Apply a trained model to new data: which model, which graphs, their scores, and predictions as columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pathnn.checks import check_choice
from pathnn.data.errors import DataError
from pathnn.data.fingerprints import OTHER_SPLIT, DataFingerprint
from pathnn.data.load import find_data, same_place, task_from_graphs
from pathnn.data.packed import from_pyg
from pathnn.data.readers.pool import MoleculeReader, MoleculesRead
from pathnn.data.readers.smiles import FEATURES, pack_molecules
from pathnn.data.readers.table import STANDARD_INPUT, Table, read_table
from pathnn.data.splits import BUTINA, SCAFFOLD, split_task
from pathnn.data.task import Task
from pathnn.device import resolve
from pathnn.hub import NON_COMMERCIAL, pretrained_file, pretrained_names
from pathnn.inference.intervals import Calibration
from pathnn.inference.similarity import SimilarityColumn
from pathnn.training.checkpoint import TaskSignature, TrainedModel, load_model, training_overlap
from pathnn.training.config import RunConfig
from pathnn.training.ensemble import Ensemble, combine, load_ensemble, predict_each, score_ensemble
from pathnn.training.run_folder import EnsembleFolder, RunFolder
from pathnn.training.runs import load_task
from pathnn.training.scoring import Evaluation
from pathnn.training.setup import choose_split, splits_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

PARTS = ("train", "val", "test", "all")

ERROR = "error"
"""The last column of predictions: why a row cannot be read. It is always there, whatever the data holds."""

BATCH_SIZE = 512
"""The smallest batch for predictions: large batches have less overhead and more equal atoms (NOTES 39)."""

Values = list[str | int | float]

Columns = dict[str, list[Any]]
"""Columns of predictions by their names; None where a row has no prediction."""


def load_runs(run: Path) -> Ensemble:
    """Load the models of a run folder of several seeds, or the model that `load_run` finds as an ensemble of one.

    >>> len(load_runs(Path("zinc-ap")).members)
    1
    """
    return load_ensemble(run) if EnsembleFolder(run).begun else Ensemble((load_run(run),))


def load_run(run: Path) -> TrainedModel:
    """Load the best model of a run folder, a model file, or a trained model by its name."""
    if not run.exists():
        names = pretrained_names()
        if str(run) in (*names, *NON_COMMERCIAL):
            return load_model(pretrained_file(str(run)))
        known = f", or the name of a trained model ({', '.join(names)})" if names else ""
        raise ValueError(f"{run} does not exist: expected a folder that pathnn train has written{known}.")
    if run.is_dir() and not RunFolder(run).model.exists():
        raise ValueError(f"{run} holds no model.safetensors: expected a folder in which a run has begun.")
    return load_model(RunFolder(run).model if run.is_dir() else run)


class Predictor:
    """A trained model as a function from molecules or graphs to columns of predictions. It can be pickled.

    `run` is a run folder, a model file, the name of a trained model, or what `load_runs` returns. A run folder with the
    training molecules adds the column "similarity": to the nearest of them, from 0 to 1. Functions in `more_columns`
    are called with the SMILES of each call, and return further columns. `interval`, such as 0.9, adds the ends of
    intervals, or sets of classes, that hold so many of the targets; it needs a run folder with `intervals.json`.

    >>> predict = Predictor("molhiv-ap")
    >>> columns = predict(["CCO", "C("])
    >>> list(columns), columns["probability"][1]
    (['probability', 'error'], None)
    >>> columns["error"]
    [None, "'C(' is no molecule: it does not follow the SMILES grammar"]
    """

    def __init__(self, run: Ensemble | Path | str, device: str = "cpu", *, interval: float | None = None) -> None:
        if interval is not None and not 0 < interval < 1:
            raise ValueError(f"interval={interval}: expected a level between 0 and 1, such as 0.9.")
        if interval is not None and isinstance(run, Ensemble):
            raise ValueError("interval needs the folder of the run, which has intervals.json: got networks alone.")
        trained = run if isinstance(run, Ensemble) else load_runs(Path(run))
        self.interval = interval
        self.calibration = None if interval is None else Calibration.load(Path(str(run)), trained)
        size = max(trained.config.batch_size, BATCH_SIZE)
        self.trained = Ensemble(tuple(replace(o, config=replace(o.config, batch_size=size)) for o in trained.members))
        self.device = str(resolve(device))
        similarity = None if isinstance(run, Ensemble) else SimilarityColumn.of_run(Path(run), trained.config.clean)
        self.more_columns: list[Callable[[Sequence[str | None]], Columns]] = [] if similarity is None else [similarity]

    def __call__(self, graphs: Sequence[str | None] | Sequence[Data]) -> Columns:
        """Predict for SMILES or for PyG graphs; the column "error" says why a SMILES has no prediction."""
        if isinstance(graphs, str):
            raise ValueError(f"got the text {graphs!r}: expected a list of SMILES.")
        texts = [graph for graph in graphs if graph is None or isinstance(graph, str)]
        if len(texts) == len(graphs):
            return self.predict_molecules(texts, self.reader.read(texts))
        if texts:
            raise ValueError("got SMILES and graphs: expected a list of one kind.")
        packed = replace(from_pyg(graphs), y=None)
        columns = self.predict_task(task_from_graphs(packed, kind="none"))
        return {**columns, free_name(ERROR, columns): [None] * len(packed)}

    @property
    def reader(self) -> MoleculeReader:
        """Return how to read molecules for the model."""
        signature = self.trained.signature
        return MoleculeReader(signature.molecule_features, self.trained.config.clean, signature.descriptors)

    def predict_molecules(
        self, texts: Sequence[str | None], read: MoleculesRead, table: Table | None = None
    ) -> Columns:
        """Return the columns of SMILES that are read already.

        `table` has the rows of the SMILES, for models that read columns as descriptors.
        """
        self.trained.signature.check_smiles()
        problems = read.problems
        good = [i for i in range(len(texts)) if i not in problems]
        task = self._task(read, good, table) if good else None
        placed: Columns = {}
        with ThreadPoolExecutor(1) as beside:  # the network
            more = [beside.submit(function, texts) for function in self.more_columns]
            for name, values in self.predict_task(task).items():
                placed[name] = [None] * len(texts)
                for i, value in zip(good, values, strict=True):
                    placed[name][i] = value
            for found in more:
                placed |= found.result()
        return {**placed, free_name(ERROR, placed): [problems.get(i) for i in range(len(texts))]}

    def predict_task(self, task: Task | None) -> dict[str, Values]:
        """Return the columns of all graphs of a task; of no task, the columns without values."""
        if task is None:
            outputs = torch.zeros(len(self.trained.members), 1, self.trained.signature.out_channels)
        else:
            outputs = predict_each(self.trained, task, device=self.device)
        columns = ensemble_columns(outputs, self.trained.signature)
        if self.calibration is not None and self.interval is not None:
            for name, values in interval_columns(self.calibration, outputs, self.interval).items():
                columns[free_name(name, columns)] = values
        return {name: [] for name in columns} if task is None else columns

    def _task(self, read: MoleculesRead, good: list[int], table: Table | None) -> Task:
        """Return molecules, from the rows `good` of a table, as a task with the descriptors that the model reads."""
        signature, graphs, numbers = self.trained.signature, pack_molecules(read.molecules), read.descriptors
        if (descriptors := signature.descriptors) is not None:
            if numbers is None:
                table = Table("the list of SMILES", (), ()) if table is None else table
                numbers = descriptors.of_rows(table, good)
            graphs = replace(graphs, graph_attr=torch.from_numpy(numbers))
        atoms, bonds = FEATURES[signature.molecule_features]
        task = task_from_graphs(graphs, name="the data", node_features=atoms, edge_features=bonds, kind="none")
        return replace(task, descriptors=descriptors)


def score(
    trained: TrainedModel,
    task: Task,
    index: Tensor | None = None,
    *,
    metric: str | None = None,
    device: torch.device | str = "cpu",
) -> Evaluation:
    """Compute loss and score of a trained model on the graphs `index` of a task (None: all).

    Classes are compared by name, however the task numbers them; see `align_classes`. `metric` is the name of a metric
    of `pathnn.data.metrics`; None stands for the metric of training.

    ```python
    trained, task = load_model(Path("run/model.safetensors")), load_data("molecules.csv", targets="logS")
    print(score(trained, task, task.splits[0].test, metric="rmse").score)
    ```
    """
    return score_ensemble(Ensemble((trained,)), task, index, metric=metric, device=device).together


def prediction_columns(out: Tensor, signature: TaskSignature) -> dict[str, Values]:
    """Return outputs as columns of a table: predicted values, classes, or probabilities.

    >>> signature = TaskSignature("a", "regression", 1, 3, None, "MAE", False, 1.0, ["logS"])
    >>> prediction_columns(torch.tensor([[0.1]]), signature)
    {'predicted_logS': [0.1]}
    >>> shifted = TaskSignature("a", "regression", 1, 3, None, "MAE", False, 1.0, ["mass"], (1e7,), (0.5,))
    >>> prediction_columns(torch.tensor([[0.1]]), shifted)
    {'predicted_mass': [10000000.05]}
    """
    std = signature.target_scale.std
    out = signature.target_scale.decode(out).cpu()
    count = 1 if signature.target == "binary" else signature.out_channels
    given = signature.classes if len(signature.classes) == count else []
    names = given or [str(i) for i in range(count)]
    if signature.target == "class":
        probability = out.softmax(dim=1)
        chosen = [names[i] for i in out.argmax(dim=1).tolist()]
        columns = {f"probability_{name}": _numbers(probability[:, i]) for i, name in enumerate(names)}
        return {"predicted_class": chosen, **columns}
    if signature.target in ("binary", "multilabel"):
        plain = ["probability"] if count == 1 and not given else [f"probability_{name}" for name in names]
        return {name: _numbers(out[:, i].sigmoid()) for i, name in enumerate(plain)}
    plain = ["prediction"] if count == 1 and not given else [f"predicted_{name}" for name in names]
    return {name: _numbers(out[:, i], std[i] if std else None) for i, name in enumerate(plain)}


def _numbers(column: Tensor, std: float | None = None) -> Values:
    """Return numbers as short as their type allows; of values with a deviation `std`, keep seven digits of it."""
    if std is not None:
        return [round(value, 7 - math.floor(math.log10(std))) for value in column.tolist()]
    return [float(str(value)) for value in column.numpy()]


def ensemble_columns(outputs: Tensor, signature: TaskSignature) -> dict[str, Values]:
    """Return outputs of several networks as columns: `prediction_columns` of their mean, and standard deviations.

    The column after each number has its standard deviation over the networks.

    >>> signature = TaskSignature("a", "regression", 1, 3, None, "MAE", False, 1.0, ["logS"])
    >>> ensemble_columns(torch.tensor([[[1.0]], [[3.0]]]), signature)
    {'predicted_logS': [2.0], 'predicted_logS_std': [1.4142...]}
    """
    mean = prediction_columns(combine(outputs, signature.target), signature)
    if outputs.size(0) == 1:
        return mean
    each, columns = [prediction_columns(out, signature) for out in outputs], {}
    for name, values in mean.items():
        columns[name] = values
        if not any(isinstance(value, str) for value in values):
            numbers = torch.tensor([column[name] for column in each], dtype=torch.float64)
            columns[free_name(f"{name}_std", mean)] = [float(f"{std:.6g}") for std in numbers.std(dim=0).tolist()]
    return columns


def interval_columns(calibration: Calibration, outputs: Tensor, level: float) -> dict[str, Values]:
    """Return the ends of intervals of each target, or the classes of sets with | between them, as columns."""
    columns: dict[str, Values] = {}
    std, classes = calibration.signature.target_std, calibration.signature.classes
    if calibration.signature.target == "regression":
        ends = [torch.from_numpy(end) for end in calibration.bounds(outputs, level)]
        for i, name in enumerate(calibration.names):
            for word, end in zip(("lower", "upper"), ends, strict=True):
                columns[free_name(f"{name}_{word}", columns)] = _numbers(end[:, i], std[i] if std else None)
        return columns
    sets = calibration.sets(outputs, level)
    words = classes if calibration.signature.target == "class" and classes else list(map(str, range(sets.shape[2])))
    for i, name in enumerate(calibration.names):
        texts = ["|".join(word for word, inside in zip(words, row, strict=True) if inside) for row in sets[:, i]]
        columns[free_name(f"{name}_set", columns)] = [*texts]
    return columns


def free_name(name: str, taken: Container[str], ending: str = "_") -> str:
    """Return `name`, with an ending appended while it is taken."""
    return name if name not in taken else free_name(f"{name}{ending}", taken, ending)


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """The graphs to evaluate a model on (None: all), and which of them were in its training data (None: not known)."""

    task: Task
    part: str
    index: Tensor | None
    overlap: Tensor | None


def evaluation_data(
    trained: Ensemble,
    data: str,
    *,
    part: str | None = None,
    target: Sequence[str] | None = None,
    metric: str | None = None,
    smiles: str | None = None,
    skip_invalid: bool = False,
) -> EvaluationData:
    """Read data as in training, and choose the graphs to evaluate a model on.

    The default of `part` is "test" for the data of the training, and "all" for other data.

    ```python
    trained = load_runs(Path("run"))
    found = evaluation_data(trained, "molecules.csv")
    print(score_ensemble(trained, found.task, found.index).together.score)
    ```
    """
    config = replace(
        trained.config,
        data=data,
        smiles=smiles or trained.config.smiles,
        skip_invalid=skip_invalid or trained.config.skip_invalid,
        metric=metric or trained.config.metric,
        **target_options(trained, target),
    )
    signature = trained.signature
    if find_data(data).kind == "table":
        signature.check_smiles()
    known = signature.molecule_features, signature.vocabulary, signature.descriptors
    task = load_task(replace(config, split_by=None, splits=None), *known)
    if task.target != signature.target:
        signature.check_targets(task)  # before the split, which depends on classes
    task = task if part == "all" else with_split(trained, task, config)
    part = choose_part(trained, task, config, part)
    index = choose_graphs(task, config, part)
    overlap = None if part == "train" else training_overlap(trained.signature, task, index)
    return EvaluationData(task, part, index, overlap)


def target_options(trained: Ensemble | TrainedModel, target: Sequence[str] | None) -> dict[str, Any]:
    """Return the target columns and their kind: those of training; of other columns, only classes keep their kind."""
    signature = trained.signature
    if signature.target == "class":
        return {"target": tuple(target) if target else trained.config.target, "kind": "class"}
    if target and sorted(target) == sorted(signature.classes):
        return {"target": tuple(signature.classes), "kind": signature.target}  # in the order of the model's outputs
    if target:
        return {"target": tuple(target)}
    return {"target": trained.config.target or tuple(signature.classes) or None, "kind": signature.target}


def with_split(trained: Ensemble, task: Task, config: RunConfig) -> Task:
    """Split a task as in training; other data gets no split, except by a column that it has, or at random."""
    if config.split_by is None and config.splits is None:
        return task
    before, path = trained.signature.data, Path(config.data).expanduser()
    same_size = before is not None and before.num_graphs == len(task.graphs)
    if find_data(config.data).kind == "table" and (same_size or config.split_by not in (SCAFFOLD, BUTINA)):
        with suppress(DataError, FileNotFoundError):
            by_file: dict[str, Any] = {"splits": config.splits, "clean": config.clean}
            # standard input is read already; only a column needs the table
            table = Table(config.data, (), ()) if config.data == STANDARD_INPUT else read_table(path)
            return split_task(task, table, config.split_by, config.split_seed, **by_file)
    return replace(task, splits=())


def choose_part(trained: Ensemble | TrainedModel, task: Task, config: RunConfig, part: str | None) -> str:
    """Return `part`; by default "test" for the data of the training, and "all" for other data.

    Raise `ValueError` if data or split have changed since the training: the graphs that are new are then unknown.
    """
    if part == "all":
        return part
    before, same_name = trained.signature.data, same_place(config.data, trained.config.data)
    changed = None
    if before is not None:
        has_split = len(task.graphs) == before.num_graphs and config.fold < len(splits_of(task, config))
        now = DataFingerprint.of(task, choose_split(task, config) if has_split else None)
        changed = replace(before, targets=now.targets).difference(now)  # another column of the same graphs is fine
    if changed is not None and (same_name or (part is not None and changed == OTHER_SPLIT)):
        raise ValueError(
            f"{config.data} has changed since the model was trained, or is read with other options (--target, "
            f"--skip-invalid): {changed}. It is unknown which of its graphs are new to the model. Give the data as "
            "it was, or --split all."
        )
    by = config.splits or config.split_by
    if part is not None and by is not None and not task.splits:
        raise ValueError(
            f"{config.data} has no split: the model was trained on data split by {by!r}, and this data is other data, "
            "or lacks that column or file. Use --split all."
        )
    known = same_name if before is None else changed is None
    return part or ("test" if known else "all")


def choose_graphs(task: Task, config: RunConfig, part: str) -> Tensor | None:
    """Return the graphs of a part of the run's split; None for all."""
    check_choice("split", part, PARTS)
    if part == "all":
        return None
    index: Tensor = vars(choose_split(task, config))[part]
    if not index.numel() and config.folds is not None:
        raise ValueError(
            f"the folds of {config.data} have no {part} graphs in common. out_of_fold.csv in the run folder has the "
            "predictions for held-out graphs, and result.json their scores. Evaluate on other data, or one of the runs "
            "in the folder, such as fold-0."
        )
    if not index.numel():
        raise ValueError(f"the split of {config.data} has no {part} graphs: choose others with --split.")
    return index
