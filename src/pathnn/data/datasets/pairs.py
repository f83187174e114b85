"""Graphs to be distinguished pair by pair: strongly regular graphs (SR), BREC and the graph atlas."""

from __future__ import annotations

import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pathnn.data.datasets.base import Built, DatasetSpec, with_ones
from pathnn.data.errors import ARCHIVE_ERRORS, DataError
from pathnn.data.readers.graph6 import parse_graph6, read_graph6
from pathnn.data.readers.nx import from_networkx
from pathnn.data.readers.table import read_text
from pathnn.data.sources import DataFile
from pathnn.data.task import Continuous

SR_FAMILIES: dict[str, tuple[tuple[int, int, int, int], int]] = {
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
"""The parameters of each family, and its number of graphs."""

IN_THE_FIGURE = ("sr16622", "sr251256", "sr261034", "sr281264", "sr291467", "sr361446", "sr401224")
SR_ARCHIVE = DataFile("SR_g6.tar.xz", "0dbf9050ef0a9aea54effe55adbdb2da5650e222d98b23f719945b25b5446613", exact=True)
SR_FOLDER = (
    "https://raw.githubusercontent.com/gasmichel/PathNNs_expressive/"
    "88c0de68cc1acfdb48e54bea27c220781e6f82dc/synthetic/data/SR25"
)

BREC_FILE = DataFile("BREC_pairs.g6.xz", "c6817bbdcea30883e88dbe7a0cbdbef5523eb13590b4323ba179821d8ca977c7")
BREC_CATEGORIES = {
    "basic": range(60),
    "regular": range(60, 110),
    "strongly regular": range(110, 160),
    "extension": range(160, 260),
    "CFI": range(260, 360),
    "4-vertex condition": range(360, 380),
    "distance regular": range(380, 400),
}
"""The pairs of each category."""


def _build_sr(name: str, path: Path) -> Built:
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


def _sr_facts(name: str, built: Built) -> dict[str, Any]:
    figure = "in the paper's figure" if name in IN_THE_FIGURE else "not in the paper's figure"
    return {
        "node_features": Continuous(1),
        "pairs": "all",
        "licence": "MIT (PathNNs_expressive)",
        "citation": "Michel et al., Path neural networks, ICML 2023",
        "notes": f"strongly regular graphs, features are ones; {figure}, which prints no numbers",
    }


def _build_brec(path: Path) -> Built:
    graphs, _ = read_graph6(path)
    return Built(with_ones(graphs))


def _brec_facts(built: Built) -> dict[str, Any]:
    return {
        "node_features": Continuous(1),
        "pairs": torch.arange(len(built.graphs)).view(-1, 2),
        "licence": "MIT",
        "citation": "Wang and Zhang, An empirical study of realized GNN expressiveness, ICML 2024",
        "notes": "graphs 2i and 2i + 1 are pair i; features are ones; 1-WL distinguishes no pair",
    }


def _build_atlas() -> Built:
    from networkx.generators.atlas import graph_atlas_g

    return Built(with_ones(from_networkx(graph_atlas_g())))


def _atlas_facts(built: Built) -> dict[str, Any]:
    return {
        "node_features": Continuous(1),
        "pairs": "all",
        "licence": "BSD-3-Clause (networkx)",
        "citation": "Read and Wilson, An atlas of graphs, 1998",
        "notes": "graph 0 has no vertex; no two graphs are isomorphic; features are ones; not in the paper",
    }


def specs() -> list[DatasetSpec]:
    """Return the nine SR families, BREC, and the atlas of all graphs of at most seven vertices (from networkx)."""
    families = [
        DatasetSpec(
            name,
            f"SR{parameters}",
            count,
            ((SR_ARCHIVE, DataFile(f"{name}.g6", url=f"{SR_FOLDER}/{name}.g6")),),
            partial(_build_sr, name),
            partial(_sr_facts, name),
        )
        for name, (parameters, count) in SR_FAMILIES.items()
    ]
    return [
        *families,
        DatasetSpec("brec", "BREC", 800, ((BREC_FILE,),), _build_brec, _brec_facts),
        DatasetSpec("atlas", "Graph atlas", 1253, (), _build_atlas, _atlas_facts),
    ]
