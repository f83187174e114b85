"""Read the molecules of a table as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from pathnn.data.errors import BadRow, BadRowsError
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.readers.descriptors import Descriptors
from pathnn.data.readers.molecules import Clean, MoleculeFeatures, Molecules, read_molecules
from pathnn.data.readers.pool import MoleculePool, MoleculeReader, reader_processes
from pathnn.data.readers.table import Table, class_key, row_targets
from pathnn.data.task import Categorical
from pathnn.nn.presets import OGB_ATOMS, OGB_BONDS

FEATURES: dict[MoleculeFeatures, tuple[Categorical, Categorical]] = {
    "cip": (Categorical((119, 5, 12, 13, 10, 6, 8, 2, 2)), Categorical((22, 5, 2))),
    "ogb": (Categorical(OGB_ATOMS), Categorical(OGB_BONDS)),
}
"""The features of atoms and of bonds, which `readers.molecules` describes."""


def smiles_graphs(
    table: Table,
    *,
    smiles: str | None = None,
    targets: Sequence[str] = (),
    labels: Sequence[str] = (),
    skip_invalid: bool = False,
    features: MoleculeFeatures = "cip",
    clean: Clean | None = None,
    descriptors: Descriptors | None = None,
) -> tuple[PackedGraphs, list[BadRow]]:
    """Read the molecules of a table as graphs, named by the SMILES of the table; return them and the rows left out.

    `y` is `[G, targets]`, float64, or positions in `labels`. A row without a molecule or without any target, or with a
    target that is no finite number, is bad: it raises `BadRowsError`, or is left out with `skip_invalid`.
    """
    texts = table.column(smiles or table.smiles_column())
    columns = [table.column(target) for target in targets]
    classes = {class_key(label): i for i, label in enumerate(labels)}
    values = [row_targets(list(zip(targets, row, strict=True)), classes) for row in zip(*columns, strict=True)]
    wrong = {i: value for i, row in enumerate(values) for value in reversed(row) if isinstance(value, str)}
    wrong |= table.problems
    rows = [i for i in range(len(texts)) if i not in wrong]
    with MoleculePool(MoleculeReader(features, clean, descriptors), reader_processes(len(rows))) as pool:
        molecules, problems, numbers = pool.read([texts[i] for i in rows])()
    wrong |= {rows[at]: reason for at, reason in problems.items()}
    bad = [BadRow(i + 1, wrong[i], texts[i] or "") for i in sorted(wrong)]
    if bad and not skip_invalid:
        raise BadRowsError(table.source, bad, len(texts))
    if len(bad) == len(texts):
        raise BadRowsError(table.source, bad, len(texts), "name the column that holds SMILES (--smiles COLUMN)")
    good = [i for i in range(len(texts)) if i not in wrong]
    y = torch.tensor([values[i] for i in good], dtype=torch.float64).view(len(good), len(targets)) if targets else None
    if descriptors is not None and numbers is None:
        numbers = descriptors.of_rows(table, good)
    described = None if numbers is None else torch.from_numpy(numbers)
    return replace(pack_molecules(molecules), y=y, names=tuple(texts[i] or "" for i in good), graph_attr=described), bad


def read_molecule(
    smiles: str | None, features: MoleculeFeatures = "cip", clean: Clean | None = None
) -> Molecules | str:
    """Return one molecule, or a text that says what is wrong with its SMILES."""
    molecules, problems = read_molecules([smiles], features, clean)
    return problems.get(0, molecules)


def pack_molecules(molecules: Sequence[Molecules]) -> PackedGraphs:
    """Pack molecules."""
    parts = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*molecules, strict=True))
    atoms, bonds, ends, _, num_atoms, num_bonds = parts
    small = torch.int16 if num_atoms.max() < 2**15 else torch.int32
    return pack_bonds(atoms, bonds, ends.to(small), num_atoms, num_bonds)


def pack_bonds(atoms: Tensor, bonds: Tensor, ends: Tensor, num_atoms: Tensor, num_bonds: Tensor) -> PackedGraphs:
    """Pack flat tensors of atoms and bonds; edges are in OGB's order: each bond `[B, 2]`, then its reverse."""
    return PackedGraphs(
        edge_index=torch.stack([ends, ends.flip(1)], dim=1).view(-1, 2).t().contiguous(),
        node_ptr=offsets(num_atoms.long()),
        edge_ptr=offsets(2 * num_bonds.long()),
        x=atoms,
        edge_attr=bonds.repeat_interleave(2, dim=0),
    )
