"""ZINC12k (table 5): 28 atom types, 4 bond types, the published 10,000 / 1,000 / 1,000 split."""

from __future__ import annotations

from pathlib import Path

import torch

from pathnn.data.built import Built
from pathnn.data.datasets.arrays import load_arrays
from pathnn.data.datasets.spec import DatasetSpec, needed
from pathnn.data.packed import PackedGraphs
from pathnn.data.ragged import offsets
from pathnn.data.sources import DataFile
from pathnn.data.targets import regression
from pathnn.data.task import Categorical, Split, Task

PARTS = ("train", "val", "test")
FILE = DataFile("zinc12k.npz", "ae4c8fb6d4f6011e52655d89eaa64865f13a313f3ad456e53bfe807b1feceaf3", exact=True)


def _build(paths: tuple[Path | None, ...]) -> Built:
    path = needed(paths[0])
    fields = ("x", "edge_index", "edge_attr", "num_nodes", "num_edges", "y")
    arrays = load_arrays(path, [f"{part}_{field}" for part in PARTS for field in fields])
    joined = {
        field: torch.cat([arrays[f"{part}_{field}"] for part in PARTS], dim=1 if field == "edge_index" else 0)
        for field in fields
    }
    graphs = PackedGraphs(
        edge_index=joined["edge_index"].to(torch.int16),
        node_ptr=offsets(joined["num_nodes"].long()),
        edge_ptr=offsets(joined["num_edges"].long()),
        x=joined["x"][:, None],
        edge_attr=joined["edge_attr"][:, None],
        y=joined["y"][:, None],
    )
    sizes = [arrays[f"{part}_y"].numel() for part in PARTS]
    return Built(graphs, (Split(*torch.split(torch.arange(sum(sizes)), sizes)),))


def _task(built: Built) -> Task:
    return Task(
        name="zinc",
        title="ZINC12k",
        graphs=built.graphs,
        node_features=Categorical((28,)),
        edge_features=Categorical((4,)),
        splits=built.splits,
        paper={("sp", 4): (0.104, 0.002), ("sp+", 4): (0.131, 0.008), ("ap", 4): (0.090, 0.004)},
        paper_mean_paths={
            ("sp", 2): 68.8,
            ("sp+", 2): 68.9,
            ("ap", 2): 69.2,
            ("sp", 3): 68.1,
            ("sp+", 3): 79.0,
            ("ap", 3): 88.0,
            ("sp", 4): 61.7,
            ("sp+", 4): 70.5,
            ("ap", 4): 110.3,
        },
        licence="MIT (benchmarking-gnns)",
        citation="Dwivedi et al., Benchmarking graph neural networks, 2020",
        notes=(
            "rebuilt from the benchmark's SMILES and index files; a handful of targets may differ by 0.1 "
            "to 0.2. The public file is a pickle, which is not read"
        ),
        **regression(),
    )


def specs() -> list[DatasetSpec]:
    """ZINC12k."""
    return [DatasetSpec("zinc", "ZINC12k", 12000, ((FILE,),), _build, _task)]
