"""ZINC12k (table 5): 28 atom types, 4 bond types, the published 10,000 / 1,000 / 1,000 split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.datasets.base import PARTS, Built, DatasetSpec, load_arrays
from pathnn.data.errors import DataError
from pathnn.data.packed import PackedGraphs, from_pyg, offsets
from pathnn.data.sources import DataFile
from pathnn.data.targets import regression
from pathnn.data.task import Categorical, Split
from pathnn.files import atomic_write, cache_dir

if TYPE_CHECKING:
    from torch_geometric.data import Data

SIZES = (10_000, 1_000, 1_000)
ATOM_TYPES, BOND_TYPES = 28, 4
FILE = DataFile("zinc12k.npz", "ae4c8fb6d4f6011e52655d89eaa64865f13a313f3ad456e53bfe807b1feceaf3", exact=True)
OF_PYG = DataFile("zinc12k-pyg.npz", made_by="pathnn.data.save_zinc from PyG's dataset")
"""The file that `save_zinc` writes."""


def _build(path: Path) -> Built:
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
    ).validate()
    _check_codes(path, joined["x"], joined["edge_attr"])
    sizes = [arrays[f"{part}_y"].numel() for part in PARTS]
    if sizes != list(SIZES):
        raise DataError(f"{path}: expected {SIZES} graphs for training, validation and test, got {tuple(sizes)}.")
    return Built(graphs, (Split(*torch.split(torch.arange(sum(sizes)), sizes)),))


def _check_codes(where: object, x: Tensor, edge_attr: Tensor) -> None:
    for name, values, kinds in (("x", x, ATOM_TYPES), ("edge_attr", edge_attr, BOND_TYPES)):
        low, high = (int(value) for value in torch.aminmax(values)) if values.numel() else (0, 0)
        if low < 0 or high >= kinds:
            raise DataError(f"{where}: expected codes from 0 to {kinds - 1} in {name}, got {low} to {high}.")


def _facts(built: Built) -> dict[str, Any]:
    return {
        "node_features": Categorical((ATOM_TYPES,)),
        "edge_features": Categorical((BOND_TYPES,)),
        "licence": "MIT (benchmarking-gnns)",
        "citation": "Dwivedi et al., Benchmarking graph neural networks, 2020",
        "notes": (
            "rebuilt from the benchmark's SMILES and index files; a handful of targets may differ by 0.1 "
            "to 0.2. The public file is a pickle, which is not read; what PyG makes of it can be saved for use here "
            "(pathnn.data.save_zinc)"
        ),
        **regression(),
    }


def specs() -> list[DatasetSpec]:
    """Return ZINC12k."""
    return [DatasetSpec("zinc", "ZINC12k", 12000, ((FILE, OF_PYG),), _build, _facts)]


def save_zinc(train: Sequence[Data], val: Sequence[Data], test: Sequence[Data]) -> Path:
    """Save PyG's ZINC subset in the cache, for `load_dataset("zinc")` and all commands; return the file.

    ```python
    from torch_geometric.datasets import ZINC
    from pathnn.data import save_zinc

    save_zinc(*(ZINC("zinc", subset=True, split=split) for split in ("train", "val", "test")))
    ```
    """
    arrays: dict[str, Any] = {}
    for part, size, data in zip(PARTS, SIZES, (train, val, test), strict=True):
        if len(data) != size:
            raise ValueError(
                f"{part}: expected {size} graphs, got {len(data)}. Give ZINC(root, subset=True, split={part!r})."
            )
        arrays.update({f"{part}_{name}": value.numpy() for name, value in _fields(part, from_pyg(list(data))).items()})
    path = cache_dir() / "files" / OF_PYG.name
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)
    return path


def _fields(part: str, graphs: PackedGraphs) -> dict[str, Tensor]:
    """Return the arrays of one part, as `zinc12k.npz` has them."""
    if graphs.x is None or graphs.edge_attr is None or graphs.y is None:
        raise ValueError(f"{part}: expected graphs with x (atom types), edge_attr (bond types) and y.")
    for name, values in (("x", graphs.x), ("edge_attr", graphs.edge_attr)):
        if values.is_floating_point() or values.numel() != values.size(0):
            raise ValueError(
                f"{part}: expected one integer in each row of {name}, got {values.dtype}, {tuple(values.shape)}."
            )
    _check_codes(part, graphs.x, graphs.edge_attr)
    if graphs.y.numel() != len(graphs) or not bool(graphs.y.isfinite().all()):
        raise ValueError(f"{part}: expected one finite target for each of {len(graphs)} graphs.")
    return {
        "x": graphs.x.flatten().to(torch.uint8),
        "edge_index": graphs.edge_index.to(torch.int16),
        "edge_attr": graphs.edge_attr.flatten().to(torch.uint8),
        "num_nodes": graphs.node_ptr.diff().int(),
        "num_edges": graphs.edge_ptr.diff().int(),
        "y": graphs.y.flatten().float(),
    }
