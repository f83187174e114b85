"""The six TUDatasets of table 2, with the folds of Errica et al. (2020)."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from pathlib import Path

import torch

from pathnn.data.datasets.base import Built, DatasetSpec, needed
from pathnn.data.errors import ARCHIVE_ERRORS, DataError
from pathnn.data.readers.tu import TUData, one_hot, read_tu
from pathnn.data.sources import DataFile
from pathnn.data.targets import classification
from pathnn.data.task import Continuous, Score, Split, Task
from pathnn.paths.options import COLLECTIONS, Collection

ZIPS = "https://www.chrsmrrs.com/graphkerneldatasets"
SPLITS = (
    "https://raw.githubusercontent.com/diningphil/gnn-comparison/097d0a2c172149075e40ece474c30c222526dbcb/data_splits"
)
SPLITS_ZIP = DataFile(
    "errica_splits.zip", "615b51d793fc6446484ec48d194b33406caa7e5519b39c76e634d9033ffac2ae", exact=True
)

Paper = dict[tuple[Collection, int], Score | None]


def read_folds(path: Path, name: str) -> tuple[Split, ...]:
    """The ten published folds of a set: from its JSON file, or from a zip that holds `NAME_splits.json`."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                folds = json.loads(archive.read(f"{name}_splits.json"))
        else:
            folds = json.loads(path.read_text())
        return tuple(_split(fold) for fold in folds)
    except (*ARCHIVE_ERRORS, ValueError, IndexError, TypeError) as error:
        raise DataError(f"{path}: expected a JSON list of folds with test, train and validation: {error!r}.") from error


def _split(fold: dict[str, list[int] | list[dict[str, list[int]]]]) -> Split:
    chosen = fold["model_selection"][0]
    if not isinstance(chosen, dict):
        raise TypeError(f"model_selection holds a {type(chosen).__name__}: expected train and validation")
    return Split(torch.tensor(chosen["train"]), torch.tensor(chosen["validation"]), torch.tensor(fold["test"]))


def _features(data: TUData, kind: str) -> torch.Tensor:
    """Vertex features as the paper uses them: one-hot over the values that occur."""
    if kind == "degree":
        return one_hot(data.degrees())
    if data.node_labels is None:
        raise DataError(f"{data.name} has no node labels; expected {data.name}_node_labels.txt.")
    labels = one_hot(data.node_labels)
    if kind == "labels":
        return labels
    if data.node_attributes is None:
        raise DataError(f"{data.name} has no node attributes; expected {data.name}_node_attributes.txt.")
    return torch.cat([labels.float(), data.node_attributes], dim=1)


def _build(name: str, kind: str, paths: tuple[Path | None, ...]) -> Built:
    data = read_tu(needed(paths[0]))
    return Built(data.graphs(_features(data, kind)), read_folds(needed(paths[1]), name))


def _task(spec: _Facts, built: Built) -> Task:
    x = built.graphs.x
    assert x is not None
    return Task(
        name=spec.key,
        title=spec.title,
        graphs=built.graphs,
        node_features=Continuous(x.size(1)),
        splits=built.splits,
        paper=spec.paper,
        paper_mean_paths=spec.mean_paths,
        licence="public, see TUDataset",
        citation="Morris et al., TUDataset, 2020; folds: Errica et al., A fair comparison, ICLR 2020",
        notes=f"{spec.features}; the ten published folds",
        **classification(spec.classes),
    )


class _Facts:
    """What is known of one set; `cells` are a column of table 2: K=1, then SP, SP+, AP at K=2 and K=3."""

    def __init__(
        self,
        name: str,
        *,
        classes: int,
        kind: str,
        cells: tuple[Score | str, ...],
        mean_paths: dict[tuple[Collection, int], float] | None = None,
    ) -> None:
        self.name, self.key, self.title = name, name.lower(), f"{name} (TUDataset)"
        self.classes, self.kind = classes, kind
        self.paper = _paper(cells)
        self.mean_paths = mean_paths or {}
        self.features = {
            "labels": "vertex labels one-hot",
            "labels+attributes": "vertex labels one-hot, then the 18 attributes",
            "degree": "vertex degree one-hot (doubled edges counted once)",
        }[kind]


