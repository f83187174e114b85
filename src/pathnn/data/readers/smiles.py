"""Read SMILES as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import torch

from pathnn.data.errors import BadRow, BadRowsError, DataError
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.readers.atom_features import MoleculeFeatures, MoleculeGraph, cip_graph, ogb_graph
from pathnn.data.readers.clean import Clean, clean_smiles
from pathnn.data.readers.table import Table, row_targets, shorten
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
    molecules, values, bad = [], [], []
    for i, text in enumerate(texts):
        row = row_targets([(name, column[i]) for name, column in zip(targets, columns, strict=True)], classes)
        problem = table.problems.get(i) or next((value for value in row if isinstance(value, str)), None)
        molecule = problem or molecule_graph(clean_smiles(text, clean), features)
        if isinstance(molecule, str):
            bad.append(BadRow(i + 1, molecule, text or ""))
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
    """Raise `DataError` unless `features` names features of molecules."""
    if features not in get_args(MoleculeFeatures):
        raise DataError(f"features={features!r} are unknown: expected one of {', '.join(get_args(MoleculeFeatures))}.")


def molecule_graph(smiles: str | None, features: MoleculeFeatures = "cip") -> MoleculeGraph | str:
    """Return a molecule as arrays, or a text that says what is wrong with its SMILES.

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
            return f"{shorten(smiles)} is no molecule: {_problem(smiles)}"
        if molecule.GetNumAtoms() == 0:
            return f"{shorten(smiles)} has no atoms"
        return cip_graph(molecule) if features == "cip" else ogb_graph(molecule)
    except ValueError as error:
        return f"{shorten(smiles)} {error}"
    finally:
        del quiet


def _problem(smiles: str) -> str:
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    problems = [] if molecule is None else Chem.DetectChemistryProblems(molecule)
    return problems[0].Message() if problems else "it does not follow the SMILES grammar"


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
