"""Load a dataset or a user's data as a task: a table of molecules, graph6, TU format, networkx or PyG graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from pathnn.data.copies import first_copies
from pathnn.data.datasets.base import with_ones
from pathnn.data.datasets.registry import get_spec, is_dataset, load_dataset
from pathnn.data.errors import DataError, UnknownDatasetError
from pathnn.data.packed import PackedGraphs
from pathnn.data.readers.graph6 import read_graph6
from pathnn.data.readers.molecules import Clean, MoleculeFeatures, clean_smiles
from pathnn.data.readers.smiles import FEATURES, Descriptors, check_features, smiles_graphs
from pathnn.data.readers.table import (
    COMPRESSED,
    FORMATS,
    STANDARD_INPUT,
    Table,
    check_decimal_commas,
    class_labels,
    is_text,
    numeric_columns,
    read_table,
    table_format,
)
from pathnn.data.readers.tu import encode, one_hot, read_tu
from pathnn.data.splits import (
    BUTINA,
    RANDOM,
    SCAFFOLD,
    column_split,
    group_split,
    random_task_split,
    read_split,
    split_groups,
)
from pathnn.data.targets import binary, classification, multilabel, number_name, regression
from pathnn.data.task import Categorical, Continuous, Features, TargetKind, Task, Vocabulary, random_split


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
        vocabulary: the codes of the TU data that a model was trained on (`facts.vocabulary`), for reading other data.
        descriptors: numbers that describe each molecule of a table, as `graphs.graph_attr`: "rdkit" (2D descriptors),
            "morgan" (logarithms of Morgan counts), or the names of numeric columns; what a model was trained on is in
            `signature.descriptors`.

    ```python
    task = load_data("molecules.csv", targets="logS")
    graphs = load_data("graphs.g6").graphs
    ```
    """
    check_features(features)
    if kind is not None and kind not in get_args(TargetKind):
        raise DataError(f"kind={kind!r} is unknown: expected one of {', '.join(get_args(TargetKind))}.")
    if clean is not None and clean not in get_args(Clean):
        raise DataError(f"clean={clean!r} is unknown: expected one of {', '.join(get_args(Clean))}.")
    source = find_data(data)
    if split_by is not None and source.kind != "table":
        raise DataError(f"{data} cannot be split by {split_by!r}: that is for tables of molecules.")
    if descriptors is not None and source.kind != "table":
        raise DataError(f"{data} has no molecules to compute descriptors of: expected a table of molecules.")
    if source.kind == "dataset":
        return load_dataset(source.name)
    if source.kind == "tu":
        return task_from_tu(source.path, vocabulary)
    if source.kind == "table":
        options: dict[str, Any] = {"skip_invalid": skip_invalid, "features": features, "clean": clean}
        options |= {"split_by": split_by, "split_seed": split_seed, "splits": splits, "descriptors": descriptors}
        return task_from_table(source.path, smiles=smiles, targets=targets, kind=kind, **options)
    graphs, bad = read_graph6(source.path, skip_invalid=skip_invalid)
    task = task_from_graphs(with_ones(graphs), name=source.name)
    return replace(task, pairs="all", skipped=tuple(bad))


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
    if path.is_dir():
        return DataSource("tu", path.name, path)
    types = [suffix for suffix in map(str.lower, path.suffixes) if suffix not in COMPRESSED]
    file_type = types[-1] if types else ""
    if path.exists() and table_format(path) is not None:
        return DataSource("table", path.name, path)
    if path.exists() and file_type == ".g6":
        return DataSource("graph6", path.name, path)
    if path.exists() and file_type == ".zip":
        return DataSource("tu", path.name, path)
    raise DataError(
        f"{_problem(data, path)} Expected a dataset's name, a table of molecules ({', '.join(FORMATS)}), a .g6 file, "
        "or a folder or zip in TU format."
    )


def _problem(data: str | Path, path: Path) -> str:
    if path.exists():
        return f"{str(data)!r} is a file of another type."
    if path.suffix or len(path.parts) > 1:  # no dataset's name has a dot or a slash
        return f"{str(data)!r} does not exist (from {Path.cwd()})."
    try:
        get_spec(str(data))
    except UnknownDatasetError as error:
        return f"{str(data)!r} is no file or folder that exists, nor a dataset: {error}"
    return f"{str(data)!r} is a dataset's name: give it as text."


