"""Nearest training molecules: as rdkit computes them, and in a file that executes nothing."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from molecule_runs import MOLECULES
from pathnn.data import DataError
from pathnn.inference.similarity import FILE, SimilarityColumn, TrainingMolecules, load_training_molecules, nearest
from pathnn.training import CheckpointError

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")


def substructures(smiles: str) -> set[int]:
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    return set(generator.GetFingerprint(Chem.MolFromSmiles(smiles)).GetOnBits())


def test_the_nearest_is_that_of_sets_of_substructures():
    known, asked = MOLECULES[:40], MOLECULES[40:]
    bits = [substructures(smiles) for smiles in known]
    for one, (score, smiles) in zip(asked, nearest(asked, TrainingMolecules.of(known)), strict=True):
        mine = substructures(one)
        every = [len(mine & other) / len(mine | other) for other in bits]
        assert score == pytest.approx(max(every))
        assert every[known.index(smiles)] == pytest.approx(max(every))


def test_a_column_has_a_row_for_each_text_and_none_for_what_is_no_molecule(tmp_path, capfd):
    stored = TrainingMolecules.of(MOLECULES[:40])
    assert SimilarityColumn.of_run(tmp_path) is None
    stored.save(tmp_path)
    column = pickle.loads(pickle.dumps(SimilarityColumn.of_run(tmp_path)))
    asked = [MOLECULES[50], None, "C(", "", MOLECULES[3]]
    expected = round(nearest([MOLECULES[50]], stored)[0][0], 4)
    assert column(asked) == {"similarity": [expected, None, None, None, 1.0]}
    assert 0 < expected < 1
    assert column([]) == {"similarity": []}
    assert "".join(capfd.readouterr()) == ""  # rdkit prints nothing about bad SMILES
    assert SimilarityColumn.of_run(tmp_path / "model.safetensors") is None


def test_molecules_are_compared_as_the_model_reads_them(tmp_path):
    stored = TrainingMolecules.of(["CCN.Cl", "CCO"], "salts")
    stored.save(tmp_path)
    column = SimilarityColumn.of_run(tmp_path, "salts")
    assert column(["CCN", "CC[NH3+].[Br-]", "CCO.Cl", "C(", None]) == {"similarity": [1.0, 1.0, 1.0, None, None]}
    assert nearest(["CCN.Br"], stored, "salts") == [(1.0, "CCN.Cl")]
    assert SimilarityColumn(TrainingMolecules.of(["CCN.Cl"]))(["CCN"])["similarity"][0] < 1


def test_what_is_saved_is_loaded(tmp_path):
    stored = TrainingMolecules.of(MOLECULES)
    stored.save(tmp_path)
    found = load_training_molecules(tmp_path)
    assert found.smiles == tuple(MOLECULES)
    assert np.array_equal(found.bits, stored.bits)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=f"no {FILE}"):
        load_training_molecules(tmp_path)
    (tmp_path / FILE).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_training_molecules(tmp_path)
    np.savez(tmp_path / FILE, smiles=np.array([{"a": 1}], dtype=object), bits=np.zeros((1, 256), np.uint8))
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_training_molecules(tmp_path)
    np.savez(tmp_path / FILE, smiles=np.frombuffer(b"C\nCC", np.uint8), bits=np.zeros((1, 256), np.uint8))
    with pytest.raises(CheckpointError, match="damaged"):
        load_training_molecules(tmp_path)


def test_wrong_molecules_are_refused():
    with pytest.raises(DataError, match="no molecule"):
        nearest(["C("], TrainingMolecules.of(["C"]))
    with pytest.raises(ValueError, match="at least one"):
        nearest(["C"], TrainingMolecules.of([]))
