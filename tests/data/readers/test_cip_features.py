"""A molecule is the same however its SMILES is written; its mirror image is another."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")

from rdkit import Chem
from torch_geometric.utils import from_smiles

from pathnn.data import load_data
from pathnn.data.fingerprints import graph_fingerprints
from pathnn.data.readers import molecules as cip
from pathnn.data.readers.molecules import Molecules
from pathnn.data.readers.smiles import FEATURES, pack_molecules, read_molecule
from pathnn.data.readers.table import read_table
from pathnn.nn import PathNN
from pathnn.paths.options import Collection
from slow_molecules import ACHIRAL, CHIRAL

COLLECTIONS: tuple[Collection, ...] = ("sp", "sp+", "ap")


def read(smiles: str) -> Molecules:
    found = read_molecule(smiles)
    assert not isinstance(found, str), found
    return found


def rewritten(smiles: str, count: int) -> list[str]:
    """Other SMILES of the same molecule."""
    molecule = Chem.MolFromSmiles(smiles)
    return [Chem.MolToSmiles(molecule, doRandom=True) for _ in range(count)]


def mirrored(smiles: str) -> str:
    return smiles.replace("@@", "!").replace("@", "@@").replace("!", "@")


def same(one: str, other: str) -> bool:
    """Whether two molecules are one graph with one set of features, by a test that sees no order of atoms."""
    first, second = graph_fingerprints(pack_molecules([read(one), read(other)]))
    return bool(first == second)


def predictions(texts: list[str], collection: Collection) -> Tensor:
    """What an untrained network answers."""
    graphs = pack_molecules([read(text) for text in texts])
    atoms, bonds = FEATURES["cip"]
    torch.manual_seed(0)
    model = (
        PathNN(atoms.sizes, 16, 1, collection=collection, k=4, edge_channels=bonds.sizes, encoder="categorical")
        .double()
        .eval()
    )
    batch = graphs.select(range(len(graphs)))
    with torch.no_grad():
        return model(batch.x, batch.edge_index, batch=batch.batch, edge_attr=batch.edge_attr)[:, 0]


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_prediction_does_not_depend_on_how_a_molecule_is_written(collection: Collection) -> None:
    molecules = CHIRAL | ACHIRAL
    texts = [text for smiles in molecules.values() for text in [smiles, *rewritten(smiles, 6)]]
    for name, out in zip(molecules, predictions(texts, collection).view(-1, 7), strict=True):
        assert torch.allclose(out, out[:1], rtol=1e-9, atol=1e-12), name


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("folder", ["moleculeace", "adme"])
def test_predictions_of_real_molecules_do_not_depend_on_it_either(
    folder: str, collection: Collection, mirror: Path
) -> None:
    texts = [text for file in sorted((mirror / folder).glob("*.csv.gz")) for text in read_table(file).column("smiles")]
    if not texts:
        pytest.skip(f"no {folder} in PATHNN_MIRROR")
    marked = [text for text in texts if text and "@" in text]
    some = random.Random(0).sample(marked, 40) + random.Random(1).sample(texts, 40)
    out = predictions([text for smiles in some for text in [smiles, *rewritten(smiles, 2)]], collection).view(-1, 3)
    assert out[:, 0].unique().numel() > 70
    assert torch.allclose(out, out[:, :1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CHIRAL)
def test_mirror_images_have_different_features(name: str) -> None:
    smiles = CHIRAL[name]
    assert not same(smiles, mirrored(smiles))


@pytest.mark.parametrize("name", ACHIRAL)
def test_what_is_its_own_mirror_image_has_the_same_features(name: str) -> None:
    smiles = ACHIRAL[name]
    assert same(smiles, mirrored(smiles))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(E)-2-butene", "(Z)-2-butene"),
        ("cis-1,4-dimethylcyclohexane", "trans-1,4-dimethylcyclohexane"),
        ("cis-decalin", "trans-decalin"),
        ("tartaric acid", "meso-tartaric acid"),
    ],
)
def test_diastereomers_have_different_features(one: str, other: str) -> None:
    assert not same((CHIRAL | ACHIRAL)[one], ACHIRAL[other])


@pytest.mark.parametrize(
    ("smiles", "atoms", "bonds"),
    [
        ("C[C@H](N)C(=O)O", [2], []),
        ("N[C@@H](C)C(=O)O", [2], []),
        ("C[C@@H](N)C(=O)O", [1], []),
        ("C[C@H]1CC[C@@H](C)CC1", [4, 4], []),
        ("C[C@H]1CC[C@H](C)CC1", [3, 3], []),
        ("F/C=C/F", [], [1]),
        (r"F/C=C\F", [], [2]),
        (r"C[C@H](Cl)C([C@@H](C)Cl)=CC", [1, 2], []),
        (r"C[C@H](Cl)/C([C@@H](C)Cl)=C/C", [1, 2], [4]),
        (r"C[C@H](Cl)/C([C@@H](C)Cl)=C\C", [1, 2], [3]),
        ("CC(N)C(=O)O", [], []),
    ],
)
def test_labels_by_hand(smiles: str, atoms: list[int], bonds: list[int]) -> None:
    graph = read(smiles)
    assert sorted(code for code in graph.atoms[:, 1].tolist() if code) == atoms
    assert sorted(code for code in graph.bonds[:, 1].tolist() if code) == bonds


@pytest.mark.parametrize("smiles", (CHIRAL | ACHIRAL).values(), ids=(CHIRAL | ACHIRAL).keys())
def test_all_but_stereo_is_as_in_pyg(smiles: str) -> None:
    """Also: `order` has the atoms of the SMILES that came."""
    ours, theirs = read(smiles), from_smiles(smiles)
    data, order = pack_molecules([ours])[0], torch.from_numpy(ours.order).long()
    keep = [0, 2, 3, 4, 5, 6, 7, 8]
    assert sorted(order.tolist()) == list(range(len(order)))
    assert torch.equal(data.x[:, keep], theirs.x[order][:, keep])
    mine = torch.cat([order[data.edge_index], data.edge_attr[:, [0, 2]].t()]).t()
    expected = torch.cat([theirs.edge_index, theirs.edge_attr[:, [0, 2]].t()]).t()
    assert sorted(mine.tolist()) == sorted(expected.tolist())


def test_the_codes_fit_into_their_sizes() -> None:
    sizes = [entry.sizes for entry in FEATURES["cip"]]
    strange = ("*~C", "[U+7]", "[C-8]", "F[S](F)(F)(F)(F)F", "N->[Pt]", "[H][H]", "[O][O]", "C[Pt@SP1](F)(Cl)Br", "C$C")
    for text in (*CHIRAL.values(), *ACHIRAL.values(), *strange):
        graph = read(text)
        for rows, most in zip((graph.atoms, graph.bonds), sizes, strict=True):
            assert (rows < torch.tensor(most).numpy()).all(), text
    assert read("[U+7]").atoms[0, 3] == 12, "the last code is for all that is in no list"


def test_numbers_of_atoms_in_a_reaction_change_nothing() -> None:
    plain, mapped = read("C[C@H](N)C(=O)O"), read("[CH3:9][C@H:2]([NH2:1])[C:7](=[O:3])[OH:4]")
    assert (mapped.atoms == plain.atoms).all()
    assert (mapped.ends == plain.ends).all()


def test_a_molecule_that_is_read_back_as_another_keeps_its_atoms() -> None:
    """The SMILES of a molecule with hydrogens as atoms is read without them."""
    values = cip._Values("cip")
    values.add(*cip.canonical(Chem.AddHs(Chem.MolFromSmiles("OC")), "OC"))
    graph = values.molecules()
    assert (len(graph.atoms), len(graph.ends)) == (6, 5)
    assert [graph.atoms[i, 0] for i in graph.order.argsort()] == [8, 6, 1, 1, 1, 1]


def test_a_molecule_that_is_too_symmetric_has_the_older_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    smiles = "C[C@H]1CC[C@@H](C)CC1.C[C@H](N)C(=O)O"
    assert sorted(read(smiles).atoms[:, 1].tolist())[-3:] == [2, 4, 4]
    monkeypatch.setattr(cip, "MAX_COMPARISONS", 1)
    for text in rewritten(smiles, 5):
        assert sorted(read(text).atoms[:, 1].tolist())[-3:] == [0, 0, 2]


def test_many_atoms_have_larger_numbers() -> None:
    ends, sizes = np.array([[0, 40_000]]), (np.array([40_001]), np.array([1]))
    large = Molecules(np.zeros((40_001, 9), np.uint8), np.zeros((1, 3), np.uint8), ends, np.arange(40_001), *sizes)
    graphs = pack_molecules([read("CO"), large]).validate()
    assert graphs[1].edge_index.tolist() == [[0, 40_000], [40_000, 0]]
    assert pack_molecules([read("CO")]).edge_index.dtype == torch.int16


def test_a_molecule_that_rdkit_cannot_put_into_order_is_a_bad_row() -> None:
    assert read_molecule("C" * 40_000) == (
        f"{'C' * 37 + '...'!r} has 40,000 atoms, and at most 5,000 can be put into order"
    )
    assert len(read("C" * 5_000).atoms) == 5_000


def test_the_two_ways_to_write_alanine_are_one_row_twice(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("smiles\nC[C@H](N)C(=O)O\nN[C@@H](C)C(=O)O\nN[C@H](C)C(=O)O\n")
    graphs = load_data(tmp_path / "a.csv").graphs
    assert torch.equal(graphs[0].x, graphs[1].x)
    assert torch.equal(graphs[0].edge_index, graphs[1].edge_index)
    assert not torch.equal(graphs[0].x, graphs[2].x)
    assert graphs.names == ("C[C@H](N)C(=O)O", "N[C@@H](C)C(=O)O", "N[C@H](C)C(=O)O")
