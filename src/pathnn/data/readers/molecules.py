"""Read SMILES into flat arrays of codes, many molecules at once.

There are nine codes per atom and three per bond. "cip" features are those of PyG (`torch_geometric.utils.from_smiles`)
with CIP labels for stereochemistry, "ogb" those of the Open Graph Benchmark (docs/data.md).

This module imports no torch, so that processes that only read molecules (`readers.pool`) start fast.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from pathnn.data.errors import DataError, shorten

Clean = Literal["salts", "tautomers"]

MoleculeFeatures = Literal["cip", "ogb"]

MAX_ATOMS = 5_000
"""The largest molecule with "cip": rdkit writes SMILES by recursion, and larger molecules can overflow the stack."""

MAX_COMPARISONS = 1_000_000
"""How many comparisons of branches may be used to find CIP labels: less than a second. Drugs need far fewer."""

_CIP_ATOM_LABELS = {"R": 1, "S": 2, "r": 3, "s": 4}
_CIP_BOND_LABELS = {"E": 1, "Z": 2, "e": 3, "z": 4}
_CIP_HYBRIDS = ("UNSPECIFIED", "S", "SP", "SP2", "SP3", "SP3D", "SP3D2")
_CIP_BONDS = (
    "UNSPECIFIED", "SINGLE", "DOUBLE", "TRIPLE", "QUADRUPLE", "QUINTUPLE", "HEXTUPLE", "ONEANDAHALF", "TWOANDAHALF",
    "THREEANDAHALF", "FOURANDAHALF", "FIVEANDAHALF", "AROMATIC", "IONIC", "HYDROGEN", "THREECENTER", "DATIVEONE",
    "DATIVE", "DATIVEL", "DATIVER", "OTHER",
)  # fmt: skip

_OGB_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
_OGB_HYBRIDS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_OGB_BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_OGB_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS")  # and the last code: STEREOANY, others

Array = np.ndarray[Any, np.dtype[Any]]


class Molecules(NamedTuple):
    """Molecules as flat arrays of codes; `order` has the number of each atom in the user's SMILES."""

    atoms: Array  # [atoms, 9], uint8
    bonds: Array  # [bonds, 3], uint8
    ends: Array  # [bonds, 2], int32, counted within each molecule
    order: Array  # [atoms], int32
    num_atoms: Array
    num_bonds: Array


Problems = dict[int, str]  # the reasons why SMILES cannot be read, by their position


def quiet_rdkit() -> AbstractContextManager[Any]:
    """Return a context without messages of rdkit; raise `DataError` if it is not installed."""
    try:
        from rdkit import rdBase
    except ImportError as error:
        raise DataError("molecules need rdkit, which is not installed: pip install 'pathnn[mol]'.") from error
    return cast(AbstractContextManager[Any], rdBase.BlockLogs())


@cache
def _cleaning_steps(clean: Clean) -> tuple[Any, ...]:
    """Return the functions that clean a molecule, in order."""
    from rdkit.Chem.MolStandardize import rdMolStandardize

    salts = (rdMolStandardize.LargestFragmentChooser(preferOrganic=True).choose, rdMolStandardize.Uncharger().uncharge)
    return salts if clean == "salts" else (*salts, rdMolStandardize.TautomerEnumerator().Canonicalize)


@lru_cache(2**16)
def clean_smiles(text: str | None, clean: Clean | None) -> str | None:
    """Return the SMILES of a cleaned molecule; other texts as they are, and "" if none of several fragments is organic.

    "salts" keeps the largest organic fragment and neutralises it; "tautomers" also chooses rdkit's canonical tautomer.
    """
    if clean is None or text is None:
        return text
    from rdkit import Chem

    with quiet_rdkit(), suppress(RuntimeError, ValueError):  # rdkit gives up on a few molecules
        molecule: Any = Chem.MolFromSmiles(text)
        if molecule is not None and molecule.GetNumAtoms():
            if len(Chem.GetMolFrags(molecule)) > 1 and all(atom.GetAtomicNum() != 6 for atom in molecule.GetAtoms()):
                return ""
            for step in _cleaning_steps(clean):
                molecule = step(molecule)
            return str(Chem.MolToSmiles(molecule))
    return text


def is_changed(text: str, clean: Clean) -> bool:
    """Return whether cleaning a molecule gives another one."""
    from rdkit import Chem

    with quiet_rdkit():
        return clean_smiles(text, clean) not in (text, Chem.MolToSmiles(Chem.MolFromSmiles(text)))


