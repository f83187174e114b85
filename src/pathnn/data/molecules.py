"""Molecules as arrays of codes, and many of them as packed graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pathnn.data.packed import PackedGraphs, offsets

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class MoleculeGraph:
    """A molecule as a model reads it.

    Attributes:
        atoms: the features of each atom, `[atoms, 9]`, uint8.
        bonds: the features of each bond, `[bonds, 3]`, uint8.
        ends: the two atoms of each bond, `[bonds, 2]`, int32.
        order: the number of each atom in the user's SMILES, `[atoms]`, int32.
    """

    atoms: Array
    bonds: Array
    ends: Array
    order: Array


def molecule_arrays(molecule: Any, atoms: list[list[int]], bonds: list[list[int]], order: list[int]) -> MoleculeGraph:
    """The graph of an rdkit molecule with these features of its atoms and bonds."""
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    return MoleculeGraph(
        atoms=np.array(atoms, dtype=np.uint8).reshape(-1, 9),
        bonds=np.array(bonds, dtype=np.uint8).reshape(-1, 3),
        ends=np.array(ends, dtype=np.int32).reshape(-1, 2),
        order=np.array(order, dtype=np.int32),
    )


def pack_molecules(molecules: Sequence[MoleculeGraph]) -> PackedGraphs:
    """Pack molecules, each bond in both directions.

    >>> ends, order = np.array([[0, 1]]), np.arange(2)
    >>> pack_molecules([MoleculeGraph(np.zeros((2, 9)), np.zeros((1, 3)), ends, order)])[0].edge_index.tolist()
    [[0, 1], [1, 0]]
    """
    sizes = [len(molecule.atoms) for molecule in molecules]
    ends = np.concatenate([molecule.ends for molecule in molecules])
    both = np.stack([ends, ends[:, ::-1]], axis=1).reshape(-1, 2).T
    bonds = np.concatenate([molecule.bonds for molecule in molecules])
    small = np.int16 if max(sizes) < 2**15 else np.int32
    return PackedGraphs(
        edge_index=torch.from_numpy(np.ascontiguousarray(both, dtype=small)),
        node_ptr=offsets(torch.tensor(sizes)),
        edge_ptr=offsets(2 * torch.tensor([len(molecule.ends) for molecule in molecules])),
        x=torch.from_numpy(np.concatenate([molecule.atoms for molecule in molecules])),
        edge_attr=torch.from_numpy(bonds.repeat(2, axis=0)),
    )


def place(value: Any, names: tuple[str, ...]) -> int:
    """The place of an rdkit value in a list of names, one more for any other."""
    name = str(value)
    return names.index(name) if name in names else len(names)


def number_place(value: int, first: int, last: int) -> int:
    """The place of a number in `first..last`, one more for any other.

    >>> number_place(-5, -5, 6), number_place(7, -5, 6)
    (0, 12)
    """
    return value - first if first <= value <= last else last - first + 1
