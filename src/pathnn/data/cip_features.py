"""Features of molecules that do not depend on how a SMILES is written: PyG's, with CIP labels for stereochemistry.

PyG's features (`torch_geometric.utils.from_smiles`) have rdkit's chiral tags, which depend on the order of the atoms in
the SMILES. The labels of Cahn, Ingold and Prelog do not: R, S, E and Z, and r, s, e and z where only substituents that
are mirror images of each other make the difference.
"""

from __future__ import annotations

from typing import Any

from pathnn.data.molecules import MoleculeGraph, molecule_arrays, number_place, place
from pathnn.data.task import Categorical

CIP_ATOMS = Categorical((119, 5, 12, 13, 10, 6, 8, 2, 2))
CIP_BONDS = Categorical((22, 5, 2))

MAX_ATOMS = 5_000
"""Of a molecule: rdkit writes SMILES by recursion, and the stack ends at some multiple of this."""

MAX_COMPARISONS = 1_000_000
"""Of branches of a molecule, to find its labels: they take less than a second. Drugs need far fewer."""

_ATOM_LABELS = ("", "R", "S", "r", "s")
_BOND_LABELS = ("", "E", "Z", "e", "z")
_HYBRIDS = ("UNSPECIFIED", "S", "SP", "SP2", "SP3", "SP3D", "SP3D2")
_BONDS = (
    "UNSPECIFIED", "SINGLE", "DOUBLE", "TRIPLE", "QUADRUPLE", "QUINTUPLE", "HEXTUPLE", "ONEANDAHALF", "TWOANDAHALF",
    "THREEANDAHALF", "FOURANDAHALF", "FIVEANDAHALF", "AROMATIC", "IONIC", "HYDROGEN", "THREECENTER", "DATIVEONE",
    "DATIVE", "DATIVEL", "DATIVER", "OTHER",
)  # fmt: skip


def cip_graph(molecule: Any) -> MoleculeGraph:
    """An rdkit molecule with its atoms in the order of its canonical SMILES; raises `ValueError` above `MAX_ATOMS`.

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
    atoms = [_atom(atom, marked) for atom in molecule.GetAtoms()]
    bonds = [_bond(bond, marked) for bond in molecule.GetBonds()]
    return molecule_arrays(molecule, atoms, bonds, order)


def _canonical(molecule: Any) -> tuple[Any, list[int], bool]:
    """The molecule as its canonical SMILES has it, the number that each atom had, and whether it has marks of stereo.

    Since it is read again, equal SMILES give equal graphs: nothing that rdkit computes can depend on the order.
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
    """Set the CIP labels; of the rare molecule that is too symmetric for that, rdkit's older and rougher ones."""
    from rdkit import Chem
    from rdkit.Chem import rdCIPLabeler

    try:
        rdCIPLabeler.AssignCIPLabels(molecule, maxRecursiveIterations=MAX_COMPARISONS)
    except RuntimeError:
        Chem.AssignStereochemistry(molecule, cleanIt=True, force=True)


def _label(part: Any, labels: tuple[str, ...]) -> int:
    label = part.GetProp("_CIPCode") if part.HasProp("_CIPCode") else ""
    return labels.index(label) if label in labels else 0


def _atom(atom: Any, marked: bool) -> list[int]:
    return [
        atom.GetAtomicNum(),
        _label(atom, _ATOM_LABELS) if marked else 0,
        number_place(atom.GetTotalDegree(), 0, 10),
        number_place(atom.GetFormalCharge(), -5, 6),
        number_place(atom.GetTotalNumHs(), 0, 8),
        number_place(atom.GetNumRadicalElectrons(), 0, 4),
        place(atom.GetHybridization(), _HYBRIDS),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]


def _bond(bond: Any, marked: bool) -> list[int]:
    label = _label(bond, _BOND_LABELS) if marked else 0
    return [place(bond.GetBondType(), _BONDS), label, int(bond.GetIsConjugated())]