def task_from_table(
    path: Path,
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
    descriptors: str | Sequence[str] | Descriptors | None = None,
) -> Task:
    """Read a table of molecules as a task with one split of 80 / 10 / 10; see `load_data` for the arguments.

    ```python
    task = task_from_table(Path("molecules.csv"), smiles="smiles", targets=["logS"], split_by="part")
    ```
    """
    table = read_table(path)
    column = smiles or table.smiles_column()
    described = None if descriptors is None else Descriptors.of(descriptors)
    columns = described.names if described is not None and described.kind == "columns" else ()
    if targets is None:
        chosen = _targets(table, column, columns)
    else:
        chosen = [targets] if isinstance(targets, str) else list(targets)
    both = next((name for name in chosen if name in columns), None)
    if both is not None:
        raise DataError(f"the column {both!r} is both a target and a descriptor: leave out one of them.")
    table = table if described is None else described.checked(table)
    twice = next((name for name in chosen if chosen.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"the target {twice!r} is asked for twice: name each column once.")
    if kind != "class":
        check_decimal_commas(table, chosen)
    labels: tuple[str, ...] = ()
    if len(chosen) == 1 and (kind == "class" or (kind is None and is_text(table, chosen[0]))):
        kind, labels = "class", class_labels(table, chosen[0])
    options: dict[str, Any] = {"skip_invalid": skip_invalid, "features": features, "clean": clean}
    graphs, bad = smiles_graphs(table, smiles=column, targets=chosen, labels=labels, **options)
    names = tuple(chosen) if graphs.y is None or not labels else _present(labels, graphs.y)
    atoms, bonds = FEATURES[features]
    name = "standard input" if str(path) == STANDARD_INPUT else path.name
    task = task_from_graphs(graphs, name=name, node_features=atoms, edge_features=bonds, kind=kind, targets=names)
    task = replace(task, skipped=tuple(bad), groups=first_copies(graphs))
    if described is not None:
        task = with_descriptors(task, described, table, clean)
    if chosen:
        return split_task(task, table, split_by, split_seed, splits=splits, clean=clean)
    others = [name for name in table.columns if name != column]
    return replace(task, notes=f"no targets chosen of the columns {others}")


def with_descriptors(task: Task, descriptors: Descriptors, table: Table, clean: Clean | None = None) -> Task:
    """Return the task of a table with descriptors of its molecules as `graphs.graph_attr`."""
    names, rows = task.graphs.names, [row - 1 for row in task.rows()]
    smiles = [clean_smiles(name, clean) or name for name in names or ()]
    values = torch.from_numpy(descriptors.of_rows(table, rows, smiles))
    return replace(task, graphs=replace(task.graphs, graph_attr=values), descriptors=descriptors)


def split_task(
    task: Task,
    table: Table,
    split_by: str | None,
    seed: int | None = None,
    *,
    splits: str | Path | None = None,
    clean: Clean | None = None,
) -> Task:
    """Split the task of a table as in `load_data`."""
    if splits is not None:
        split, notes = read_split(Path(splits), task), f"the split of {splits}"
    elif split_by in (None, RANDOM):
        split, notes = (
            random_task_split(task, seed=seed or 0),
            f"one random split of 80 / 10 / 10 from seed {seed or 0}",
        )
    elif split_by in (SCAFFOLD, BUTINA):
        split, notes = group_split(split_groups(task, split_by, clean), seed=seed), f"one split by {split_by}"
    else:
        split, notes = column_split(table, split_by, task, seed=seed), f"the split of the column {split_by!r}"
    return replace(task, splits=(split,), notes=notes).validate()


def _present(labels: tuple[str, ...], y: torch.Tensor) -> tuple[str, ...]:
    """Return the labels that occur in `y`, in order: bad rows may have been left out."""
    return tuple(labels[int(code)] for code in torch.unique(y))


def task_from_tu(path: Path, vocabulary: Vocabulary | None = None) -> Task:
    """Read a folder or zip in TU format: labels one-hot, then attributes; degrees if there is neither.

    ```python
    task = task_from_tu(Path("PAIRS"))          # a folder with PAIRS_A.txt, PAIRS_graph_indicator.txt, ...
    ```
    """
    data = read_tu(path, vocabulary)
    values = dict(data.values)
    parts = []
    if data.node_labels is not None:
        parts.append(one_hot(data.node_labels, [len(column) for column in values["node_labels"]]))
    if data.node_attributes is not None:
        parts.append(data.node_attributes)
    if not parts:
        degrees = data.degrees()[:, None].double().numpy()
        values["degrees"] = (vocabulary or {}).get("degrees") or [sorted({*degrees[:, 0].tolist()})]
        codes = torch.from_numpy(encode(degrees, values["degrees"], "the degrees of the vertices"))
        parts.append(one_hot(codes, [len(values["degrees"][0])]))
    x = parts[0] if len(parts) == 1 else torch.cat([part.float() for part in parts], dim=1)
    task = task_from_graphs(data.graphs(x), name=data.name, kind="class" if data.y is not None else None)
    return replace(task, classes=data.classes, vocabulary=values)


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
    graphs = with_ones(graphs) if graphs.x is None else graphs
    kind = kind or guess_kind(graphs)
    given, graphs = graphs.y, _with_targets(graphs, kind)
    names = targets or (_values(given) if kind == "class" else ())
    return Task(
        name=name,
        title=name,
        graphs=graphs,
        node_features=node_features or _features(graphs.x),
        edge_features=edge_features or _features(graphs.edge_attr),
        splits=(random_split(len(graphs)),) if kind != "none" else (),
        classes=names,
        notes="one random split of 80 / 10 / 10 from seed 0" if kind != "none" else "no targets",
        **_target_facts(kind, graphs.y),
    ).validate()


def _values(y: torch.Tensor | None) -> tuple[str, ...]:
    """Name classes that are given as numbers: the numbers, in order."""
    return () if y is None else tuple(number_name(value) for value in torch.unique(y).tolist())


def guess_kind(graphs: PackedGraphs) -> TargetKind:
    """Guess the kind of target from the values of `y`.

    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> guess_kind(replace(PackedGraphs.from_edges([edge, edge], [2, 2]), y=torch.tensor([[0.5], [1.0]])))
    'regression'
    """
    y = graphs.y
    if y is None:
        return "none"
    if not y.is_floating_point():
        return "class" if y.dim() == 1 or y.size(1) == 1 else "multilabel"
    unknown = y.isnan() & (y.dim() > 1 and y.size(1) > 1)
    if bool(((y == 0) | (y == 1) | unknown).all()) and bool((y == 0).any()) and bool((y == 1).any()):
        return "binary" if y.dim() == 1 or y.size(1) == 1 else "multilabel"
    return "regression"


def _target_facts(kind: TargetKind, y: torch.Tensor | None) -> dict[str, Any]:
    """Return the loss, metric and direction of a kind of target."""
    if y is None:
        return {}
    if kind == "class":
        return classification(int(y.max()) + 1)
    if kind == "binary":
        return binary()
    several = multilabel if kind == "multilabel" else regression
    return several(y.size(1), has_missing_targets=y.size(1) > 1 and bool(y.isnan().any()))


def _with_targets(graphs: PackedGraphs, kind: TargetKind) -> PackedGraphs:
    """Convert `y` to the form of its kind."""
    if kind == "none":
        return replace(graphs, y=None)
    if graphs.y is None:
        raise DataError(f"kind={kind!r} needs targets, but there are none: name the target column, or give graphs a y.")
    if kind == "class":
        y = graphs.y.view(len(graphs), -1)
        if y.size(1) != 1:
            raise DataError(f"kind='class' takes one target column, got {y.size(1)}.")
        if y.is_floating_point() and not bool(y.isfinite().all()):
            graph = int((~y.isfinite()).nonzero()[0, 0])
            raise DataError(f"the class of graph {graph} is NaN or infinite: expected a number. Leave that graph out.")
        codes: torch.Tensor = torch.unique(y.view(-1), return_inverse=True)[1]
        return replace(graphs, y=codes)
    exact = kind == "regression" and graphs.y.dtype not in (torch.float32, torch.float16, torch.bfloat16)
    y = (graphs.y.double() if exact else graphs.y.float()).view(len(graphs), -1)
    if kind == "binary" and y.size(1) != 1:
        raise DataError(f"kind='binary' takes one target, got {y.size(1)}: expected kind='multilabel' for several.")
    wrong = (y != 0) & (y != 1) & ~(y.isnan() & (y.size(1) > 1))
    if kind in ("binary", "multilabel") and bool(wrong.any()):
        row, column = wrong.nonzero()[0].tolist()
        raise DataError(
            f"kind={kind!r} takes targets of 0 and 1, got {y[row, column]:g} in graph {row}: expected kind='class' or "
            "'regression' for other values."
        )
    return replace(graphs, y=y)


def _features(values: torch.Tensor | None) -> Features | None:
    if values is None:
        return None
    columns = values.view(values.size(0), -1) if values.size(0) else values.view(0, max(values[:0].numel(), 1))
    if values.dtype == torch.bool or values.is_floating_point():
        return Continuous(columns.size(1))
    if columns.size(0) and int(columns.min()) < 0:
        raise DataError("integer features are categories 0, 1, ...: got a negative one; make them floating numbers.")
    return Categorical(tuple((columns.long().amax(dim=0) + 1).tolist() if columns.size(0) else [1] * columns.size(1)))


def _targets(table: Table, smiles: str, descriptors: Sequence[str] = ()) -> list[str]:
    """Return the only numeric column that is no descriptor, or none: the user must choose among several."""
    found = [name for name in numeric_columns(table, leave_out=smiles) if name not in descriptors]
    if not found:
        check_decimal_commas(
            table, [name for name in table.columns if name != smiles and table.columns.count(name) == 1]
        )
    return found if len(found) == 1 else []