def read_molecules(
    texts: Iterable[str | None], features: MoleculeFeatures = "cip", clean: Clean | None = None
) -> tuple[Molecules, Problems]:
    """Return the molecules of SMILES, and why others cannot be read; the atoms of "cip" have the canonical order."""
    with quiet_rdkit():
        values, problems = _Values(features), {}
        for i, text in enumerate(texts):
            try:
                if (cleaned := clean_smiles(text, clean)) == "" and text:
                    raise ValueError(f"{shorten(text)} has no organic fragment, which cleaning would keep")
                values.add(*_molecule(cleaned, features))
            except ValueError as error:
                problems[i] = str(error)
    return values.molecules(), problems


def _molecule(text: str | None, features: MoleculeFeatures) -> tuple[Any, Sequence[int], bool]:
    """Return what `_Values.add` takes; raise `ValueError` for a text that is no molecule."""
    from rdkit import Chem

    if text is None or not text.strip():
        raise ValueError("the SMILES is empty")
    molecule: Any = Chem.MolFromSmiles(text)
    if molecule is None:
        raise ValueError(f"{shorten(text)} is no molecule: {_problem(text)}")
    if molecule.GetNumAtoms() == 0:
        raise ValueError(f"{shorten(text)} has no atoms")
    return canonical(molecule, text) if features == "cip" else (molecule, range(molecule.GetNumAtoms()), False)


def _problem(smiles: str) -> str:
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    problems = [] if molecule is None else Chem.DetectChemistryProblems(molecule)
    return problems[0].Message() if problems else "it does not follow the SMILES grammar"


def canonical(molecule: Any, smiles: str) -> tuple[Any, Sequence[int], bool]:
    """Return the molecule of the canonical SMILES, the old number of each atom, and whether it has CIP labels.

    It is read again from this SMILES: equal SMILES give equal graphs, whatever rdkit computes from the order of atoms.
    """
    from rdkit import Chem

    size = molecule.GetNumAtoms()
    if size > MAX_ATOMS:
        raise ValueError(f"{shorten(smiles)} has {size:,} atoms, and at most {MAX_ATOMS:,} can be put into order")
    if ":" in smiles:
        for atom in molecule.GetAtoms():
            atom.SetAtomMapNum(0)  # else part of the SMILES
    text = Chem.MolToSmiles(molecule)
    marked = "@" in text or "/" in text or "\\" in text
    order = [int(number) for number in molecule.GetProp("_smilesAtomOutputOrder")[1:-1].split(",") if number]
    if text == smiles and not marked:
        return molecule, order, False
    again = Chem.MolFromSmiles(text)
    if again is None or again.GetNumAtoms() != size:  # it had hydrogens that are not read
        again = Chem.RenumberAtoms(molecule, order)
    if marked:
        _assign_labels(again)
    return again, order, marked


def _assign_labels(molecule: Any) -> None:
    """Set the CIP labels; for a molecule that is too symmetric, rdkit's older and less exact ones."""
    from rdkit import Chem
    from rdkit.Chem import rdCIPLabeler

    try:
        rdCIPLabeler.AssignCIPLabels(molecule, maxRecursiveIterations=MAX_COMPARISONS)
    except RuntimeError:
        Chem.AssignStereochemistry(molecule, cleanIt=True, force=True)


class _Values:
    """The values of the atoms and bonds of molecules, in one array for each property: one call of rdkit for each."""

    def __init__(self, features: MoleculeFeatures) -> None:
        self.properties = _properties(features)
        self.atoms, self.bonds = ([array("i") for _ in some] for some in self.properties)
        self.begin, self.end, self.order, self.num_atoms, self.num_bonds = (array("i") for _ in range(5))

    def add(self, molecule: Any, order: Sequence[int], marked: bool) -> None:
        """Add an rdkit molecule; `marked`: it has CIP labels."""
        atoms = list(map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms())))
        bonds = list(map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())))
        for parts, columns, properties in zip((atoms, bonds), (self.atoms, self.bonds), self.properties, strict=True):
            for column, of in zip(columns, properties, strict=True):
                column.extend(bytes(len(parts)) if of.is_label and not marked else map(of.get, parts))
        self.begin.extend([bond.GetBeginAtomIdx() for bond in bonds])
        self.end.extend([bond.GetEndAtomIdx() for bond in bonds])
        self.order.extend(order)
        self.num_atoms.append(len(atoms))
        self.num_bonds.append(len(bonds))

    def molecules(self) -> Molecules:
        """Return the codes of all molecules."""
        atoms, bonds = (
            np.stack([of.code(np.array(column)) for column, of in zip(columns, properties, strict=True)], axis=1)
            for columns, properties in zip((self.atoms, self.bonds), self.properties, strict=True)
        )
        ends = np.stack([self.begin, self.end], axis=1)
        rest = (np.array(values) for values in (self.order, self.num_atoms, self.num_bonds))
        return Molecules(atoms.astype(np.uint8), bonds.astype(np.uint8), ends, *rest)


