"""Read the graphs to explain, and choose the output of the trained model to explain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.load import find_data, load_data, task_from_graphs
from pathnn.data.readers.descriptors import Descriptors
from pathnn.data.readers.molecules import clean_smiles
from pathnn.data.readers.smiles import FEATURES, pack_molecules, read_molecule
from pathnn.data.readers.table import Table, open_table, read_table
from pathnn.data.task import Task
from pathnn.explain.explanation import Explanation
from pathnn.explain.pictures import GraphPicture, Molecule, Picture
from pathnn.inference.similarity import FILE, load_training_molecules
from pathnn.inference.stream import CHUNK_ROWS
from pathnn.training.checkpoint import TaskSignature, TrainedModel
from pathnn.training.scoring import features

if TYPE_CHECKING:
    from torch_geometric.data import Data

NAME_COLUMNS = ("name", "title", "compound", "compound id", "compound_name", "molecule", "molecule_name")
"""Columns of a table with the name of the molecule, in lower case."""

MOST_REFERENCES, FEWEST_REFERENCES = 256, 20
"""The largest and smallest number of reference graphs."""

MOST_INPUTS = 2**18
"""The largest number of inputs of the head for all reference graphs: with descriptors, it takes most of the time."""


@dataclass(frozen=True)
class ExplainedOutput:
    """An output of the model: its number, its name, its meaning in words, and the scale to the unit of the target."""

    number: int
    name: str
    words: str
    factor: float = 1.0
    shift: float = 0.0


def output_names(signature: TaskSignature) -> list[str]:
    """Return the names of the outputs: classes, labels or target columns, or their numbers if they have no names."""
    count = signature.out_channels
    return signature.classes if len(signature.classes) == count else [str(i) for i in range(count)]


def choose_answer(
    signature: TaskSignature, outputs: Tensor, asked: str | None = None, *, networks: int = 1
) -> ExplainedOutput:
    """Choose an output by its name; by default the predicted class, the most probable label, or the first target.

    With several networks, the explained output is the mean of their logits, and `words` has their mean probability.
    """
    names = output_names(signature)
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
    """A graph as the model reads it, its title, its place in the data, and a picture to draw its scores on.

    `order` has the number of each vertex in the data: for a molecule, the number of the atom in the SMILES.
    """

    title: str
    place: str
    data: Data
    order: Tensor
    picture: Picture
    descriptors: Descriptors | None = None

    def outputs(self, trained: TrainedModel) -> Tensor:
        """Return the outputs of a network for the graph, `[outputs]`."""
        with torch.no_grad():
            features = {"edge_attr": self.data.edge_attr, "graph_attr": self.data.get("graph_attr")}
            return trained.model.eval()(self.data.x, self.data.edge_index, **features)[0]

    def descriptor_parts(self, found: Explanation) -> list[tuple[str, float]]:
        """Return the names and scores of descriptors, the largest first; substructures (Morgan counts) are SMILES."""
        if self.descriptors is None:
            return []
        counts, values, scores = self.descriptors.counts, self.data.graph_attr[0], found.descriptor_scores
        named = zip(self.descriptors.names, values[counts:].tolist(), scores[counts:].tolist(), strict=True)
        parts = [(f"{name} = {value:.4g}", score) for name, value, score in named]
        if counts:
            there, shares = values[:counts] > 0, defaultdict[str, float](float)
            for text, _, score in self._substructures(found):
                shares[f"substructure {text}"] += score
            parts += [*shares.items(), ("substructures that it lacks", float(scores[:counts][~there].sum()))]
        return sorted(parts, key=lambda part: -abs(part[1]))

    def vertex_scores(self, found: Explanation) -> Tensor:
        """Return the scores of vertices: their shares of paths, and of the places where a substructure occurs."""
        shares = found.vertex_scores()
        for _, places, score in self._substructures(found):
            for atoms in places:
                shares[list(atoms)] += score / len(places) / len(atoms)
        return shares

    def _substructures(self, found: Explanation) -> Iterator[tuple[str, list[set[int]], float]]:
        """Yield the SMILES, the places and the score of each substructure that the model has counted."""
        if self.descriptors is not None and self.descriptors.counts and isinstance(self.picture, Molecule):
            scores = found.descriptor_scores.tolist()
            yield from ((text, places, scores[i]) for i, (text, places) in self.picture.substructures.items())


def read_subject(
    trained: TrainedModel, data: str, *, row: int | None = None, graph: int | None = None, smiles: str | None = None
) -> ExplainedGraph:
    """Read a row of a table, counted from 1, or a graph of other data, counted from 0; by default the first."""
    table = find_data(data).kind == "table"
    if (graph if table else row) is not None:
        raise ValueError(
            f"graph={graph}: {data} is a table. Choose a row, counted from 1." if table else
            f"row={row}: {data} is not a table. Choose a graph, counted from 0."
        )  # fmt: skip
    if table:
        path = Path(data).expanduser()
        rows, row = read_table(path), row or 1
        if row > len(rows.rows):
            raise ValueError(f"row={row} does not exist: {path} has {len(rows.rows)} rows, counted from 1.")
        return _molecule(trained, rows, _texts(trained, rows, smiles)[row - 1], row - 1, row)
    task, number = load_data(data, targets=[], vocabulary=trained.signature.vocabulary), graph or 0
    if number >= len(task.graphs):
        raise ValueError(f"graph={number} does not exist: {task.name} has {len(task.graphs)} graphs, counted from 0.")
    return _graph(trained, task, number)


def read_subjects(trained: TrainedModel, data: str, *, smiles: str | None = None) -> Iterator[ExplainedGraph | str]:
    """Yield each graph of the data, or an error message for a row that cannot be read; read tables in chunks."""
    if find_data(data).kind != "table":
        task = load_data(data, targets=[], vocabulary=trained.signature.vocabulary)
        yield from (_graph(trained, task, number) for number in range(len(task.graphs)))
        return
    with open_table(Path(data).expanduser()) as reader:
        before = 0
        for table in reader.chunks(CHUNK_ROWS):
            yield from _molecules(trained, table, smiles, before)
            before += len(table.rows)


def read_reference(
    trained: TrainedModel, run: Path, data: str, *, smiles: str | None = None
) -> tuple[list[ExplainedGraph], str]:
    """Return the reference graphs, and the meaning of the reference value in words.

    The graphs are a sample of the run's training molecules, else the first graphs of `data`, or none if it has few.
    """
    if (run / FILE).exists():
        texts, config = load_training_molecules(run).smiles, trained.model.config
        most = min(MOST_REFERENCES, MOST_INPUTS // (config.hidden_channels + (config.graph_channels or 0)))
        chosen = torch.randperm(len(texts), generator=torch.Generator().manual_seed(0))[:most].tolist()
        table = Table(FILE, ("smiles",), tuple((texts[i],) for i in sorted(chosen)))
        good = [one for one in _molecules(trained, table, "smiles", 0) if not isinstance(one, str)]
        if good:
            return good, f"the mean prediction for {len(good)} training molecules"
    first = islice(read_subjects(trained, data, smiles=smiles), MOST_REFERENCES)
    good = [one for one in first if not isinstance(one, str)]
    if len(good) >= FEWEST_REFERENCES:
        return good, f"the mean prediction for the first {len(good)} graphs of {Path(data).name}"
    kind = good[0].picture.vertices if good else "vertices"
    return [], f"the output for the {kind} alone, without any path, because the model has no stored training molecules"


def _texts(trained: TrainedModel, table: Table, smiles: str | None) -> list[str | None]:
    return table.column(smiles or trained.config.smiles or table.smiles_column())


def _molecules(trained: TrainedModel, table: Table, smiles: str | None, before: int) -> Iterator[ExplainedGraph | str]:
    for i, text in enumerate(_texts(trained, table, smiles)):
        try:
            yield _molecule(trained, table, text, i, before + i + 1)
        except DataError as error:
            yield str(error)


def _graph(trained: TrainedModel, task: Task, number: int) -> ExplainedGraph:
    data = task.graphs[number]
    place, order = f"graph {number} of {task.name}", torch.arange(data.num_nodes)
    kinds = None if data.x is None or data.x.is_floating_point() else data.x.view(data.num_nodes, -1).tolist()
    picture = GraphPicture(data.edge_index, data.num_nodes, kinds)
    return ExplainedGraph(place, place, _inputs(trained, task, number), order, picture)


def _molecule(trained: TrainedModel, table: Table, text: str | None, i: int, row: int) -> ExplainedGraph:
    """Read row `i` of a table, and no other; `row` is its number in the file."""
    trained.signature.check_smiles()
    known, clean = trained.signature.molecule_features, trained.config.clean
    molecule, text = read_molecule(text, known, clean), clean_smiles(text, clean)
    if isinstance(molecule, str) or text is None:
        raise DataError(f"{table.source}, row {row}: {molecule}.")
    described = trained.signature.descriptors
    if described is not None and i in (bad := described.checked(table).problems):
        raise DataError(f"{table.source}, row {row}: {bad[i]}.")
    atoms, bonds = FEATURES[known]
    graphs, name = pack_molecules([molecule]), Path(table.source).name
    if described is not None:
        own = described.of_rows(table, [i]) if described.kind == "columns" else described.of_molecules([text])
        graphs = replace(graphs, graph_attr=torch.from_numpy(own))
    task = task_from_graphs(graphs, name=name, node_features=atoms, edge_features=bonds, kind="none")
    task, order = replace(task, descriptors=described), torch.from_numpy(molecule.order).long()
    names = zip(table.columns, table.rows[i], strict=False)
    called = next((entry.strip() for column, entry in names if column.strip().lower() in NAME_COLUMNS), "")
    title = text if called in ("", text) else f"{called}: {text}"
    data = _inputs(trained, task, 0)
    return ExplainedGraph(title, f"{name}, row {row}", data, order, Molecule(text), described)


def _inputs(trained: TrainedModel, task: Task, number: int) -> Data:
    """Return a graph as the model reads it."""
    from torch_geometric.data import Data

    trained.signature.check_inputs(task)
    data = task.graphs[number]
    if data.num_nodes == 0:
        raise ValueError(
            f"graph {number} of {task.name} has no vertices, so there is nothing to explain. Choose another graph."
        )
    x, edge_attr = features(trained.model, data.x, data.edge_attr)
    return Data(x, data.edge_index, edge_attr, graph_attr=data.get("graph_attr"))
