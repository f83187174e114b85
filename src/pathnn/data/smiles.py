"""Molecules from a table with a SMILES column, through rdkit (extra `mol`), with CIP labels or OGB's features."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from pathnn.data.cip_features import CIP_ATOMS, CIP_BONDS, cip_graph
from pathnn.data.class_names import as_number, class_key, class_names, is_missing, is_missing_number
from pathnn.data.errors import BadRow, BadRowsError, DataError
from pathnn.data.molecules import MoleculeGraph, pack_molecules
from pathnn.data.ogb_features import OGB_ATOMS, OGB_BONDS, ogb_graph
from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Categorical
from pathnn.data.text import read_text

MoleculeFeatures = Literal["cip", "ogb"]
FEATURES: dict[MoleculeFeatures, tuple[Categorical, Categorical]] = {
    "cip": (CIP_ATOMS, CIP_BONDS),
    "ogb": (OGB_ATOMS, OGB_BONDS),
}
"""The features of atoms and of bonds."""

LARGEST = torch.finfo(torch.float32).max
"""Of the targets."""

SMILES_NAMES = ("smiles", "canonical_smiles", "smi", "molecule", "mol", "structure")


@dataclass(frozen=True)
class CsvTable:
    """A CSV file: its header and its rows as text."""

    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str | None]:
        """The cells of a column, None where a row is too short."""
        if name not in self.columns:
            raise DataError(f"{self.source} has no column {name!r}; expected one of {list(self.columns)}.")
        if self.columns.count(name) > 1:
            raise DataError(
                f"{self.source} has {self.columns.count(name)} columns called {name!r}: rename all but one."
            )
        i = self.columns.index(name)
        return [row[i] if i < len(row) else None for row in self.rows]

    def smiles_column(self) -> str:
        """The name of the column that holds SMILES, found by its name."""
        for known in SMILES_NAMES:
            for column in self.columns:
                if column.strip().lower() == known:
                    return column
        raise DataError(
            f"{self.source} has no SMILES column: expected one called smiles, got {list(self.columns)}. Name the "
            "column that holds them (--smiles COLUMN)."
        )


def read_csv(path: Path) -> CsvTable:
    """Read a `.csv`, `.csv.gz` or `.csv.xz` file with a header line."""
    text = read_text(path)
    reader = csv.reader(io.StringIO(text), strict=True)  # else a quote that is not closed swallows the rows after it
    try:
        rows = [tuple(row) for row in reader if row]
    except csv.Error as error:
        raise DataError(
            f"{path} is no CSV file: {error}, in or before line {reader.line_num}. A cell that begins with a quote "
            '(") has to end with one.'
        ) from error
    if rows and [cell.strip().lower() for cell in rows[0]] == ["sep=", ""]:  # sep=, as Excel writes it
        del rows[0]
    if len(rows) < 2:
        raise DataError(f"{path} has no rows: expected a header line and one line per molecule.")
    header = rows[0][0] if len(rows[0]) == 1 else ""
    other = next((mark for mark in (";", "\t") if mark in header.strip(f"{mark} ")), None)
    if other is not None or rows[0][0].lower().startswith("sep="):
        raise DataError(
            f"the columns of {path} seem to be separated by {other or rows[0][0][4:]!r}: expected commas, and points "
            "in numbers. Save it in that form."
        )
    for number, row in enumerate(rows[1:], start=1):
        if any(cell.strip() for cell in row[len(rows[0]) :]):
            raise DataError(
                f"{path}, row {number}: {len(row)} cells, but the header has {len(rows[0])}. Put cells that contain a "
                'comma into "quotes".'
            )
    return CsvTable(str(path), rows[0], tuple(rows[1:]))


def smiles_graphs(
    table: CsvTable,
    *,
    smiles: str | None = None,
    targets: Sequence[str] = (),
    labels: Sequence[str] = (),
    skip_invalid: bool = False,
    features: MoleculeFeatures = "cip",
) -> tuple[PackedGraphs, list[BadRow]]:
    """The molecules of a table as graphs, and the rows that were left out.

    `y` is `[G, targets]`, float64; with `labels` cells are class names, and `y` their positions. A row with
    a SMILES that rdkit refuses, or with a target that is missing or no finite number, is bad: refused by
    default, left out with `skip_invalid`. Of several targets some may be missing, and are NaN, but not all.
    """
    texts = table.column(smiles or table.smiles_column())
    cells = [table.column(target) for target in targets]
    classes = {class_key(label): i for i, label in enumerate(labels)}
    molecules, values, bad = [], [], []
    for i, text in enumerate(texts):
        row = _targets([(name, column[i]) for name, column in zip(targets, cells, strict=True)], classes)
        fault = next((entry for entry in row if isinstance(entry, str)), None)
        molecule = fault or molecule_graph(text, features)
        if isinstance(molecule, str):
            bad.append(BadRow(i + 1, molecule))
        else:
            molecules.append((text, molecule))
            values.append(row)
    if bad and not skip_invalid:
        raise BadRowsError(table.source, bad, len(texts))
    if not molecules:
        raise BadRowsError(table.source, bad, len(texts), "name the column that holds SMILES (--smiles COLUMN)")
    graphs = pack_molecules([graph for _, graph in molecules])
    y = torch.tensor(values, dtype=torch.float64).view(len(molecules), len(targets)) if targets else None
    return replace(graphs, y=y, names=tuple(text or "" for text, _ in molecules)), bad


def check_features(features: str) -> None:
    """Raise unless there are such features of molecules."""
    if features not in get_args(MoleculeFeatures):
        raise DataError(f"features={features!r} are unknown: expected one of {', '.join(get_args(MoleculeFeatures))}.")


def molecule_graph(smiles: str | None, features: MoleculeFeatures = "cip") -> MoleculeGraph | str:
    """A molecule as arrays, or what is wrong with its SMILES.

    ```python
    graph = molecule_graph("OCC")
    graph.order.tolist()  # [2, 1, 0]: with "cip", atoms are in the order of the canonical SMILES, CCO
    ```
    """
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise DataError("SMILES need rdkit, which is not installed: pip install 'pathnn[mol]'.") from error
    if smiles is None or not smiles.strip():
        return "the SMILES is empty"
    quiet = rdBase.BlockLogs()
    try:
        molecule: Any = Chem.MolFromSmiles(smiles)
        if molecule is None:
            return f"{_short(smiles)} is no molecule: {_problem(smiles)}"
        if molecule.GetNumAtoms() == 0:
            return f"{_short(smiles)} has no atoms"
        return cip_graph(molecule) if features == "cip" else ogb_graph(molecule)
    except ValueError as error:
        return f"{_short(smiles)} {error}"
    finally:
        del quiet


def class_labels(table: CsvTable, column: str) -> tuple[str, ...]:
    """The names of the classes in a column."""
    cells = [cell for cell in table.column(column) if cell is not None and not is_missing(cell)]
    named = [cell for cell in cells if not is_missing_number(cell)]
    if named and all(as_number(cell) is not None for cell in named):
        cells = named  # among numbers NA, null and the like are no classes
    return class_names(cells)


def is_text(table: CsvTable, column: str) -> bool:
    """Whether a column has cells that are not empty, and none of them is a number."""
    cells = [cell for cell in table.column(column) if cell is not None and not is_missing(cell)]
    return bool(cells) and all(as_number(cell) is None for cell in cells)


def numeric_columns(table: CsvTable, *, leave_out: str) -> list[str]:
    """The columns, other than `leave_out`, whose cells are numbers or empty."""
    found = []
    for name in table.columns:
        if table.columns.count(name) > 1:
            continue
        cells = [cell for cell in table.column(name) if not is_missing_number(cell)]
        if name != leave_out and cells and all(isinstance(_number(name, cell), float) for cell in cells):
            found.append(name)
    return found


def _targets(cells: Sequence[tuple[str, str | None]], classes: Mapping[Hashable, int]) -> list[float | str]:
    """The targets of a row: NaN for those of several that are missing. Text says what is wrong."""
    if len(cells) < 2:
        return [_value(name, cell, classes) for name, cell in cells]
    missing = [is_missing_number(cell) for _, cell in cells]
    if all(missing):
        return ["all targets are missing"]
    return [math.nan if gone else _number(name, cell) for gone, (name, cell) in zip(missing, cells, strict=True)]


def _value(name: str, cell: str | None, classes: Mapping[Hashable, int]) -> float | str:
    """The number in a cell or the position of its class, or what is wrong with it."""
    if not classes:
        return _number(name, cell)
    number = None if cell is None or is_missing(cell) else classes.get(class_key(cell))
    return f"the target {name!r} is missing" if number is None else float(number)


def _number(name: str, cell: str | None) -> float | str:
    """The number in a cell, or what is wrong with it."""
    if cell is None or is_missing_number(cell):
        return f"the target {name!r} is missing"
    value = as_number(cell)
    if value is None:
        return f"the target {name!r} is {_short(cell)}, not a number (for classes: --kind class)"
    if abs(value) > LARGEST:
        return f"the target {name!r} is {cell.strip()}, not a finite number that float32 can hold"
    return value


def _problem(smiles: str) -> str:
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    problems = [] if molecule is None else Chem.DetectChemistryProblems(molecule)
    return problems[0].Message() if problems else "it does not follow the SMILES grammar"


def _short(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")


def one_column(y: Tensor) -> Tensor:
    """Classes 0, 1, ... from a float column `[G, 1]`, as int64 `[G]`."""
    codes: Tensor = torch.unique(y.view(-1), return_inverse=True)[1]
    return codes
