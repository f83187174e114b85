"""Strongly regular graphs: nine families, all pairs of a family to be told apart."""

from __future__ import annotations

import tarfile
from functools import partial
from pathlib import Path

from pathnn.data.datasets.base import Built, DatasetSpec, needed, with_ones
from pathnn.data.errors import ARCHIVE_ERRORS, DataError
from pathnn.data.readers.graph6 import parse_graph6
from pathnn.data.readers.table import read_text
from pathnn.data.sources import DataFile
from pathnn.data.task import Continuous, Task

FAMILIES: dict[str, tuple[tuple[int, int, int, int], int]] = {
    "sr16622": ((16, 6, 2, 2), 2),
    "sr251256": ((25, 12, 5, 6), 15),
    "sr261034": ((26, 10, 3, 4), 10),
    "sr281264": ((28, 12, 6, 4), 4),
    "sr291467": ((29, 14, 6, 7), 41),
    "sr351668": ((35, 16, 6, 8), 3854),
    "sr351899": ((35, 18, 9, 9), 227),
    "sr361446": ((36, 14, 4, 6), 180),
    "sr401224": ((40, 12, 2, 4), 28),
}
IN_THE_FIGURE = ("sr16622", "sr251256", "sr261034", "sr281264", "sr291467", "sr361446", "sr401224")
ARCHIVE = DataFile("SR_g6.tar.xz", "0dbf9050ef0a9aea54effe55adbdb2da5650e222d98b23f719945b25b5446613", exact=True)
FOLDER = (
    "https://raw.githubusercontent.com/gasmichel/PathNNs_expressive/"
    "88c0de68cc1acfdb48e54bea27c220781e6f82dc/synthetic/data/SR25"
)


def _build(name: str, paths: tuple[Path | None, ...]) -> Built:
    path = needed(paths[0])
    text = read_text(path) if path.suffix == ".g6" else _member(path, f"{name}.g6")
    graphs, _ = parse_graph6(text.splitlines(), source=str(path))
    return Built(with_ones(graphs))


def _member(path: Path, name: str) -> str:
    try:
        with tarfile.open(path) as archive:
            file = archive.extractfile(name)
            if file is None:
                raise DataError(f"{path} has no file {name}.")
            return file.read().decode()
    except (*ARCHIVE_ERRORS, tarfile.TarError) as error:
        raise DataError(f"{path} cannot be read: {error}. Put a whole copy in its place.") from error


def _task(name: str, built: Built) -> Task:
    (vertices, degree, common, other), _ = FAMILIES[name]
    figure = "in the paper's figure" if name in IN_THE_FIGURE else "not in the paper's figure"
    return Task(
        name=name,
        title=f"SR({vertices}, {degree}, {common}, {other})",
        graphs=built.graphs,
        node_features=Continuous(1),
        pairs="all",
        licence="MIT (PathNNs_expressive)",
        citation="Michel et al., Path neural networks, ICML 2023",
        notes=f"strongly regular graphs, features are ones; {figure}, which prints no numbers",
    )


def specs() -> list[DatasetSpec]:
    """The nine families."""
    return [
        DatasetSpec(
            name,
            f"SR{parameters}",
            count,
            ((ARCHIVE, DataFile(f"{name}.g6", url=f"{FOLDER}/{name}.g6")),),
            partial(_build, name),
            partial(_task, name),
        )
        for name, (parameters, count) in FAMILIES.items()
    ]
