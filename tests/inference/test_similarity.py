"""Nearest training molecules: as rdkit computes them, and in a file that executes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from molecule_runs import MOLECULES
from pathnn.data import DataError
from pathnn.inference import similarity
from pathnn.inference.similarity import FILE, TrainingMolecules, load_training_molecules, nearest
from pathnn.training import CheckpointError

pytest.importorskip("rdkit", reason="molecules need rdkit (extra mol)")


def test_the_nearest_is_that_of_rdkit(monkeypatch):
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    bits = [generator.GetFingerprint(Chem.MolFromSmiles(text)) for text in MOLECULES]
    known, asked = MOLECULES[:40], MOLECULES[40:]
    monkeypatch.setattr(similarity, "CHUNK", 7)
    for i, (score, smiles) in enumerate(nearest(asked, TrainingMolecules.of(known))):
        all_scores = DataStructs.BulkTanimotoSimilarity(bits[40 + i], bits[:40])
        assert score == pytest.approx(max(all_scores))
        assert all_scores[known.index(smiles)] == pytest.approx(max(all_scores))


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
