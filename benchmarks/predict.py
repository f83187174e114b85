"""CPU time per molecule of the stages of a prediction: `python benchmarks/predict.py RUN molecules.csv [ROWS]`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

from pathnn.data.readers.molecules import read_molecules
from pathnn.data.readers.smiles import pack_molecules
from pathnn.data.readers.table import open_table
from pathnn.inference import Predictor


def main(run: str, data: str, rows: int) -> None:
    """Print microseconds of CPU time per molecule, the best of three rounds."""
    from rdkit import Chem

    predictor = Predictor(run)
    features = predictor.trained.signature.molecule_features
    with open_table(data) as reader:
        table = next(islice(reader.chunks(rows), 1))
    texts = [text for text in table.column(table.smiles_column()) if text]
    parsed = [Chem.MolFromSmiles(text) for text in texts]
    read = predictor.reader.read(texts)
    stages: dict[str, Callable[[], Any]] = {
        "rdkit: parse": lambda: [Chem.MolFromSmiles(text) for text in texts],
        "rdkit: write canonical SMILES": lambda: [Chem.MolToSmiles(one) for one in parsed if one is not None],
        "read (both, and codes)": lambda: read_molecules(texts, features),
        "read, and descriptors, if any": lambda: predictor.reader.read(texts),
        "pack": lambda: pack_molecules(read.molecules),
        "paths and network": lambda: predictor.predict_molecules(texts, read),
    }
    for name, stage in stages.items():
        times = []
        for _ in range(3):
            begin = time.process_time()
            stage()
            times.append(time.process_time() - begin)
        print(f"{name:32s} {min(times) / len(texts) * 1e6:8.1f} us")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 4_096)