def _paper(cells: tuple[Score | str, ...]) -> Paper:
    """K=1 is the same model for every collection; "OOM" ran out of memory, "-" is not applicable."""
    rows: list[tuple[Collection, int]] = [(c, k) for c in COLLECTIONS for k in (2, 3)]
    paper: Paper = {(c, 1): _score(cells[0]) for c in COLLECTIONS}
    for row, cell in zip(rows, cells[1:], strict=True):
        if cell != "-":
            paper[row] = _score(cell)
    return paper


def _score(cell: Score | str) -> Score | None:
    return None if isinstance(cell, str) else cell


def _spec(facts: _Facts, num_graphs: int, sha256: str, folder: str, splits_file: str) -> DatasetSpec:
    files = (
        (DataFile(f"{facts.name}.zip", sha256, f"{ZIPS}/{facts.name}.zip"),),
        (
            SPLITS_ZIP,
            DataFile(f"{facts.name}_splits.json", url=f"{SPLITS}/{folder}/{splits_file}_splits.json"),
        ),
    )
    build = partial(_build, facts.name, facts.kind)
    return DatasetSpec(facts.key, facts.title, num_graphs, files, build, partial(_task, facts))


def specs() -> list[DatasetSpec]:
    """DD, PROTEINS, NCI1, ENZYMES, IMDB-BINARY and IMDB-MULTI."""
    oom, none = "OOM", "-"
    dd = _Facts(
        "DD",
        classes=2,
        kind="labels",
        cells=((76.9, 3.7), (75.3, 2.7), (77.0, 3.1), (74.7, 3.0), (76.5, 4.6), (75.0, 4.4), oom),
        mean_paths={("sp", 2): 2466, ("sp+", 2): 3583, ("ap", 2): 6581},
    )
    proteins = _Facts(
        "PROTEINS",
        classes=2,
        kind="labels",
        cells=((75.2, 3.9), (73.1, 3.1), (72.2, 2.7), (73.1, 3.7), (73.2, 3.3), (73.1, 4.9), (73.1, 4.0)),
    )
    nci1 = _Facts(
        "NCI1",
        classes=2,
        kind="labels",
        cells=((77.5, 1.6), (82.0, 1.6), (82.2, 1.7), (81.0, 1.4), (82.3, 1.9), (81.3, 1.8), (82.3, 1.7)),
    )
    enzymes = _Facts(
        "ENZYMES",
        classes=6,
        kind="labels+attributes",
        cells=((73.0, 5.2), (71.6, 6.4), (69.2, 4.7), (72.5, 5.3), (70.4, 3.1), (71.8, 4.8), (69.0, 5.3)),
    )
    imdb_b = _Facts(
        "IMDB-BINARY",
        classes=2,
        kind="degree",
        cells=((72.6, 3.3), (70.8, 3.5), none, (70.5, 3.4), none, (71.7, 3.6), oom),
    )
    imdb_m = _Facts(
        "IMDB-MULTI",
        classes=3,
        kind="degree",
        cells=((50.8, 4.5), (50.0, 4.1), none, (50.7, 4.5), none, (49.8, 4.2), oom),
    )
    chemical, social = "CHEMICAL", "COLLABORATIVE_DEGREE"
    return [
        _spec(dd, 1178, "99fbac52ba3bbb1af3ad61bd2469a9b755c39794fcecbf59acc5a23504aeed89", chemical, "DD"),
        _spec(
            proteins,
            1113,
            "fe9d19741637486ea1fd285bf669fce0b117e10b03cdd379f6a5e6197fc830ae",
            chemical,
            "PROTEINS_full",
        ),
        _spec(nci1, 4110, "eae6b0c076d59e667c67de0039cfc3214eefb91a8dddc2fa3099126da02d4376", chemical, "NCI1"),
        _spec(
            enzymes,
            600,
            "0ca7125d7978788346fc6ba5c3cc643b6122153b304220c2230bcb09f99f8ffb",
            chemical,
            "ENZYMES",
        ),
        _spec(
            imdb_b,
            1000,
            "2a4abb6431ec1ab025a6fbcd3b546607191f79a1e0aef0f42cd8bd4ec1546116",
            social,
            "IMDB-BINARY",
        ),
        _spec(
            imdb_m,
            1500,
            "1d22bb88ee69f9f7c09eb7f072dadec56e3f91ad4b14cfd99231379b68073883",
            social,
            "IMDB-MULTI",
        ),
    ]
