"""ESOL: 1128 small molecules with their measured solubility, read as a CSV of SMILES."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pathnn.data.datasets.base import Built, DatasetSpec
from pathnn.data.readers.smiles import FEATURES, smiles_graphs
from pathnn.data.readers.table import read_table
from pathnn.data.sources import DataFile
from pathnn.data.targets import regression
from pathnn.data.task import random_split

FILES = (
    DataFile("esol.csv.gz", "61688a42b6767692e69cca04b838fe1eef93043ae6093148d65fdccf1d5be310"),
    DataFile(
        "delaney-processed.csv",
        url="https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/delaney-processed.csv",
    ),
)
COLUMNS = ("logSolubility", "measured log solubility in mols per litre")


def _build(path: Path) -> Built:
    table = read_table(path)
    target = next((column for column in COLUMNS if column in table.columns), COLUMNS[0])
    graphs, _ = smiles_graphs(table, smiles="smiles", targets=[target])
    return Built(graphs, (random_split(len(graphs)),), published=False)


def _facts(built: Built) -> dict[str, Any]:
    atoms, bonds = FEATURES["cip"]
    return {
        "node_features": atoms,
        "edge_features": bonds,
        "licence": "MIT (KANO)",
        "citation": "Delaney, ESOL, 2004; Wu et al., MoleculeNet, 2018",
        "notes": "the features of a user's own molecules; a random split of 80 / 10 / 10 from seed 0; not in the paper",
        **regression(),
    }


def specs() -> list[DatasetSpec]:
    """Return ESOL."""
    return [DatasetSpec("esol", "ESOL", 1128, (FILES,), _build, _facts, version=3)]
