"""OGB's features from SMILES are those of OGB's own graphs, number by number."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

from pathnn.data import DataError, PackedGraphs, load_data, load_dataset
from pathnn.data.readers.smiles import FEATURES, pack_molecules, read_molecule
from pathnn.data.readers.table import read_table


def features(smiles: str) -> tuple[list[list[int]], list[list[int]]]:
    graph = read_molecule(smiles, "ogb")
    assert not isinstance(graph, str), graph
    data = pack_molecules([graph])[0]
    return data.x.tolist(), data.edge_attr.tolist()


def test_atoms_and_bonds_by_hand() -> None:
    atoms, bonds = features("C/C=C/[NH3+]")
    assert atoms[0] == [5, 0, 4, 5, 3, 0, 2, 0, 0]  # C, 4 neighbours, charge 0, 3 hydrogens, sp3
    assert atoms[1] == [5, 0, 3, 5, 1, 0, 1, 0, 0]  # sp2
    assert atoms[3] == [6, 0, 4, 6, 3, 0, 2, 0, 0]  # N, charge +1
    assert bonds[2] == bonds[3] == [1, 2, 0]  # double, E
    ring, around = features("c1ccccc1")
    assert ring == [[5, 0, 3, 5, 1, 0, 1, 1, 1]] * 6
    assert around == [[3, 0, 1]] * 12


def test_what_is_in_no_list_is_the_last_of_it() -> None:
    (anything, _), ((bond, *_), *_) = features("*~C")
    assert (anything[0], bond) == (118, 4)
    ((ion, *_), _) = features("[U+6]")
    assert ion[3] == 11
    assert features("[Na]")[1] == []
    sizes = [entry.sizes for entry in FEATURES["ogb"]]
    for text in ("*~C", "[U+6]", "F[S](F)(F)(F)(F)F", "N->[Pt]", "[H][H]", "C[C@H](N)O", "[O][O]"):
        for rows, most in zip(features(text), sizes, strict=True):
            assert all(value < size for row in rows for value, size in zip(row, most, strict=True))


def test_features_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("smiles\nCO\n")
    task = load_data(tmp_path / "a.csv", features="ogb")
    assert (task.node_features, task.edge_features) == FEATURES["ogb"]
    with pytest.raises(DataError, match="features='mol' is unknown: expected one of cip, ogb"):
        load_data(tmp_path / "a.csv", features="mol")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "file", "step"),
    [("molhiv", "ogbg_molhiv_mol.csv.gz", 97), ("peptides-func", "peptide_multi_class_dataset.csv.gz", 401)],
)
def test_the_graphs_are_ogb_s(name: str, file: str, step: int, mirror: Path) -> None:
    theirs, texts = load_dataset(name).graphs, read_table(mirror / "molecules" / file).column("smiles")
    assert len(texts) == len(theirs)
    for i in range(0, len(texts), step):
        graph = read_molecule(texts[i], "ogb")
        assert not isinstance(graph, str), graph
        ours = pack_molecules([graph])[0]
        x, bonds = _rows(theirs, i)
        assert ours.x.tolist() == x.tolist(), texts[i]
        assert sorted(torch.cat([ours.edge_index.t(), ours.edge_attr], dim=1).tolist()) == sorted(bonds.tolist())


def _rows(graphs: PackedGraphs, i: int) -> tuple[Tensor, Tensor]:
    graph = graphs[i]
    return graph.x.long(), torch.cat([graph.edge_index.t().long(), graph.edge_attr.long()], dim=1)
