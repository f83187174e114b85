"""Find the training molecules that are most similar to new molecules."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pathnn.data.readers.descriptors import BITS, morgan
from pathnn.training.errors import CheckpointError
from pathnn.training.run_folder import write_file

FILE = "training_molecules.npz"

CHUNK = 4096
"""How many training molecules are compared at once."""


@dataclass(frozen=True, eq=False)
class TrainingMolecules:
    """Molecules as SMILES, and their fingerprints, eight bits per byte, `[molecules, BITS / 8]`."""

    smiles: tuple[str, ...]
    bits: np.ndarray[Any, np.dtype[np.uint8]]

    @staticmethod
    def of(smiles: Sequence[str]) -> TrainingMolecules:
        """Compute the fingerprints of molecules.

        >>> TrainingMolecules.of(["CCO", "CCN"]).bits.shape
        (2, 256)
        """
        return TrainingMolecules(tuple(smiles), np.packbits(morgan(smiles) > 0, axis=1))

    def save(self, folder: Path) -> None:
        """Write the molecules into a run folder."""
        text = np.frombuffer("\n".join(self.smiles).encode(), dtype=np.uint8)
        content = io.BytesIO()
        np.savez_compressed(content, smiles=text, bits=self.bits)
        write_file(folder / FILE, content.getvalue())


def load_training_molecules(folder: Path) -> TrainingMolecules:
    """Read the training molecules of a run folder that `pathnn train` wrote.

    ```python
    stored = load_training_molecules(Path("run"))
    print(nearest(["CCO"], stored))
    ```
    """
    try:
        with np.load(folder / FILE, allow_pickle=False) as arrays:
            text, bits = arrays["smiles"].tobytes().decode(), arrays["bits"]
    except FileNotFoundError:
        raise CheckpointError(
            f"{folder} has no {FILE}: expected a run on a table of molecules. Train again with this version of pathnn."
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder / FILE} cannot be read ({error}): train again, or restore the file.") from error
    smiles = tuple(text.split("\n"))
    if bits.dtype != np.uint8 or bits.shape != (len(smiles), BITS // 8):
        raise CheckpointError(f"{folder / FILE} is damaged: {len(smiles)} molecules, and fingerprints {bits.shape}.")
    return TrainingMolecules(smiles, bits)


def nearest(smiles: Sequence[str], stored: TrainingMolecules) -> list[tuple[float, str]]:
    """Return for each molecule the most similar training molecule, with the similarity: 0 to 1.

    It is the Tanimoto similarity of Morgan fingerprints (radius 2, 2048 bits).

    >>> nearest(["OCC", "CCCC"], TrainingMolecules.of(["CCO", "CCN"]))[0]
    (1.0, 'CCO')
    """
    if not stored.smiles:
        raise ValueError("stored has no molecules: expected at least one.")
    asked = (morgan(smiles) > 0).astype(np.float32)
    size, best, place = asked.sum(axis=1), np.full(len(smiles), -1.0), np.zeros(len(smiles), dtype=np.int64)
    for start in range(0, len(stored.smiles), CHUNK):
        known = np.unpackbits(stored.bits[start : start + CHUNK], axis=1).astype(np.float32)
        shared = asked @ known.T
        either = size[:, None] + known.sum(axis=1) - shared
        similarity = np.divide(shared, either, out=np.ones_like(shared), where=either > 0)
        found = similarity.argmax(axis=1)
        here = similarity[np.arange(len(smiles)), found]
        place = np.where(here > best, found + start, place)
        best = np.maximum(best, here)
    return [(float(score), stored.smiles[i]) for score, i in zip(best, place, strict=True)]
