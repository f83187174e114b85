"""The six TUDatasets of table 2, with the folds of Errica et al. (2020)."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pathnn.data.datasets.registry import Built, DatasetSpec
from pathnn.data.errors import DataError, reading
from pathnn.data.readers.tu import read_tu
from pathnn.data.sources import DataFile
from pathnn.data.task import Split, target_fields

ZIPS = "https://www.chrsmrrs.com/graphkerneldatasets"
SPLITS = (
    "https://raw.githubusercontent.com/diningphil/gnn-comparison/097d0a2c172149075e40ece474c30c222526dbcb/data_splits"
)
SPLITS_ZIP = DataFile(
    "errica_splits.zip", "615b51d793fc6446484ec48d194b33406caa7e5519b39c76e634d9033ffac2ae", exact=True
)

FEATURE_NOTES = {
    "labels": "vertex labels one-hot",
    "labels+attributes": "vertex labels one-hot, then the 18 attributes",
    "degree": "vertex degree one-hot (doubled edges counted once)",
}
"""The kinds of vertex features, in words."""


def read_folds(path: Path, name: str) -> tuple[Split, ...]:
    """Read the ten published folds of a set from its JSON file, or from a zip that holds `NAME_splits.json`."""
    with reading(path, "a JSON list of folds with test, train and validation"):
        if path.suffix != ".zip":
            return tuple(map(_split, json.loads(path.read_text())))
        with zipfile.ZipFile(path) as archive:
            return tuple(map(_split, json.loads(archive.read(f"{name}_splits.json"))))


def _split(fold: dict[str, Any]) -> Split:
    chosen = fold["model_selection"][0]
    return Split(torch.tensor(chosen["train"]), torch.tensor(chosen["validation"]), torch.tensor(fold["test"]))


def _build(name: str, kind: str, path: Path, folds: Path) -> Built:
    data = read_tu(path, attributes=kind == "labels+attributes")
    if kind != "degree" and "node_labels" not in data.values:
        raise DataError(f"{path} has no node labels; expected {name}_node_labels.txt.")
    return Built(data.graphs, read_folds(folds, name))


SETS = {
    "DD": (
        1178, 2, "labels", "CHEMICAL/DD",
        "99fbac52ba3bbb1af3ad61bd2469a9b755c39794fcecbf59acc5a23504aeed89",
    ),
    "PROTEINS": (
        1113, 2, "labels", "CHEMICAL/PROTEINS_full",
        "fe9d19741637486ea1fd285bf669fce0b117e10b03cdd379f6a5e6197fc830ae",
    ),
    "NCI1": (
        4110, 2, "labels", "CHEMICAL/NCI1",
        "eae6b0c076d59e667c67de0039cfc3214eefb91a8dddc2fa3099126da02d4376",
    ),
    "ENZYMES": (
        600, 6, "labels+attributes", "CHEMICAL/ENZYMES",
        "0ca7125d7978788346fc6ba5c3cc643b6122153b304220c2230bcb09f99f8ffb",
    ),
    "IMDB-BINARY": (
        1000, 2, "degree", "COLLABORATIVE_DEGREE/IMDB-BINARY",
        "2a4abb6431ec1ab025a6fbcd3b546607191f79a1e0aef0f42cd8bd4ec1546116",
    ),
    "IMDB-MULTI": (
        1500, 3, "degree", "COLLABORATIVE_DEGREE/IMDB-MULTI",
        "1d22bb88ee69f9f7c09eb7f072dadec56e3f91ad4b14cfd99231379b68073883",
    ),
}  # fmt: skip
"""Number of graphs and classes, a key of `FEATURE_NOTES`, the place of the folds below `SPLITS`, and the checksum."""


def specs() -> list[DatasetSpec]:
    """Return DD, PROTEINS, NCI1, ENZYMES, IMDB-BINARY and IMDB-MULTI."""
    found = []
    for name, (num_graphs, classes, features, folds, sha256) in SETS.items():
        files = (
            (DataFile(f"{name}.zip", sha256, f"{ZIPS}/{name}.zip"),),
            (SPLITS_ZIP, DataFile(f"{name}_splits.json", url=f"{SPLITS}/{folds}_splits.json")),
        )
        facts = {
            "licence": "public, see TUDataset",
            "citation": "Morris et al., TUDataset, 2020; folds: Errica et al., A fair comparison, ICLR 2020",
            "notes": f"{FEATURE_NOTES[features]}; the ten published folds",
            **target_fields("class", classes),
        }
        build = partial(_build, name, features)
        found.append(DatasetSpec(name.lower(), f"{name} (TUDataset)", num_graphs, files, build, facts))
    return found
