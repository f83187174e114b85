"""BREC: 400 pairs of graphs that 1-WL does not tell apart, in seven categories."""

from __future__ import annotations

from pathlib import Path

import torch

from pathnn.data.datasets.base import Built, DatasetSpec, needed, with_ones
from pathnn.data.readers.graph6 import read_graph6
from pathnn.data.sources import DataFile
from pathnn.data.task import Continuous, Task

FILE = DataFile("BREC_pairs.g6.xz", "c6817bbdcea30883e88dbe7a0cbdbef5523eb13590b4323ba179821d8ca977c7")
CATEGORIES = {
    "basic": range(60),
    "regular": range(60, 110),
    "strongly regular": range(110, 160),
    "extension": range(160, 260),
    "CFI": range(260, 360),
    "4-vertex condition": range(360, 380),
    "distance regular": range(380, 400),
}


def _build(paths: tuple[Path | None, ...]) -> Built:
    graphs, _ = read_graph6(needed(paths[0]))
    return Built(with_ones(graphs))


def _task(built: Built) -> Task:
    return Task(
        name="brec",
        title="BREC",
        graphs=built.graphs,
        node_features=Continuous(1),
        pairs=torch.arange(len(built.graphs)).view(-1, 2),
        groups=CATEGORIES,
        licence="MIT",
        citation="Wang and Zhang, An empirical study of realized GNN expressiveness, ICML 2024",
        notes="graphs 2i and 2i + 1 are pair i; groups are ranges of pairs; features are ones",
    )


def specs() -> list[DatasetSpec]:
    """BREC."""
    return [DatasetSpec("brec", "BREC", 800, ((FILE,),), _build, _task)]
