"""Features of atoms and bonds: "cip" for a user's molecules, "ogb" for models trained on OGB's data.

Both have nine codes per atom and three per bond.

- "cip": the features of PyG (`torch_geometric.utils.from_smiles`), with the labels of Cahn, Ingold and Prelog for
  stereochemistry: R, S, E and Z, and r, s, e and z where only substituents that are mirror images of each other make
  the difference. They do not depend on how a SMILES is written.
- "ogb": the features of the Open Graph Benchmark, which ogbg-molhiv and Peptides have. Atoms are in rdkit's order. The
  chirality of an atom is rdkit's tag, which depends on that order, so a prediction can depend on how a SMILES with @
  is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pathnn.data.task import Categorical
from pathnn.nn.presets import OGB_ATOMS, OGB_BONDS

MoleculeFeatures = Literal["cip", "ogb"]

FEATURES: dict[MoleculeFeatures, tuple[Categorical, Categorical]] = {
    "cip": (Categorical((119, 5, 12, 13, 10, 6, 8, 2, 2)), Categorical((22, 5, 2))),
    "ogb": (Categorical(OGB_ATOMS), Categorical(OGB_BONDS)),
}
"""The features of atoms and of bonds."""

MAX_ATOMS = 5_000
"""The largest molecule with "cip": rdkit writes SMILES by recursion, and larger molecules can overflow the stack."""

MAX_COMPARISONS = 1_000_000
"""How many comparisons of branches may be used to find CIP labels: less than a second. Drugs need far fewer."""

_CIP_ATOM_LABELS = ("", "R", "S", "r", "s")
_CIP_BOND_LABELS = ("", "E", "Z", "e", "z")
_CIP_HYBRIDS = ("UNSPECIFIED", "S", "SP", "SP2", "SP3", "SP3D", "SP3D2")
_CIP_BONDS = (
    "UNSPECIFIED", "SINGLE", "DOUBLE", "TRIPLE", "QUADRUPLE", "QUINTUPLE", "HEXTUPLE", "ONEANDAHALF", "TWOANDAHALF",
    "THREEANDAHALF", "FOURANDAHALF", "FIVEANDAHALF", "AROMATIC", "IONIC", "HYDROGEN", "THREECENTER", "DATIVEONE",
    "DATIVE", "DATIVEL", "DATIVER", "OTHER",
)  # fmt: skip

_OGB_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_OGB_HYBRIDS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_OGB_BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_OGB_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class MoleculeGraph:
    """A molecule as arrays of codes.

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


def cip_graph(molecule: Any) -> MoleculeGraph:
    """Read an rdkit molecule with its atoms in the order of its canonical SMILES.

    Raises `ValueError` for more than `MAX_ATOMS` atoms.

    ```python
    one, same = (cip_graph(rdkit.Chem.MolFromSmiles(text)) for text in ("C[C@H](N)C(=O)O", "N[C@@H](C)C(=O)O"))
    one.atoms.tolist() == same.atoms.tolist()  # True
    same.order.tolist()  # [2, 1, 0, 3, 4, 5]
    ```
    """
    if molecule.GetNumAtoms() > MAX_ATOMS:
        raise ValueError(f"has {molecule.GetNumAtoms():,} atoms, and at most {MAX_ATOMS:,} can be put into order")
    molecule, order, marked = _canonical(molecule)
    if marked:
        _assign_labels(molecule)
    atoms = [_cip_atom(atom, marked) for atom in molecule.GetAtoms()]
    bonds = [_cip_bond(bond, marked) for bond in molecule.GetBonds()]
    return _molecule_graph(molecule, atoms, bonds, order)


def ogb_graph(molecule: Any) -> MoleculeGraph:
    """Read an rdkit molecule with its atoms in the order of the SMILES.

    ```python
    methanol = ogb_graph(rdkit.Chem.MolFromSmiles("CO"))
    methanol.atoms.tolist()  # [[5, 0, 4, 5, 3, 0, 2, 0, 0], [7, 0, 2, 5, 1, 0, 2, 0, 0]]
    ```
    """
    atoms = [_ogb_atom(atom) for atom in molecule.GetAtoms()]
    bonds = [_ogb_bond(bond) for bond in molecule.GetBonds()]
    return _molecule_graph(molecule, atoms, bonds, list(range(len(atoms))))


