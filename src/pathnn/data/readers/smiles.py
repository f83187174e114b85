"""Read SMILES as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import torch

from pathnn.data.errors import BadRow, BadRowsError, DataError
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.readers.clean import Clean
from pathnn.data.readers.molecule_pool import MoleculePool, reader_processes
from pathnn.data.readers.molecules import MoleculeFeatures, Molecules, read_molecules
from pathnn.data.readers.table import Table, row_targets
from pathnn.data.targets import class_key


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
    values, wrong = [], {}
    for i in range(len(texts)):
        row = row_targets([(name, column[i]) for name, column in zip(targets, columns, strict=True)], classes)
        problem = table.problems.get(i) or next((value for value in row if isinstance(value, str)), None)
        if problem is not None:
            wrong[i] = problem
        values.append(row)
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


def check_features(features: str) -> None:
    """Raise `DataError` unless `features` names features of molecules."""
    if features not in get_args(MoleculeFeatures):
        raise DataError(f"features={features!r} are unknown: expected one of {', '.join(get_args(MoleculeFeatures))}.")


def read_molecule(smiles: str | None, features: MoleculeFeatures = "cip") -> Molecules | str:
    """Return one molecule, or a text that says what is wrong with its SMILES.

    ```python
    read_molecule("OCC").order.tolist()  # [2, 1, 0]: with "cip", atoms are in the order of the canonical SMILES, CCO
    ```
    """
    molecules, problems = read_molecules([smiles], features)
    return problems.get(0, molecules)


def pack_molecules(molecules: Sequence[Molecules]) -> PackedGraphs:
    """Pack molecules, each bond in both directions.

    >>> atoms, bonds, ends, sizes = np.zeros((2, 9)), np.zeros((1, 3)), np.array([[0, 1]]), np.array([[2], [1]])
    >>> pack_molecules([Molecules(atoms, bonds, ends, np.arange(2), *sizes)])[0].edge_index.tolist()
    [[0, 1], [1, 0]]
    """
    atoms, bonds, ends, _, num_atoms, num_bonds = map(
        np.concatenate, zip(*(some.arrays() for some in molecules), strict=True)
    )
    both = np.stack([ends, ends[:, ::-1]], axis=1).reshape(-1, 2).T
    small = np.int16 if num_atoms.max() < 2**15 else np.int32
    return PackedGraphs(
        edge_index=torch.from_numpy(np.ascontiguousarray(both, dtype=small)),
        node_ptr=offsets(torch.from_numpy(num_atoms)),
        edge_ptr=offsets(2 * torch.from_numpy(num_bonds)),
        x=torch.from_numpy(atoms),
        edge_attr=torch.from_numpy(bonds.repeat(2, axis=0)),
    )
