"""Molecules with the features of the Open Graph Benchmark, which models trained on ogbg-molhiv and Peptides read.

Nine numbers an atom and three a bond, each the place of a value in a list of OGB's; what is in none of them counts as
the last. Atoms and bonds are in rdkit's order.
"""

from __future__ import annotations

from typing import Any

import torch

from pathnn.data.task import Categorical

OGB_ATOMS = Categorical((119, 5, 12, 12, 10, 6, 6, 2, 2))
OGB_BONDS = Categorical((5, 6, 2))

_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_HYBRIDS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")


def ogb_graph(molecule: Any) -> Any:
    """An rdkit molecule as PyG's `Data`: `x` `[atoms, 9]`, `edge_attr` `[2 bonds, 3]`, each bond in both directions.

    ```python
    methanol = ogb_graph(rdkit.Chem.MolFromSmiles("CO"))
    methanol.x.tolist()  # [[5, 0, 4, 5, 3, 0, 2, 0, 0], [7, 0, 2, 5, 1, 0, 2, 0, 0]]
    ```
    """
    from torch_geometric.data import Data

    atoms = [_atom(atom) for atom in molecule.GetAtoms()]
    bonds = [_bond(bond) for bond in molecule.GetBonds() for _ in range(2)]
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    pairs = [pair for begin, end in ends for pair in ((begin, end), (end, begin))]
    return Data(
        x=torch.tensor(atoms, dtype=torch.long).view(-1, 9),
        edge_index=torch.tensor(pairs, dtype=torch.long).view(-1, 2).t().contiguous(),
        edge_attr=torch.tensor(bonds, dtype=torch.long).view(-1, 3),
    )


def _atom(atom: Any) -> list[int]:
    return [
        _number(atom.GetAtomicNum(), 1, 118),
        _place(atom.GetChiralTag(), _CHIRALITY),
        _number(atom.GetTotalDegree(), 0, 10),
        _number(atom.GetFormalCharge(), -5, 5),
        _number(atom.GetTotalNumHs(), 0, 8),
        _number(atom.GetNumRadicalElectrons(), 0, 4),
        _place(atom.GetHybridization(), _HYBRIDS),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]


def _bond(bond: Any) -> list[int]:
    stereo = _place(bond.GetStereo(), _STEREO)
    return [_place(bond.GetBondType(), _BONDS), min(stereo, len(_STEREO) - 1), int(bond.GetIsConjugated())]


def _number(value: int, first: int, last: int) -> int:
    """The place of a number in `first..last`, one more for any other."""
    return value - first if first <= value <= last else last - first + 1


def _place(value: Any, names: tuple[str, ...]) -> int:
    """The place of an rdkit value in a list of names, one more for any other."""
    name = str(value)
    return names.index(name) if name in names else len(names)
