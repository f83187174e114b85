"""Load a dataset or a user's data as a task: a table of molecules, graph6, TU format, networkx or PyG graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from pathnn.data.datasets.registry import is_dataset, load_dataset, unknown_dataset
from pathnn.data.errors import DataError
from pathnn.data.fingerprints import first_copies
from pathnn.data.packed import PackedGraphs, with_ones
from pathnn.data.readers.descriptors import Descriptors
from pathnn.data.readers.graph6 import read_graph6
from pathnn.data.readers.molecules import Clean, MoleculeFeatures
from pathnn.data.readers.smiles import FEATURES, smiles_graphs
from pathnn.data.readers.table import FORMATS, STANDARD_INPUT, Table, file_type, read_table
from pathnn.data.readers.tu import read_tu
from pathnn.data.splits import split_task
from pathnn.data.task import (
    Categorical,
    Continuous,
    Features,
    TargetKind,
    Task,
    Vocabulary,
    convert_targets,
    guess_kind,
    number_name,
    random_split,
    target_fields,
)


def load_data(
    data: str | Path,
    *,
    smiles: str | None = None,
    targets: str | Sequence[str] | None = None,
    kind: TargetKind | None = None,
    skip_invalid: bool = False,
    features: MoleculeFeatures = "cip",
    clean: Clean | None = None,
    split_by: str | None = None,
    split_seed: int | None = None,
    splits: str | Path | None = None,
    vocabulary: Vocabulary | None = None,
    descriptors: str | Sequence[str] | Descriptors | None = None,
) -> Task:
    """Load a dataset by name, a table of molecules, a `.g6` file, or a folder or zip in TU format as a task.

    A table is a `.csv`, `.tsv`, `.smi`, `.sdf` or `.parquet` file. Files may be compressed (`.gz`, `.xz`, `.bz2`).

    Args:
        data: the name of a dataset, the path of a file or folder, or "-" for a CSV from standard input.
        smiles: the SMILES column of a table; None: found by its name, or else by its values.
        targets: the target columns of a table; None: the only numeric column, if there is just one; empty: none.
        kind: the kind of target; None: found from the values (text makes classes).
        skip_invalid: leave bad rows out; they are in `task.skipped`.
        features: of atoms and bonds. "cip" has CIP labels (R, S, E, Z), and atoms in the order of the canonical
            SMILES. "ogb" is for models trained on molhiv and Peptides, and depends on how a SMILES with @ is written.
        clean: "salts" keeps the largest fragment of a molecule and neutralises it; "tautomers" also chooses one
            tautomer. The names of the graphs stay the SMILES of the table.
        split_by: how to split a table: "random", "scaffold", "butina", or a column with the words train, val and test,
            with train and test, or with dates; None: at random. Copies of a molecule stay together.
        split_seed: gives another split for each seed.
        splits: a CSV with the split (`write_split` writes it), instead of `split_by` and `split_seed`.
        vocabulary: the codes of the TU data of a trained model (`signature.vocabulary`), for reading other data.
        descriptors: numbers that describe each molecule of a table, as `graphs.graph_attr`: "rdkit" (2D descriptors),
            "morgan" (logarithms of Morgan counts), "standard" (Morgan counts and some of RDKit), or the names of
            numeric columns; what a model was trained on is in `signature.descriptors`.

    ```python
    task = load_data("molecules.csv", targets="logS")
    graphs = load_data("graphs.g6").graphs
    ```
    """
    given = (("features", features, MoleculeFeatures), ("kind", kind or "none", TargetKind))
    for name, value, known in (*given, ("clean", clean or "salts", Clean)):
        if value not in get_args(known):
            raise DataError(f"{name}={value!r} is unknown: expected one of {', '.join(get_args(known))}.")
    source = find_data(data)
    if split_by is not None and source.kind != "table":
        raise DataError(f"{data} cannot be split by {split_by!r}: that is for tables of molecules.")
    if descriptors is not None and source.kind != "table":
        raise DataError(f"{data} has no molecules to compute descriptors of: expected a table of molecules.")
    if source.kind == "dataset":
        return load_dataset(source.name)
    if source.kind == "tu":
        tu = read_tu(source.path, vocabulary)
        task = task_from_graphs(tu.graphs, name=tu.name, kind="class" if tu.classes else None)
        return replace(task, classes=tu.classes, vocabulary=tu.values)
    if source.kind == "graph6":
        graphs, bad = read_graph6(source.path, skip_invalid=skip_invalid)
        return replace(task_from_graphs(with_ones(graphs), name=source.name), pairs="all", skipped=tuple(bad))
    table = read_table(source.path)
    column = smiles or table.smiles_column()
    described = None if descriptors is None else Descriptors.of(descriptors, table)
    chosen = _chosen_targets(table, column, targets, described)
    table = table if described is None else described.checked(table)
    if kind != "class":
        table.check_decimal_commas(chosen)
    labels: tuple[str, ...] = ()
    if len(chosen) == 1 and (kind == "class" or (kind is None and table.is_text(chosen[0]))):
        kind, labels = "class", table.class_labels(chosen[0])
    options: dict[str, Any] = {"skip_invalid": skip_invalid, "features": features, "clean": clean}
    options["descriptors"] = described
    graphs, bad = smiles_graphs(table, smiles=column, targets=chosen, labels=labels, **options)
    names = tuple(chosen)
    if labels and graphs.y is not None:  # bad rows may have been left out, with their classes
        names = tuple(labels[int(code)] for code in torch.unique(graphs.y))
    atoms, bonds = FEATURES[features]
    task = task_from_graphs(
        graphs, name=source.name, node_features=atoms, edge_features=bonds, kind=kind, targets=names
    )
    task = replace(task, skipped=tuple(bad), groups=first_copies(graphs), descriptors=described)
    if chosen:
        return split_task(task, table, split_by, split_seed, splits=splits, clean=clean)
    others = [name for name in table.columns if name != column]
    return replace(task, notes=f"no targets chosen of the columns {table.described(others)}")


@dataclass(frozen=True)
class DataSource:
    """A dataset, or a user's file or folder: what `find_data` found."""

    kind: Literal["dataset", "table", "graph6", "tu"]
    name: str
    path: Path