class _Property(NamedTuple):
    """How to read a property of an atom or a bond, and its codes; `is_label`: 0 in molecules without CIP labels."""

    get: Callable[[Any], int]
    code: Callable[[Array], Array] = np.asarray
    is_label: bool = False


@cache
def _properties(features: MoleculeFeatures) -> tuple[tuple[_Property, ...], tuple[_Property, ...]]:
    """Return the properties of atoms and of bonds that are features."""
    from rdkit.Chem import Atom, Bond, BondStereo, BondType, ChiralType, HybridizationType

    cip = features == "cip"
    atoms = (
        _Property(Atom.GetAtomicNum, np.asarray if cip else _number_code(1, 118)),
        _label(_CIP_ATOM_LABELS) if cip else _Property(Atom.GetChiralTag, _name_code(ChiralType, _OGB_CHIRALITY)),
        _Property(Atom.GetTotalDegree, _number_code(0, 10)),
        _Property(Atom.GetFormalCharge, _number_code(-5, 6 if cip else 5)),
        _Property(Atom.GetTotalNumHs, _number_code(0, 8)),
        _Property(Atom.GetNumRadicalElectrons, _number_code(0, 4)),
        _Property(Atom.GetHybridization, _name_code(HybridizationType, _CIP_HYBRIDS if cip else _OGB_HYBRIDS)),
        _Property(Atom.GetIsAromatic),
        _Property(Atom.IsInRing),
    )
    bonds = (
        _Property(Bond.GetBondType, _name_code(BondType, _CIP_BONDS if cip else _OGB_BONDS)),
        _label(_CIP_BOND_LABELS) if cip else _Property(Bond.GetStereo, _name_code(BondStereo, _OGB_STEREO)),
        _Property(Bond.GetIsConjugated),
    )
    return atoms, bonds


def _label(codes: dict[str, int]) -> _Property:
    """Return the property of the CIP label of an atom or a bond; 0 for none."""
    name = "_CIPCode"
    return _Property(lambda part: codes.get(part.GetProp(name), 0) if part.HasProp(name) else 0, is_label=True)


def _number_code(first: int, last: int) -> Callable[[Array], Array]:
    """Return a function that counts numbers from `first`; those outside `first..last` have one more than `last`."""
    return lambda values: np.where((values >= first) & (values <= last), values - first, last - first + 1)


def _name_code(kind: Any, names: tuple[str, ...]) -> Callable[[Array], Array]:
    """Return a function from values of an rdkit enum to their positions in `names`; one more for any other value."""
    codes = np.full(max(kind.values) + 2, len(names))
    for name, value in kind.names.items():
        if name in names:
            codes[int(value)] = names.index(name)
    return lambda values: codes.take(values, mode="clip")


RADIUS, BITS = 2, 2048  # of Morgan fingerprints


def morgan_generator() -> Any:
    """Return rdkit's generator of the Morgan fingerprints of this package."""
    from rdkit.Chem import rdFingerprintGenerator

    return rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)


def morgan(smiles: Sequence[str | None], *, skip_invalid: bool = False) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Count the substructures of molecules, `[molecules, BITS]`; with `skip_invalid`, other texts have none."""
    from rdkit import Chem

    generator = morgan_generator()
    rows = np.zeros((len(smiles), BITS), dtype=np.uint32)
    with quiet_rdkit():
        for row, text in zip(rows, smiles, strict=True):
            molecule: Any = Chem.MolFromSmiles(text or "")
            if molecule is not None:
                row[:] = generator.GetCountFingerprintAsNumPy(molecule)
            elif not skip_invalid:
                raise DataError(f"{text!r} is no molecule that rdkit can read.")
    return rows
