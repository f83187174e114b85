"""The obvious way to read molecules, atom by atom and name by name: the oracle of `pathnn.data.readers.molecules`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdCIPLabeler

from pathnn.data.errors import shorten
from pathnn.data.readers.molecules import MAX_ATOMS, MAX_COMPARISONS, MoleculeFeatures

Array = np.ndarray[Any, np.dtype[Any]]

CHIRAL = {
    "alanine": "C[C@H](N)C(=O)O",
    "threonine": "C[C@@H](O)[C@H](N)C(=O)O",
    "proline": "OC(=O)[C@@H]1CCCN1",
    "cysteine zwitterion": "[NH3+][C@@H](CS)C(=O)[O-]",
    "a peptide": "C[C@H](N)C(=O)N[C@@H](Cc1c[nH]c2ccccc12)C(=O)N[C@@H](CO)C(=O)O",
    "glucose": "OC[C@H]1O[C@@H](O)[C@H](O)[C@@H](O)[C@@H]1O",
    "sucrose": "OC[C@H]1O[C@@](CO)(O[C@H]2O[C@H](CO)[C@@H](O)[C@H](O)[C@H]2O)[C@@H](O)[C@@H]1O",
    "testosterone": "C[C@]12CC[C@H]3[C@@H](CCC4=CC(=O)CC[C@]34C)[C@@H]1CC[C@@H]2O",
    "cholesterol": "C[C@H](CCCC(C)C)[C@H]1CC[C@@H]2[C@@]1(CC[C@H]3[C@H]2CC=C4[C@@]3(CC[C@@H](C4)O)C)C",
    "tartaric acid": "O[C@H]([C@@H](O)C(=O)O)C(=O)O",
    "a sulfoxide": "COc1ccc2[nH]c(nc2c1)[S@](=O)Cc1ncc(C)c(OC)c1C",
    "a phosphinate": "C[P@](=O)(OCC)c1ccccc1",
    "deuterated ethanol": "C[C@H]([2H])O",
    "nicotine hydrochloride": "CN1CCC[C@H]1c1cccnc1.Cl",
    "a salt of two chiral ions": "C[C@H]([NH3+])c1ccccc1.O[C@@H](C(=O)[O-])c1ccccc1",
    "an allylic alcohol": r"C/C=C/[C@H](O)/C=C\C",
}
ACHIRAL = {
    "(E)-2-butene": "C/C=C/C",
    "(Z)-2-butene": r"C/C=C\C",
    "retinal": "CC1=C(C(CCC1)(C)C)/C=C/C(=C/C=C/C(=C/C=O)/C)/C",
    "an azo dye": "CN(C)c1ccc(cc1)/N=N/c1ccccc1",
    "an imine with its hydrogen": "[H]/N=C(/C)c1ccccc1",
    "cis-1,4-dimethylcyclohexane": "C[C@H]1CC[C@@H](C)CC1",
    "trans-1,4-dimethylcyclohexane": "C[C@H]1CC[C@H](C)CC1",
    "cis-decalin": "C1CC[C@@H]2CCCC[C@H]2C1",
    "trans-decalin": "C1CC[C@H]2CCCC[C@H]2C1",
    "meso-tartaric acid": "O[C@H]([C@H](O)C(=O)O)C(=O)O",
    "myo-inositol": "O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O",
    "a cubane": "C[C@]12[C@@H]3[C@H]4[C@@H]1[C@]1(F)[C@@H]2[C@@H]3[C@H]41",
    "caffeine": "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
    "purine": "c1ncc2[nH]cnc2n1",
    "azulene": "c1ccc2cccc-2cc1",
    "a nitro compound": "CN(C)c1ccc([N+](=O)[O-])cc1",
    "a salt": "[Na+].[Na+].[O-]S(=O)(=O)[O-].O",
    "a radical": "CC1(C)CCCC(C)(C)N1[O]",
    "water": "O",
}

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


class SlowMolecule(NamedTuple):
    atoms: Array
    bonds: Array
    ends: Array
    order: Array


def slow_molecule(smiles: str | None, features: MoleculeFeatures = "cip") -> SlowMolecule | str:
    """Return a molecule as arrays, or a text that says what is wrong with its SMILES."""
    if smiles is None or not smiles.strip():
        return "the SMILES is empty"
    molecule: Any = Chem.MolFromSmiles(smiles)
    if molecule is None:
        return f"{shorten(smiles)} is no molecule: {_problem(smiles)}"
    if molecule.GetNumAtoms() == 0:
        return f"{shorten(smiles)} has no atoms"
    try:
        return _cip_molecule(molecule) if features == "cip" else _ogb_molecule(molecule)
    except ValueError as error:
        return f"{shorten(smiles)} {error}"


def _problem(smiles: str) -> str:
    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    problems = [] if molecule is None else Chem.DetectChemistryProblems(molecule)
    return problems[0].Message() if problems else "it does not follow the SMILES grammar"


def _cip_molecule(molecule: Any) -> SlowMolecule:
    """Atoms in the order of the canonical SMILES."""
    if molecule.GetNumAtoms() > MAX_ATOMS:
        raise ValueError(f"has {molecule.GetNumAtoms():,} atoms, and at most {MAX_ATOMS:,} can be put into order")
    molecule, order, marked = _canonical(molecule)
    if marked:
        _assign_labels(molecule)
    atoms = [_cip_atom(atom, marked) for atom in molecule.GetAtoms()]
    bonds = [_cip_bond(bond, marked) for bond in molecule.GetBonds()]
    return _arrays(molecule, atoms, bonds, order)


def _ogb_molecule(molecule: Any) -> SlowMolecule:
    """Atoms in the order of the SMILES."""
    atoms = [_ogb_atom(atom) for atom in molecule.GetAtoms()]
    bonds = [_ogb_bond(bond) for bond in molecule.GetBonds()]
    return _arrays(molecule, atoms, bonds, list(range(len(atoms))))


def _arrays(molecule: Any, atoms: list[list[int]], bonds: list[list[int]], order: list[int]) -> SlowMolecule:
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    return SlowMolecule(
        atoms=np.array(atoms, dtype=np.uint8).reshape(-1, 9),
        bonds=np.array(bonds, dtype=np.uint8).reshape(-1, 3),
        ends=np.array(ends, dtype=np.int32).reshape(-1, 2),
        order=np.array(order, dtype=np.int32),
    )


def _canonical(molecule: Any) -> tuple[Any, list[int], bool]:
    """Return the molecule of the canonical SMILES, the old number of each atom, and whether stereo is marked.

    The SMILES is read again: equal SMILES give equal graphs, whatever rdkit computes from the order of atoms.
    """
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
    """Return the position of a number in `first..last`; one more for any other number."""
    return value - first if first <= value <= last else last - first + 1