def _molecule_graph(molecule: Any, atoms: list[list[int]], bonds: list[list[int]], order: list[int]) -> MoleculeGraph:
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    return MoleculeGraph(
        atoms=np.array(atoms, dtype=np.uint8).reshape(-1, 9),
        bonds=np.array(bonds, dtype=np.uint8).reshape(-1, 3),
        ends=np.array(ends, dtype=np.int32).reshape(-1, 2),
        order=np.array(order, dtype=np.int32),
    )


def _canonical(molecule: Any) -> tuple[Any, list[int], bool]:
    """Return the molecule of the canonical SMILES, the old number of each atom, and whether stereo is marked.

    The SMILES is read again: equal SMILES give equal graphs, whatever rdkit computes from the order of atoms.
    """
    from rdkit import Chem

    for atom in molecule.GetAtoms():
        atom.SetAtomMapNum(0)  # else part of the SMILES
    text = Chem.MolToSmiles(molecule)
    order = list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    again = Chem.MolFromSmiles(text)
    if again is None or again.GetNumAtoms() != len(order):  # it had hydrogens that are not read
        again = Chem.RenumberAtoms(molecule, order)
    return again, order, any(mark in text for mark in "@/\\")


def _assign_labels(molecule: Any) -> None:
    """Set the CIP labels; for a molecule that is too symmetric, rdkit's older and less exact ones."""
    from rdkit import Chem
    from rdkit.Chem import rdCIPLabeler

    try:
        rdCIPLabeler.AssignCIPLabels(molecule, maxRecursiveIterations=MAX_COMPARISONS)
    except RuntimeError:
        Chem.AssignStereochemistry(molecule, cleanIt=True, force=True)


def _cip_label(part: Any, labels: tuple[str, ...]) -> int:
    label = part.GetProp("_CIPCode") if part.HasProp("_CIPCode") else ""
    return labels.index(label) if label in labels else 0


def _cip_atom(atom: Any, marked: bool) -> list[int]:
    return [
        atom.GetAtomicNum(),
        _cip_label(atom, _CIP_ATOM_LABELS) if marked else 0,
        _number_code(atom.GetTotalDegree(), 0, 10),
        _number_code(atom.GetFormalCharge(), -5, 6),
        _number_code(atom.GetTotalNumHs(), 0, 8),
        _number_code(atom.GetNumRadicalElectrons(), 0, 4),
        _name_code(atom.GetHybridization(), _CIP_HYBRIDS),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]


def _cip_bond(bond: Any, marked: bool) -> list[int]:
    label = _cip_label(bond, _CIP_BOND_LABELS) if marked else 0
    return [_name_code(bond.GetBondType(), _CIP_BONDS), label, int(bond.GetIsConjugated())]


def _ogb_atom(atom: Any) -> list[int]:
    return [
        _number_code(atom.GetAtomicNum(), 1, 118),
        _name_code(atom.GetChiralTag(), _OGB_CHIRALITY),
        _number_code(atom.GetTotalDegree(), 0, 10),
        _number_code(atom.GetFormalCharge(), -5, 5),
        _number_code(atom.GetTotalNumHs(), 0, 8),
        _number_code(atom.GetNumRadicalElectrons(), 0, 4),
        _name_code(atom.GetHybridization(), _OGB_HYBRIDS),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]


def _ogb_bond(bond: Any) -> list[int]:
    stereo = min(_name_code(bond.GetStereo(), _OGB_STEREO), len(_OGB_STEREO) - 1)
    return [_name_code(bond.GetBondType(), _OGB_BONDS), stereo, int(bond.GetIsConjugated())]


def _name_code(value: Any, names: tuple[str, ...]) -> int:
    """Return the position of an rdkit value in a list of names; one more for any other value."""
    name = str(value)
    return names.index(name) if name in names else len(names)


def _number_code(value: int, first: int, last: int) -> int:
    """Return the position of a number in `first..last`; one more for any other number.

    >>> _number_code(-5, -5, 6), _number_code(7, -5, 6)
    (0, 12)
    """
    return value - first if first <= value <= last else last - first + 1
