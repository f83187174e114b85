"""Molecules with the features of the Open Graph Benchmark, which models trained on ogbg-molhiv and Peptides read.

Nine numbers an atom and three a bond, each the place of a value in a list of OGB's; what is in none of them counts as
the last. Atoms and bonds are in rdkit's order. The chirality of an atom is rdkit's tag, which depends on that order: a
prediction can depend on how a SMILES with @ is written. `cip_features` has features without that fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch

from pathnn.data.cip_features import CIP_ATOMS, CIP_BONDS, cip_graph
from pathnn.data.errors import BadRow, BadRowsError, DataError
from pathnn.data.molecules import MoleculeGraph, molecule_arrays, number_place, pack_molecules, place
from pathnn.data.packed import PackedGraphs
from pathnn.data.readers.table import CsvTable, _short, _targets
from pathnn.data.targets import class_key
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


MoleculeFeatures = Literal["cip", "ogb"]


FEATURES: dict[MoleculeFeatures, tuple[Categorical, Categorical]] = {
    "cip": (CIP_ATOMS, CIP_BONDS),
    "ogb": (OGB_ATOMS, OGB_BONDS),
}
"""The features of atoms and of bonds."""


def smiles_graphs(
    table: CsvTable,
    *,
    smiles: str | None = None,
    targets: Sequence[str] = (),
    labels: Sequence[str] = (),
    skip_invalid: bool = False,
    features: MoleculeFeatures = "cip",
) -> tuple[PackedGraphs, list[BadRow]]:
    """The molecules of a table as graphs, and the rows that were left out.

    `y` is `[G, targets]`, float64; with `labels` cells are class names, and `y` their positions. A row with
    a SMILES that rdkit refuses, or with a target that is missing or no finite number, is bad: refused by
    default, left out with `skip_invalid`. Of several targets some may be missing, and are NaN, but not all.
    """
    texts = table.column(smiles or table.smiles_column())
    cells = [table.column(target) for target in targets]
    classes = {class_key(label): i for i, label in enumerate(labels)}
    molecules, values, bad = [], [], []
    for i, text in enumerate(texts):
        row = _targets([(name, column[i]) for name, column in zip(targets, cells, strict=True)], classes)
        fault = next((entry for entry in row if isinstance(entry, str)), None)
        molecule = fault or molecule_graph(text, features)
        if isinstance(molecule, str):
            bad.append(BadRow(i + 1, molecule))
        else:
            molecules.append((text, molecule))
            values.append(row)
    if bad and not skip_invalid:
        raise BadRowsError(table.source, bad, len(texts))
    if not molecules:
        raise BadRowsError(table.source, bad, len(texts), "name the column that holds SMILES (--smiles COLUMN)")
    graphs = pack_molecules([graph for _, graph in molecules])
    y = torch.tensor(values, dtype=torch.float64).view(len(molecules), len(targets)) if targets else None
    return replace(graphs, y=y, names=tuple(text or "" for text, _ in molecules)), bad


def check_features(features: str) -> None:
    """Raise unless there are such features of molecules."""
    if features not in get_args(MoleculeFeatures):
        raise DataError(f"features={features!r} are unknown: expected one of {', '.join(get_args(MoleculeFeatures))}.")


def molecule_graph(smiles: str | None, features: MoleculeFeatures = "cip") -> MoleculeGraph | str:
    """A molecule as arrays, or what is wrong with its SMILES.

    ```python
    graph = molecule_graph("OCC")
    graph.order.tolist()  # [2, 1, 0]: with "cip", atoms are in the order of the canonical SMILES, CCO
    ```
    """
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise DataError("SMILES need rdkit, which is not installed: pip install 'pathnn[mol]'.") from error
    if smiles is None or not smiles.strip():
        return "the SMILES is empty"
    quiet = rdBase.BlockLogs()
    try:
        molecule: Any = Chem.MolFromSmiles(smiles)
        if molecule is None:
            return f"{_short(smiles)} is no molecule: {_problem(smiles)}"
        if molecule.GetNumAtoms() == 0:
            return f"{_short(smiles)} has no atoms"
        return cip_graph(molecule) if features == "cip" else ogb_graph(molecule)
    except ValueError as error:
        return f"{_short(smiles)} {error}"
    finally:
        del quiet


def _problem(smiles: str) -> str:
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    problems = [] if molecule is None else Chem.DetectChemistryProblems(molecule)
    return problems[0].Message() if problems else "it does not follow the SMILES grammar"
