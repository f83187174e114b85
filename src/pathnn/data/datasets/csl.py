"""CSL, circular skip links (table 1): ten classes of 41-vertex rings, with the published folds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pathnn.data.datasets.base import Built, DatasetSpec, load_arrays, with_ones
from pathnn.data.packed import PackedGraphs
from pathnn.data.readers.graph6 import parse_graph6
from pathnn.data.sources import DataFile
from pathnn.data.splits import stratified_folds
from pathnn.data.targets import classification
from pathnn.data.task import Continuous, Split

NUM_NODES = 41
SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
COPIES = 15
FILE = DataFile("CSL.npz", "0c04efa271a922bce0af612b9cf91e826821cfa9bb254d6ffdbb8cd4e43b6e30", exact=True)


def skip_link_graph(num_nodes: int, skip: int) -> Tensor:
    """Return `edge_index` of a ring with a link from each vertex to the one `skip` further; sorted, both directions.

    >>> skip_link_graph(5, 2).size(1)                     # the complete graph on 5 vertices
    20
    """
    if not 1 < skip < num_nodes - 1:
        raise ValueError(f"skip={skip}: expected 2 to {num_nodes - 2} for a ring of {num_nodes} vertices.")
    vertex = torch.arange(num_nodes)
    one_way = torch.stack([vertex.repeat(2), torch.cat([vertex + 1, vertex + skip]) % num_nodes])
    return torch.unique(torch.cat([one_way, one_way.flip(0)], dim=1), dim=1)


def construct(seed: int = 0) -> PackedGraphs:
    """Make 15 copies of each class, with vertices renumbered at random from `seed`; `y` is the class."""
    generator = torch.Generator().manual_seed(seed)
    edges = []
    for skip in SKIPS:
        graph = skip_link_graph(NUM_NODES, skip)
        for _ in range(COPIES):
            relabelled = torch.randperm(NUM_NODES, generator=generator)[graph]
            edges.append(torch.unique(relabelled, dim=1))
    graphs = PackedGraphs.from_edges(edges, [NUM_NODES] * len(edges))
    return with_ones(graphs, torch.arange(len(SKIPS)).repeat_interleave(COPIES))


def read_published(path: Path) -> Built:
    """Read the published graphs, in the published numbering, and the five published folds."""
    arrays = load_arrays(path, ("g6", "y", "train", "val", "test"))
    graphs, _ = parse_graph6(bytes(arrays["g6"].numpy()).decode().split("\n"))
    folds = zip(arrays["train"].long(), arrays["val"].long(), arrays["test"].long(), strict=True)
    return Built(with_ones(graphs, arrays["y"].long()), tuple(Split(*fold) for fold in folds))


def _build(path: Path | None) -> Built:
    if path is not None:
        return read_published(path)
    graphs = construct()
    assert graphs.y is not None
    return Built(graphs, stratified_folds(graphs.y, folds=5), published=False)


def _facts(built: Built) -> dict[str, Any]:
    made_here = "constructed here, renumbered from seed 0, five stratified folds made here (CSL.npz is not at hand)"
    return {
        "node_features": Continuous(1),
        "classes": tuple(f"skip {skip}" for skip in SKIPS),
        "citation": "Murphy et al., Relational pooling, ICML 2019; folds: Dwivedi et al. 2020",
        "notes": "the published numbering and the five published folds" if built.published else made_here,
        **classification(len(SKIPS)),
    }


def specs() -> list[DatasetSpec]:
    """Return CSL."""
    count = len(SKIPS) * COPIES
    return [DatasetSpec("csl", "CSL (circular skip links)", count, ((FILE,),), _build, _facts, optional=True)]
