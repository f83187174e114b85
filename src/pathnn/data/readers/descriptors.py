"""Fingerprints and descriptors of molecules, and how a model that reads them computes them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pathnn.data.errors import DataError
from pathnn.data.readers.molecules import BITS, morgan, quiet_rdkit
from pathnn.data.readers.table import Table

FAST = (
    *(f"SlogP_VSA{i}" for i in range(1, 13)), *(f"SMR_VSA{i}" for i in range(1, 11)), "MolLogP", "MolMR", "TPSA",
    "LabuteASA", "MolWt", "HeavyAtomCount", "NHOHCount", "NOCount", "NumHAcceptors", "NumHDonors", "NumHeteroatoms",
    "RingCount", "FractionCSP3", "NumAliphaticCarbocycles", "NumAliphaticHeterocycles", "NumAliphaticRings",
    "NumAromaticCarbocycles", "NumAromaticHeterocycles", "NumAromaticRings", "NumSaturatedCarbocycles",
    "NumSaturatedHeterocycles", "NumSaturatedRings", "NumAmideBonds", "NumHeterocycles", "NumSpiroAtoms",
    "NumBridgeheadAtoms", "NumAtomStereoCenters",
)  # fmt: skip
"""Descriptors of RDKit that take a fifteenth of the time of all. Partial charges are left out: they depend, in their
last digits, on the order of the atoms."""

Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Descriptors:
    """The descriptors of a molecule: Morgan counts, then those of RDKit, or columns of a table (`names`)."""

    kind: Literal["standard", "rdkit", "morgan", "columns"]
    names: tuple[str, ...] = ()

    @staticmethod
    def of(descriptors: str | Sequence[str] | Descriptors, table: Table | None = None) -> Descriptors:
        """Return the descriptors of a name, "standard", "rdkit" or "morgan", or of numeric columns of a table."""
        if isinstance(descriptors, Descriptors):
            return descriptors
        if descriptors == "rdkit":
            from rdkit.Chem import Descriptors as known

            return Descriptors("rdkit", tuple(name for name, _ in known._descList))
        if descriptors == "morgan":
            return Descriptors("morgan")
        if descriptors == "standard":
            return Descriptors("standard", FAST)
        columns = (descriptors,) if isinstance(descriptors, str) else tuple(descriptors)
        if not columns or len(set(columns)) < len(columns):
            raise DataError(f"descriptors={columns}: expected standard, rdkit, morgan, or columns, each of them once.")
        return Descriptors("columns", columns if table is None else _numeric_columns(columns, table))

    @staticmethod
    def from_dict(values: Mapping[str, Any] | None) -> Descriptors | None:
        """Return the descriptors that a model file has as plain values."""
        return None if values is None else Descriptors(values["kind"], tuple(values["names"]))

    def of_molecules(self, smiles: Sequence[str]) -> Array:
        """Compute the descriptors of molecules, `[molecules, descriptors]`; NaN where one is not defined."""
        if self.kind == "columns":
            raise DataError(f"the model reads {self}: give a table with these columns.")
        parts = [np.log1p(morgan(smiles).astype(np.float32))] if self.counts else []
        parts += [rdkit_descriptors(smiles, self.names)] if self.names else []
        return np.concatenate(parts, axis=1)

    @property
    def counts(self) -> int:
        """How many of the numbers, the first ones, are Morgan counts: they are not standardised."""
        return BITS if self.kind in ("standard", "morgan") else 0

    def of_rows(self, table: Table, rows: Sequence[int]) -> Array:
        """Return the values of the columns in some rows of a table, counted from 0."""
        columns = [table.numbers(name) for name in self.names]
        values = [[column[row] for column in columns] for row in rows]
        return np.array(values, dtype=np.float32).reshape(len(rows), len(columns))

    def checked(self, table: Table) -> Table:
        """Return the table with a problem for each row whose descriptors are no numbers; it must have the columns."""
        if self.kind != "columns":
            return table
        if missing := [name for name in self.names if name not in table.columns]:
            raise DataError(f"{table.source} has no column {missing[0]!r}, which the model reads as a descriptor.")
        values = [(row, text) for name in self.names for row, text in enumerate(table.numbers(name))]
        return replace(table, problems={**{i: text for i, text in values if isinstance(text, str)}, **table.problems})

    def __str__(self) -> str:
        if self.kind == "columns":
            return f"the columns {', '.join(map(repr, self.names))} as descriptors"
        kinds = {"standard": "Morgan counts and descriptors of RDKit", "morgan": "Morgan counts as descriptors"}
        return kinds.get(self.kind, "descriptors of RDKit")


def _numeric_columns(names: tuple[str, ...], table: Table) -> tuple[str, ...]:
    """Return the columns of descriptors; parts of a name with commas stand for its column. They must have numbers."""
    if missing := [name for name in names if name not in table.columns]:
        names = tuple(name for name in table.columns if tuple(map(str.strip, name.split(","))) == names)[:1]
    if not names:
        raise DataError(
            f"{table.source} has no column {missing[0]!r} for descriptors: expected standard, rdkit, morgan, none, or "
            f"columns of numbers, from {list(table.columns)}."
        )
    for name in names:
        known = [value for value in table.numbers(name) if value == value]  # not NaN
        if 2 * (numbers := sum(isinstance(value, float) for value in known)) <= len(known):
            raise DataError(
                f"{table.source}: the descriptor column {name!r} is not numeric: it has {numbers} numbers, and "
                f"{len(known) - numbers} other values."
            )
    return names


def rdkit_descriptors(smiles: Sequence[str], names: Sequence[str] | None = None) -> Array:
    """Compute 2D descriptors of RDKit, `[molecules, descriptors]`, all or those of `names`; NaN if not defined."""
    from rdkit import Chem
    from rdkit.Chem import Descriptors as known

    functions: dict[str, Any] = dict(known._descList)
    unknown = [name for name in names or () if name not in functions]
    if unknown:
        raise DataError(
            f"this version of RDKit has no descriptor {unknown[0]!r}, which the model reads: install the version that "
            "it was trained with."
        )
    chosen = [functions[name] for name in (functions if names is None else names)]
    with quiet_rdkit():
        molecules = map(Chem.MolFromSmiles, smiles)
        values = np.array([[_value(function, one) for function in chosen] for one in molecules], dtype=np.float64)
    values = values.reshape(len(smiles), len(chosen))
    values[np.abs(values) > np.finfo(np.float32).max] = np.nan
    return values.astype(np.float32)


def _value(function: Any, molecule: Any) -> float:
    """Return a descriptor of a molecule, NaN if it is not defined."""
    try:
        return float(function(molecule))
    except (ArithmeticError, RuntimeError, ValueError):
        return np.nan