def find_data(data: str | Path) -> DataSource:
    """Find out what `data` names: a dataset, a table, a `.g6` file, or a folder or zip in TU format.

    Raises `DataError` if it is none of them, or does not exist.

    >>> find_data("ZINC").kind, find_data("ZINC").name
    ('dataset', 'zinc')
    """
    path = Path(data).expanduser()
    if data == STANDARD_INPUT:
        return DataSource("table", "standard input", path)
    if isinstance(data, str) and is_dataset(data):
        return DataSource("dataset", data.lower(), path)
    kinds = {**dict.fromkeys(FORMATS, "table"), ".g6": "graph6", ".zip": "tu"}
    kind: Any = "tu" if path.is_dir() else kinds.get(file_type(path))
    if path.exists() and kind is not None:
        return DataSource(kind, path.name, path)
    if path.exists():
        problem = f"{str(data)!r} is a file of another type."
    elif path.suffix or len(path.parts) > 1:  # no dataset's name has a dot or a slash
        problem = f"{str(data)!r} does not exist (from {Path.cwd()})."
    elif is_dataset(str(data)):
        problem = f"{str(data)!r} is a dataset's name: give it as text."
    else:
        problem = f"{str(data)!r} is no file or folder that exists, nor a dataset: {unknown_dataset(str(data))}"
    raise DataError(
        f"{problem} Expected a dataset's name, a table of molecules ({', '.join(FORMATS)}), a .g6 file, "
        "or a folder or zip in TU format."
    )


