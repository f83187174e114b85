"""The graph atlas: all 1253 graphs of at most seven vertices, from networkx; nothing to download."""

from __future__ import annotations

from pathlib import Path

from pathnn.data.datasets.base import Built, DatasetSpec, with_ones
from pathnn.data.readers.nx import from_networkx
from pathnn.data.task import Continuous, Task


def _build(paths: tuple[Path | None, ...]) -> Built:
    from networkx.generators.atlas import graph_atlas_g

    return Built(with_ones(from_networkx(graph_atlas_g())))


def _task(built: Built) -> Task:
    return Task(
        name="atlas",
        title="Graph atlas",
        graphs=built.graphs,
        node_features=Continuous(1),
        pairs="all",
        licence="BSD-3-Clause (networkx)",
        citation="Read and Wilson, An atlas of graphs, 1998",
        notes="graph 0 has no vertex; no two graphs are isomorphic; features are ones; not in the paper",
    )


def specs() -> list[DatasetSpec]:
    """The graph atlas."""
    return [DatasetSpec("atlas", "Graph atlas", 1253, (), _build, _task)]
