"""Find the training molecules that are most similar to new molecules."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pathnn.data.readers.molecules import BITS, Clean, clean_smiles, morgan
from pathnn.training.errors import CheckpointError
from pathnn.training.run_folder import write_file

FILE = "training_molecules.npz"


@dataclass(frozen=True, eq=False)
class TrainingMolecules:
    """Molecules as SMILES, and their fingerprints, eight bits per byte, `[molecules, BITS / 8]`."""

    smiles: tuple[str, ...]
    bits: np.ndarray[Any, np.dtype[np.uint8]]

    @staticmethod
    def of(smiles: Sequence[str], clean: Clean | None = None) -> TrainingMolecules:
        """Compute the fingerprints of molecules; `clean` is how the model cleans them."""
        cleaned = [clean_smiles(text, clean) for text in smiles]
        return TrainingMolecules(tuple(smiles), np.packbits(morgan(cleaned) > 0, axis=1))

    def save(self, folder: Path) -> None:
        """Write the molecules into a run folder."""
        text = np.frombuffer("\n".join(self.smiles).encode(), dtype=np.uint8)
        content = io.BytesIO()
        np.savez_compressed(content, smiles=text, bits=self.bits)
        write_file(folder / FILE, content.getvalue())


def load_training_molecules(folder: Path) -> TrainingMolecules:
    """Read the training molecules of a run folder that `pathnn train` wrote."""
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


def nearest(smiles: Sequence[str], stored: TrainingMolecules, clean: Clean | None = None) -> list[tuple[float, str]]:
    """Return for each molecule the most similar training molecule, with their Tanimoto similarity (0 to 1)."""
    asked = morgan([clean_smiles(text, clean) for text in smiles]) > 0
    return [(score, stored.smiles[place]) for score, place in _nearest(asked, stored)]


def _nearest(asked: np.ndarray[Any, np.dtype[np.bool_]], stored: TrainingMolecules) -> Iterator[tuple[float, int]]:
    """Yield the similarity and the number of the nearest training molecule of each fingerprint."""
    if not stored.smiles:
        raise ValueError("stored has no molecules: expected at least one.")
    known = stored.bits.view(np.uint64)  # 64 bits at once
    sizes = np.bitwise_count(known).sum(axis=1, dtype=np.int32)
    for bits in np.packbits(asked, axis=1).view(np.uint64):
        shared = np.bitwise_count(known & bits).sum(axis=1, dtype=np.int32)
        either = sizes + np.bitwise_count(bits).sum(dtype=np.int32) - shared
        similarity = shared / np.maximum(either, 1)
        place = int(similarity.argmax())
        yield float(similarity[place]), place


class SimilarityColumn:
    """Compute the similarity of SMILES to the nearest training molecule; None for no molecule. It can be pickled."""

    def __init__(self, stored: TrainingMolecules, clean: Clean | None = None) -> None:
        self.stored, self.clean = stored, clean

    @staticmethod
    def of_run(run: Path, clean: Clean | None = None) -> SimilarityColumn | None:
        """Return the column for the runs in a folder; None for a model file, or a run without stored molecules."""
        return SimilarityColumn(load_training_molecules(run), clean) if (run / FILE).exists() else None

    def __call__(self, smiles: Sequence[str | None]) -> dict[str, list[Any]]:
        """Return the column of some SMILES, rounded to four digits."""
        asked = morgan([clean_smiles(text, self.clean) for text in smiles], skip_invalid=True) > 0
        found = zip(asked, _nearest(asked, self.stored), strict=True)
        return {"similarity": [round(score, 4) if bits.any() else None for bits, (score, _) in found]}