def same_place(data: str, other: str) -> bool:
    """Return whether two names are those of one dataset, or lead to one file."""
    if data == other or is_dataset(data) or is_dataset(other):
        return data.lower() == other.lower()
    here, there = Path(data).expanduser(), Path(other).expanduser()
    return here.exists() and there.exists() and here.samefile(there)


def _chosen_targets(
    table: Table, smiles: str, targets: str | Sequence[str] | None, descriptors: Descriptors | None
) -> list[str]:
    """Return the target columns: those of the user, or else the only numeric column that is no descriptor, or none."""
    columns = descriptors.names if descriptors is not None and descriptors.kind == "columns" else ()
    if targets is None:
        found = [name for name in table.numeric_columns(leave_out=smiles) if name not in columns]
        if not found:
            once = [name for name in table.columns if name != smiles and table.columns.count(name) == 1]
            table.check_decimal_commas(once)
        return found if len(found) == 1 else []
    chosen = [targets] if isinstance(targets, str) else list(targets)
    for name in chosen:
        if name in columns:
            raise DataError(f"the column {name!r} is both a target and a descriptor: leave out one of them.")
        if chosen.count(name) > 1:
            raise DataError(f"the target {name!r} is asked for twice: name each column once.")
    return chosen


def task_from_graphs(
    graphs: PackedGraphs,
    *,
    name: str = "own",
    node_features: Features | None = None,
    edge_features: Features | None = None,
    kind: TargetKind | None = None,
    targets: tuple[str, ...] = (),
) -> Task:
    """Make a task of packed graphs; arguments that are not given are found from the tensors.

    Integer features are categories, other features are continuous. Integer targets are classes, floating targets of 0
    and 1 are binary, other targets are regression. Of several targets some may be NaN (unknown): loss and metric skip
    them. Classes may be any numbers: `y` counts them from 0, and `task.classes` has the numbers. Graphs without `x`
    get the constant 1.

    ```python
    edges = [torch.tensor([[0, 1], [1, 0]])] * 10
    graphs = PackedGraphs.from_edges(edges, [2] * 10)
    task = task_from_graphs(replace(graphs, y=torch.arange(10) % 2), name="pairs")
    ```
    """
    if not isinstance(graphs, PackedGraphs):
        raise DataError(f"graphs is a {type(graphs).__name__}: expected PackedGraphs, from from_pyg or from_networkx.")
    graphs = with_ones(graphs) if graphs.x is None else graphs
    given = graphs.y
    kind = kind or guess_kind(given)
    fields: dict[str, Any] = {"notes": "no targets"}
    if kind == "none":
        graphs = replace(graphs, y=None)
    elif given is None:
        raise DataError(f"kind={kind!r} needs targets, but there are none: name the target column, or give graphs a y.")
    else:
        y = convert_targets(given, kind)
        channels = int(y.max()) + 1 if kind == "class" else y.size(1)
        fields = target_fields(kind, channels, has_missing_targets=channels > 1 and bool(y.isnan().any()))
        fields |= {"notes": "one random split of 80 / 10 / 10 from seed 0", "splits": (random_split(len(graphs)),)}
        graphs = replace(graphs, y=y)
        if kind == "class" and not targets:
            targets = tuple(number_name(value) for value in torch.unique(given).tolist())
    return Task(
        name=name,
        title=name,
        graphs=graphs,
        node_features=node_features or _features(graphs.x),
        edge_features=edge_features or _features(graphs.edge_attr),
        classes=targets,
        **fields,
    ).validate()


def _features(values: Tensor | None) -> Features | None:
    if values is None:
        return None
    columns = values[:, None] if values.dim() == 1 else values
    if values.dtype == torch.bool or values.is_floating_point():
        return Continuous(columns.size(1))
    if bool((columns < 0).any()):
        raise DataError("integer features are categories 0, 1, ...: got a negative one; make them floating numbers.")
    return Categorical(tuple((columns.long().amax(dim=0) + 1).tolist()) if len(columns) else (1,) * columns.size(1))
