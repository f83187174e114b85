"""Cleaned molecules are one fragment without charges, and names stay those of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathnn.data import DataError, load_data
from pathnn.data.readers.molecules import Clean, clean_smiles, is_changed

Chem = pytest.importorskip("rdkit.Chem", reason="molecules need rdkit (extra mol)")

SALTS = {
    "CC(=O)[O-].[Na+]": "CC(=O)O",
    "C[NH3+].[Cl-]": "CN",
    "CN(C)C.F[P-](F)(F)(F)(F)F": "CN(C)C",
    "c1ccccc1.CCO": "c1ccccc1",
    "C[N+](C)(C)C.[Br-]": "C[N+](C)(C)C",
    "[NH3+]CC(=O)[O-]": "NCC(=O)O",
}


@pytest.mark.parametrize("text", list(SALTS))
def test_salts_are_removed_and_charges_neutralised(text: str) -> None:
    cleaned = clean_smiles(text, "salts")
    assert cleaned is not None
    assert "." not in cleaned
    assert cleaned == Chem.CanonSmiles(SALTS[text])
    assert is_changed(text, "salts")
    assert not is_changed(SALTS[text], "salts")
    assert clean_smiles(cleaned, "salts") == cleaned


@pytest.mark.parametrize(("one", "other"), [("OC1=CC=CC=N1", "O=C1C=CC=CN1"), ("CC(=O)CC(C)=O", "CC(O)=CC(C)=O")])
def test_tautomers_become_one_molecule(one: str, other: str) -> None:
    assert clean_smiles(one, "salts") != clean_smiles(other, "salts")
    assert clean_smiles(one, "tautomers") == clean_smiles(other, "tautomers")


@pytest.mark.parametrize("text", ["", "C(", "nonsense", None])
def test_what_is_no_molecule_is_left_for_the_reader_to_refuse(text: str | None) -> None:
    assert clean_smiles(text, "salts") == text


@pytest.mark.parametrize("text", ["[Na+].[Cl-]", "[NH4+].[Cl-]", "O.O"])
@pytest.mark.parametrize("clean", ["salts", "tautomers"])
def test_a_salt_without_an_organic_fragment_is_a_bad_row(tmp_path: Path, text: str, clean: Clean) -> None:
    path = tmp_path / "my.csv"
    path.write_text(f"smiles,y\nCCO,1\n{text},2\nO,3\n")
    task = load_data(path, clean=clean, skip_invalid=True)
    assert [str(bad) for bad in task.skipped] == [f"row 2: {text!r} has no organic fragment, which cleaning would keep"]
    assert task.graphs.names == ("CCO", "O"), "a molecule without salt stays, organic or not"
    assert len(load_data(path).graphs) == 3


def test_nothing_is_cleaned_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    path.write_text("smiles,y\nCC(=O)[O-].[Na+],1.5\nCC(=O)O,2.5\n")
    plain, cleaned = load_data(path), load_data(path, clean="salts")
    assert plain.graphs.names == cleaned.graphs.names == ("CC(=O)[O-].[Na+]", "CC(=O)O")
    assert plain.graphs.node_ptr.diff().tolist() == [5, 4]
    assert cleaned.graphs.node_ptr.diff().tolist() == [4, 4]
    assert cleaned.groups.tolist() == [0, 0]
    with pytest.raises(DataError, match="clean='all' is unknown: expected one of salts, tautomers"):
        load_data(path, clean="all")
