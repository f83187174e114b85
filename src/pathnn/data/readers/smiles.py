"""Read the molecules of a table as graphs, and compute fingerprints and descriptors of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pathnn.data.errors import BadRow, BadRowsError, DataError
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.readers.molecules import (
    Clean,
    MoleculeFeatures,
    MoleculePool,
    Molecules,
    quiet_rdkit,
    read_molecules,
    reader_processes,
)
from pathnn.data.readers.table import Table, numbers_of, row_targets
from pathnn.data.targets import class_key
from pathnn.data.task import Categorical
from pathnn.nn.presets import OGB_ATOMS, OGB_BONDS

FEATURES: dict[MoleculeFeatures, tuple[Categorical, Categorical]] = {
    "cip": (Categorical((119, 5, 12, 13, 10, 6, 8, 2, 2)), Categorical((22, 5, 2))),
    "ogb": (Categorical(OGB_ATOMS), Categorical(OGB_BONDS)),
}
"""The features of atoms and of bonds, which `readers.molecules` describes."""

RADIUS, BITS = 2, 2048
"""Of Morgan fingerprints."""

Array = np.ndarray[Any, np.dtype[np.float32]]


def smiles_graphs(
    table: Table,
    *,
    smiles: str | None = None,
    targets: Sequence[str] = (),
    labels: Sequence[str] = (),
    skip_invalid: bool = False,
    features: MoleculeFeatures = "cip",
    clean: Clean | None = None,
) -> tuple[PackedGraphs, list[BadRow]]:
    """Read the molecules of a table as graphs; return them and the rows that were left out.

    `y` is `[G, targets]`, float64; with `labels`, values are class names, and `y` has their positions. A row is bad
    if rdkit refuses its SMILES, or if a target is missing or is not a finite number. Bad rows raise `BadRowsError`,
    or are left out with `skip_invalid`. Of several targets, some may be missing (NaN), but not all. `clean` says how to
    clean the molecules; their names stay the SMILES of the table.
    """
    texts = table.column(smiles or table.smiles_column())
    columns = [table.column(target) for target in targets]
    classes = {class_key(label): i for i, label in enumerate(labels)}
    values = [row_targets(list(zip(targets, row, strict=True)), classes) for row in zip(*columns, strict=True)]
    wrong = {i: value for i, row in enumerate(values) for value in reversed(row) if isinstance(value, str)}
    wrong |= table.problems
    rows = [i for i in range(len(texts)) if i not in wrong]
    with MoleculePool(features, reader_processes(len(rows)), clean) as pool:
        molecules, problems = pool.read([texts[i] for i in rows])()
    wrong |= {rows[at]: reason for at, reason in problems.items()}
    bad = [BadRow(i + 1, wrong[i], texts[i] or "") for i in sorted(wrong)]
    if bad and not skip_invalid:
        raise BadRowsError(table.source, bad, len(texts))
    if len(bad) == len(texts):
        raise BadRowsError(table.source, bad, len(texts), "name the column that holds SMILES (--smiles COLUMN)")
    good = [i for i in range(len(texts)) if i not in wrong]
    y = torch.tensor([values[i] for i in good], dtype=torch.float64).view(len(good), len(targets)) if targets else None
    return replace(pack_molecules(molecules), y=y, names=tuple(texts[i] or "" for i in good)), bad


def read_molecule(smiles: str | None, features: MoleculeFeatures = "cip") -> Molecules | str:
    """Return one molecule, or a text that says what is wrong with its SMILES.

    ```python
    read_molecule("OCC").order.tolist()  # [2, 1, 0]: with "cip", atoms are in the order of the canonical SMILES, CCO
    ```
    """
    molecules, problems = read_molecules([smiles], features)
    return problems.get(0, molecules)


def pack_molecules(molecules: Sequence[Molecules]) -> PackedGraphs:
    """Pack molecules.

    >>> atoms, bonds, ends, sizes = np.zeros((2, 9)), np.zeros((1, 3)), np.array([[0, 1]]), np.array([[2], [1]])
    >>> pack_molecules([Molecules(atoms, bonds, ends, np.arange(2), *sizes)])[0].edge_index.tolist()
    [[0, 1], [1, 0]]
    """
    parts = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*molecules, strict=True))
    atoms, bonds, ends, _, num_atoms, num_bonds = parts
    small = torch.int16 if num_atoms.max() < 2**15 else torch.int32
    return pack_bonds(atoms, bonds, ends.to(small), num_atoms, num_bonds)


def pack_bonds(atoms: Tensor, bonds: Tensor, ends: Tensor, num_atoms: Tensor, num_bonds: Tensor) -> PackedGraphs:
    """Pack flat tensors of atoms and bonds; edges are in OGB's order: each bond `[B, 2]`, then its reverse.

    >>> ends, features, sizes = torch.tensor([[0, 1], [1, 2]]), torch.zeros(3, 1), torch.tensor([[3], [2]])
    >>> pack_bonds(features, features[:2], ends, *sizes).edge_index.tolist()
    [[0, 1, 1, 2], [1, 0, 2, 1]]
    """
    return PackedGraphs(
        edge_index=torch.stack([ends, ends.flip(1)], dim=1).view(-1, 2).t().contiguous(),
        node_ptr=offsets(num_atoms.long()),
        edge_ptr=offsets(2 * num_bonds.long()),
        x=atoms,
        edge_attr=bonds.repeat_interleave(2, dim=0),
    )


@dataclass(frozen=True)
class Descriptors:
    """Which numbers describe a molecule: descriptors of RDKit, Morgan counts, or columns of the user's table.

    `names` are those of RDKit's descriptors or of the columns; Morgan counts have none.

    >>> Descriptors.of("rdkit").names[:2]
    ('MaxAbsEStateIndex', 'MaxEStateIndex')
    >>> Descriptors.of(["pH"])
    Descriptors(kind='columns', names=('pH',))
    """

    kind: Literal["rdkit", "morgan", "columns"]
    names: tuple[str, ...] = ()

    @staticmethod
    def of(descriptors: str | Sequence[str] | Descriptors) -> Descriptors:
        """Return the descriptors of a name, "rdkit" or "morgan", or of columns."""
        if isinstance(descriptors, Descriptors):
            return descriptors
        if descriptors == "rdkit":
            from rdkit.Chem import Descriptors as known

            return Descriptors("rdkit", tuple(name for name, _ in known._descList))
        if descriptors == "morgan":
            return Descriptors("morgan")
        columns = (descriptors,) if isinstance(descriptors, str) else tuple(descriptors)
        if not columns or len(set(columns)) < len(columns):
            raise DataError(f"descriptors={columns}: expected rdkit, morgan, or columns, each of them once.")
        return Descriptors("columns", columns)

    @staticmethod
    def from_dict(values: Mapping[str, Any] | None) -> Descriptors | None:
        """Return the descriptors that a model file has as plain values."""
        return None if values is None else Descriptors(values["kind"], tuple(values["names"]))

    def of_molecules(self, smiles: Sequence[str]) -> Array:
        """Compute the descriptors of molecules, `[molecules, descriptors]`; NaN where one is not defined.

        Raises `DataError` for columns, which only a table has.
        """
        if self.kind == "morgan":
            return np.log1p(morgan(smiles).astype(np.float32))
        if self.kind == "rdkit":
            return rdkit_descriptors(smiles, self.names)
        raise DataError(f"the model reads {self}: give a table with these columns.")

    def of_rows(self, table: Table, rows: Sequence[int], smiles: Sequence[str]) -> Array:
        """Return the descriptors of some rows of a table, counted from 0, whose molecules are `smiles`."""
        if self.kind != "columns":
            return self.of_molecules(smiles)
        columns = [numbers_of(table, name) for name in self.names]
        values = [[column[row] for column in columns] for row in rows]
        return np.array(values, dtype=np.float32).reshape(len(rows), len(columns))

    def checked(self, table: Table) -> Table:
        """Return the table with a problem for each row with a descriptor that is no number; it must have the columns.

        >>> Descriptors.of(["pH"]).checked(Table("a.csv", ("smiles", "pH"), (("C", "7"), ("CC", "low")))).problems
        {1: "the descriptor 'pH' is 'low', not a finite number"}
        """
        if self.kind != "columns":
            return table
        missing = [name for name in self.names if name not in table.columns]
        if missing:
            raise DataError(
                f"{table.source} has no column {missing[0]!r}, which the descriptors ask for; expected "
                f"{list(self.names)}, got {list(table.columns)}."
            )
        values = [(row, text) for name in self.names for row, text in enumerate(numbers_of(table, name))]
        return replace(table, problems={**{i: text for i, text in values if isinstance(text, str)}, **table.problems})

    def __str__(self) -> str:
        if self.kind == "columns":
            return f"the columns {', '.join(map(repr, self.names))} as descriptors"
        return "Morgan counts as descriptors" if self.kind == "morgan" else "descriptors of RDKit"


def rdkit_descriptors(smiles: Sequence[str], names: Sequence[str] | None = None) -> Array:
    """Compute 2D descriptors of RDKit, `[molecules, descriptors]`, all or those of `names`; NaN if not defined.

    >>> rdkit_descriptors(["CCO"]).shape[1] > 200
    True
    >>> rdkit_descriptors(["CCO", "C"], ["NumHAcceptors"]).tolist()
    [[1.0], [0.0]]
    """
    from rdkit import Chem
    from rdkit.Chem import Descriptors as known

    functions: dict[str, Any] = dict(known._descList)
    unknown = [name for name in names or () if name not in functions]
    if unknown:
        raise DataError(
            f"this version of RDKit has no descriptor {unknown[0]!r}, which the model reads: install the version that "
            "it was trained with."
        )
    compute: Any = known.CalcMolDescriptors
    with quiet_rdkit():
        found = [compute(Chem.MolFromSmiles(text)) for text in smiles]
    chosen = list(functions) if names is None else names
    values = np.array([[row[name] for name in chosen] for row in found], dtype=np.float64).reshape(-1, len(chosen))
    values[np.abs(values) > np.finfo(np.float32).max] = np.nan
    return values.astype(np.float32)


def morgan(smiles: Sequence[str | None], *, skip_invalid: bool = False) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Count the substructures of molecules up to radius 2, `[molecules, BITS]`.

    A text that is no molecule raises `DataError`; with `skip_invalid`, its counts are 0.

    >>> morgan(["C", "C("], skip_invalid=True).sum(axis=1).tolist()
    [1, 0]
    """
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator: Any = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    rows = np.zeros((len(smiles), BITS), dtype=np.uint32)
    with quiet_rdkit():
        for row, text in zip(rows, smiles, strict=True):
            molecule: Any = Chem.MolFromSmiles(text or "")
            if molecule is not None:
                row[:] = generator.GetCountFingerprintAsNumPy(molecule)
            elif not skip_invalid:
                raise DataError(f"{text!r} is no molecule that rdkit can read.")
    return rows
