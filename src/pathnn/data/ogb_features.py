"""Molecules with the features of the Open Graph Benchmark, which models trained on ogbg-molhiv and Peptides read.

Nine numbers an atom and three a bond, each the place of a value in a list of OGB's; what is in none of them counts as
the last. Atoms and bonds are in rdkit's order. The chirality of an atom is rdkit's tag, which depends on that order: a
prediction can depend on how a SMILES with @ is written. `cip_features` has features without that fault.
"""

from __future__ import annotations

from typing import Any

from pathnn.data.molecules import MoleculeGraph, molecule_arrays, number_place, place
from pathnn.data.task import Categorical

OGB_ATOMS = Categorical((119, 5, 12, 12, 10, 6, 6, 2, 2))
OGB_BONDS = Categorical((5, 6, 2))

_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_HYBRIDS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")


def ogb_graph(molecule: Any) -> MoleculeGraph:
    """An rdkit molecule with its atoms in the order of the SMILES.

    ```python
    methanol = ogb_graph(rdkit.Chem.MolFromSmiles("CO"))
    methanol.atoms.tolist()  # [[5, 0, 4, 5, 3, 0, 2, 0, 0], [7, 0, 2, 5, 1, 0, 2, 0, 0]]
    ```
    """
    atoms = [_atom(atom) for atom in molecule.GetAtoms()]
    bonds = [_bond(bond) for bond in molecule.GetBonds()]
    return molecule_arrays(molecule, atoms, bonds, list(range(len(atoms))))


def _atom(atom: Any) -> list[int]:
    return [
        number_place(atom.GetAtomicNum(), 1, 118),
        place(atom.GetChiralTag(), _CHIRALITY),
        number_place(atom.GetTotalDegree(), 0, 10),
        number_place(atom.GetFormalCharge(), -5, 5),
        number_place(atom.GetTotalNumHs(), 0, 8),
        number_place(atom.GetNumRadicalElectrons(), 0, 4),
        place(atom.GetHybridization(), _HYBRIDS),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]


def _bond(bond: Any) -> list[int]:
    stereo = place(bond.GetStereo(), _STEREO)
    return [place(bond.GetBondType(), _BONDS), min(stereo, len(_STEREO) - 1), int(bond.GetIsConjugated())]
