"""Descriptors: rdkit's numbers by name, Morgan counts, and columns of a table."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from molecule_runs import MOLECULES, write_molecules
from pathnn.data import BadRowsError, DataError, load_data
from pathnn.data.fingerprints import DataFingerprint
from pathnn.data.readers.descriptors import Descriptors, rdkit_descriptors
from pathnn.data.readers.molecules import BITS, morgan
from pathnn.training import RunConfig

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")


@pytest.fixture
def table(tmp_path):
    return write_molecules(tmp_path / "molecules.csv")


def test_rdkit_descriptors_are_those_of_their_functions():
    from rdkit import Chem
    from rdkit.Chem import Crippen, rdMolDescriptors

    names = ["TPSA", "MolLogP"]
    for row, smiles in zip(rdkit_descriptors(MOLECULES, names).tolist(), MOLECULES, strict=True):
        molecule = Chem.MolFromSmiles(smiles)
        assert row == pytest.approx([rdMolDescriptors.CalcTPSA(molecule), Crippen.MolLogP(molecule)], abs=1e-5)
    every = Descriptors.of("rdkit")
    assert np.array_equal(every.of_molecules(["CCO"]), rdkit_descriptors(["CCO"]), equal_nan=True)
    assert rdkit_descriptors([], names).shape == (0, 2)
    with pytest.raises(DataError, match=r"no descriptor 'Fancy'.*install the version"):
        rdkit_descriptors(["CCO"], ["Fancy"])


def test_morgan_counts_are_those_of_rdkit():
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=BITS)
    found = Descriptors.of("morgan").of_molecules(MOLECULES[:9])
    assert found.dtype == np.float32
    for row, smiles in zip(found, MOLECULES, strict=False):
        counts = generator.GetCountFingerprint(Chem.MolFromSmiles(smiles)).GetNonzeroElements()
        assert {i: round(math.expm1(row[i])) for i in np.flatnonzero(row)} == counts
    with pytest.raises(DataError, match="no molecule"):
        morgan(["C", "C("])


def test_load_data_adds_them_to_the_graphs(table):
    plain = load_data(table, targets="size")
    assert plain.graphs.graph_attr is None
    task = load_data(table, targets="size", descriptors="rdkit")
    assert torch.equal(task.graphs.graph_attr, torch.from_numpy(rdkit_descriptors(MOLECULES)))
    assert task.descriptors == Descriptors.of("rdkit")
    assert DataFingerprint.of(task, None) == DataFingerprint.of(plain, None)  # the same data
    columns = load_data(table, targets="size", descriptors=["twice", "active"])
    expected = [[math.nan if i % 3 == 0 else 2 * (len(s) + 0.01 * i), i % 2] for i, s in enumerate(MOLECULES)]
    assert torch.allclose(columns.graphs.graph_attr, torch.tensor(expected), equal_nan=True)
    assert DataFingerprint.of(columns, None) != DataFingerprint.of(plain, None)
    assert load_data(table, descriptors=["twice", "active"]).classes == ("size",)  # the only number that is left


def test_rows_that_are_skipped_and_cleaning(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,y,pH\nCC,1,7\nC(,2,5\nCCN.Cl,3,\n")
    task = load_data(tmp_path / "a.csv", targets="y", skip_invalid=True, descriptors="pH")
    assert torch.equal(task.graphs.graph_attr.nan_to_num(-1), torch.tensor([[7.0], [-1.0]]))
    salts = load_data(tmp_path / "a.csv", targets="y", skip_invalid=True, descriptors="morgan", clean="salts")
    assert np.array_equal(salts.graphs.graph_attr[1].expm1().round().numpy(), morgan(["CCN"])[0])


def test_rows_with_a_descriptor_that_is_no_number_are_bad_rows(tmp_path):
    (tmp_path / "a.csv").write_text(
        "smiles,y,pH\nCC,1,7\nCO,2,high\nCN,3,inf\nCF,4,1e39\nCS,5,nan\nCCC,6\n" + 3 * "CCO,7,8\n"
    )
    with pytest.raises(BadRowsError, match=r"3 of 9 rows cannot be read \(row 2: the descriptor 'pH' is 'high'"):
        load_data(tmp_path / "a.csv", targets="y", descriptors="pH")
    task = load_data(tmp_path / "a.csv", targets="y", descriptors="pH", skip_invalid=True)
    assert [bad.row for bad in task.skipped] == [2, 3, 4]
    assert torch.equal(task.graphs.graph_attr[:3].nan_to_num(-1), torch.tensor([[7.0], [-1.0], [-1.0]]))


@pytest.mark.parametrize(
    ("descriptors", "message"),
    [
        (["height"], r"no column 'height' for descriptors: expected standard, rdkit, morgan, none, or .*\['smiles'"),
        (["letter"], "the descriptor column 'letter' is not numeric: it has 0 numbers, and 60 other values"),
        (["size"], "both a target and a descriptor"),
        (["twice", "twice"], "each of them once"),
    ],
)
def test_wrong_columns_are_refused(table, descriptors, message):
    with pytest.raises(DataError, match=message):
        load_data(table, targets="size", descriptors=descriptors)


def test_a_text_column_is_refused_before_its_rows_are_skipped(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,y,note,empty\nC,1,ok,\nCC,2,cloudy,\nCCC,3,3,\nCCCC,4,,\n")
    for column, numbers, others in (("note", 1, 2), ("empty", 0, 0)):
        with pytest.raises(DataError, match=f"'{column}' is not numeric: it has {numbers} numbers, and {others} other"):
            load_data(tmp_path / "a.csv", targets="y", descriptors=column, skip_invalid=True)
    assert len(load_data(tmp_path / "a.csv", targets="y", descriptors=Descriptors.of("empty")).graphs) == 4


def test_a_column_may_have_commas_in_its_name(tmp_path):
    (tmp_path / "a.csv").write_text('smiles;y;"pH, at 25 C"\nC;1;7\nCC;2;8\n')
    for named in ("pH, at 25 C", RunConfig(data="a.csv", descriptors="pH, at 25 C").descriptors):
        task = load_data(tmp_path / "a.csv", targets="y", descriptors=named)
        assert task.descriptors == Descriptors("columns", ("pH, at 25 C",))
        assert task.graphs.graph_attr.flatten().tolist() == [7, 8]
    (tmp_path / "b.csv").write_text('smiles;y;a;b;"a,b"\nC;1;7;1;0\nCC;2;8;2;0\n')
    task = load_data(tmp_path / "b.csv", targets="y", descriptors=["a", "b"])
    assert task.descriptors == Descriptors("columns", ("a", "b"))


def test_other_data_has_no_descriptors():
    with pytest.raises(DataError, match="expected a table of molecules"):
        load_data("csl", descriptors="rdkit")
    with pytest.raises(DataError, match="the columns 'pH' as descriptors: give a table"):
        Descriptors.of("pH").of_molecules(["C"])
