"""Choose what to explain: a graph of the data, and an output of the trained model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.load import find_data, load_data, task_from_graphs
from pathnn.data.readers.molecules import clean_smiles
from pathnn.data.readers.smiles import FEATURES, pack_molecules, read_molecule
from pathnn.data.readers.table import Table, read_table
from pathnn.data.task import Task
from pathnn.explain.pictures import GraphPicture, Molecule, Picture
from pathnn.training.checkpoint import TaskSignature, TrainedModel
from pathnn.training.scoring import features

NAME_COLUMNS = ("name", "title", "compound", "compound id", "compound_name", "molecule", "molecule_name")
"""Columns of a CSV that name the molecule, in lower case."""


@dataclass(frozen=True)
class ExplainedOutput:
    """An output of the model: its number, its name, its meaning in words, and its scale in the unit of the target."""

    number: int
    name: str
    words: str
    factor: float = 1.0
    shift: float = 0.0


def choose_answer(
    signature: TaskSignature, outputs: Tensor, asked: str | None = None, *, networks: int = 1
) -> ExplainedOutput:
    """Choose an output by its name; by default the predicted class, the likeliest label, or the first target.

    For several networks, the explained output is the mean of their logits, and `words` has their mean probability.

    >>> import torch
    >>> signature = TaskSignature("a", "class", 2, 3, None, "accuracy", True, 1.0, ["safe", "toxic"])
    >>> choose_answer(signature, torch.tensor([0.0, 2.0]))
    ExplainedOutput(number=1, name="the logit of 'toxic'", words='a probability of 0.881', factor=1.0, shift=0.0)
    """
    names = signature.classes if len(signature.classes) == outputs.numel() else [str(i) for i in range(outputs.numel())]
    if asked is not None and asked not in names:
        raise ValueError(f"output={asked!r} does not exist: expected one of {', '.join(names)}.")
    if signature.target == "regression":
        number = 0 if asked is None else names.index(asked)
        scale = signature.target_scale
        factor, shift = (scale.std[number], scale.mean[number]) if scale.mean else (1.0, 0.0)
        return ExplainedOutput(number, names[number] if signature.classes else "the prediction", "", factor, shift)
    number = int(outputs.argmax()) if asked is None else names.index(asked)
    probability = outputs.softmax(dim=0) if signature.target == "class" else outputs.sigmoid()
    mean = "mean " if networks > 1 else ""
    name = f"the {mean}logit of {names[number]!r}" if signature.classes or outputs.numel() > 1 else f"the {mean}logit"
    return ExplainedOutput(number, name, f"a {mean}probability of {float(probability[number]):.3g}")


@dataclass(frozen=True, eq=False)
class ExplainedGraph:
    """A graph as the model reads it, its title, its location in the data, and a picture to draw its scores on.

    `order` has the user's number of each vertex: for a molecule, the number of the atom in the SMILES.
    """

    title: str
    place: str
    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    graph_attr: Tensor | None
    order: Tensor
    picture: Picture

    def outputs(self, trained: TrainedModel) -> Tensor:
        """Return the outputs of the network for the graph, `[outputs]`."""
        with torch.no_grad():
            features = {"edge_attr": self.edge_attr, "graph_attr": self.graph_attr}
            out: Tensor = trained.model.eval()(self.x, self.edge_index, **features)
        return out[0]


def read_subject(
    trained: TrainedModel, data: str, *, row: int | None = None, graph: int | None = None, smiles: str | None = None
) -> ExplainedGraph:
    """Read one row (from 1) of a CSV of SMILES, or one graph (from 0) of other data; by default the first."""
    path = Path(data).expanduser()
    table = find_data(data).kind == "table"
    if (graph if table else row) is not None:
        raise ValueError(
            f"graph={graph}: {data} is a table. Choose a row, counted from 1." if table else
            f"row={row}: {data} is not a .csv file. Choose a graph, counted from 0."
        )  # fmt: skip
    if table:
        return _molecule(trained, path, row or 1, smiles)
    task, number = load_data(data, targets=[], vocabulary=trained.signature.vocabulary), graph or 0
    if number >= len(task.graphs):
        raise ValueError(f"graph={number} does not exist: {task.name} has {len(task.graphs)} graphs, counted from 0.")
    edge_index, num_nodes = task.graphs[number].edge_index, task.graphs[number].num_nodes
    place, order = f"graph {number} of {task.name}", torch.arange(num_nodes)
    return _subject(trained, task, number, place, place, order, GraphPicture(edge_index, num_nodes))


def _molecule(trained: TrainedModel, path: Path, row: int, smiles: str | None) -> ExplainedGraph:
    """Read one row alone: the others may be many, and some may be bad."""
    table = read_table(path)
    texts = table.column(smiles or trained.config.smiles or table.smiles_column())
    if row > len(texts):
        raise ValueError(f"row={row} does not exist: {path} has {len(texts)} rows, counted from 1.")
    text = clean_smiles(texts[row - 1], trained.config.clean)
    known = trained.signature.molecule_features
    molecule = read_molecule(text, known)
    if isinstance(molecule, str) or text is None:
        raise DataError(f"{path}, row {row}: {molecule}.")
    described = trained.signature.descriptors
    if described is not None and row - 1 in (bad := described.checked(table).problems):
        raise DataError(f"{path}, row {row}: {bad[row - 1]}.")
    atoms, bonds = FEATURES[known]
    graphs, order = pack_molecules([molecule]), torch.from_numpy(molecule.order).long()
    task = task_from_graphs(graphs, name=path.name, node_features=atoms, edge_features=bonds, kind="none")
    if described is not None:
        values = torch.from_numpy(described.of_rows(table, [row - 1], [text]))
        task = replace(task, graphs=replace(task.graphs, graph_attr=values), descriptors=described)
    name = _molecule_name(table, row)
    title = text if name in ("", text) else f"{name}: {text}"
    return _subject(trained, task, 0, title, f"{path.name}, row {row}", order, Molecule(text))


def _molecule_name(table: Table, row: int) -> str:
    """Return the name of the molecule in a row, or "" if no column has names."""
    cells = zip(table.columns, table.rows[row - 1], strict=False)
    return next((text.strip() for column, text in cells if column.strip().lower() in NAME_COLUMNS), "")


def _subject(
    trained: TrainedModel, task: Task, number: int, title: str, place: str, order: Tensor, picture: Picture
) -> ExplainedGraph:
    trained.signature.check_inputs(task)
    data = task.graphs[number]
    if data.num_nodes == 0:
        raise ValueError(f"{title} has no vertices, so there is nothing to explain. Choose another graph.")
    x, edge_attr = features(trained.model, data.x, data.edge_attr)
    graph_attr = None if task.graphs.graph_attr is None else task.graphs.graph_attr[number : number + 1]
    return ExplainedGraph(title, place, x, data.edge_index, edge_attr, graph_attr, order, picture)
