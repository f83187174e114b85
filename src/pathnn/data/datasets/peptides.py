"""Peptides-func and Peptides-struct (table 3): molecules with OGB's features, from LRGB.

LRGB publishes a zip with `train.pt`, `val.pt` and `test.pt`, each a list of tuples of tensors.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pathnn.data.datasets.base import PARTS, Built, DatasetSpec
from pathnn.data.datasets.ogb import read_packed_molecules
from pathnn.data.errors import ARCHIVE_ERRORS, DataError
from pathnn.data.metrics import mean_over_targets, tied_average_precision
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.readers.smiles import FEATURES
from pathnn.data.sources import DataFile
from pathnn.data.targets import multilabel, regression
from pathnn.data.task import Split

PEPTIDE_FUNCTIONS = (
    "antifungal", "cell_cell_communication", "anticancer", "drug_delivery_vehicle", "antimicrobial", "antiviral",
    "antihypertensive", "antibacterial", "antiparasitic", "toxic",
)  # fmt: skip
"""The labels of Peptides-func, in the order of its columns."""

FUNC = (
    DataFile(
        "peptides_func_graphs.npz",
        "95aa41559b489a395388e5720d6e6df8945e4ee95f01ece6aba34a368a6a759c",
        exact=True,
    ),
    DataFile("peptidesfunc.zip", url="https://www.dropbox.com/s/ycsq37q8sxs1ou8/peptidesfunc.zip?dl=1"),
)
STRUCT = (DataFile("peptidesstruct.zip", url="https://www.dropbox.com/s/zgv4z8fcpmknhs8/peptidesstruct.zip?dl=1"),)

Graph = tuple[Tensor, Tensor, Tensor, Tensor]
"""x, edge_attr, edge_index, y."""


def _build(targets: int, path: Path) -> Built:
    return read_packed_molecules(path, "val") if path.suffix == ".npz" else read_lrgb(path, targets)


def read_lrgb(path: Path, num_targets: int) -> Built:
    """Read the graphs of the three parts and their split; only tensors are unpickled (`weights_only`)."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [_part(archive, part, num_targets) for part in PARTS]
    except (*ARCHIVE_ERRORS, pickle.UnpicklingError) as error:
        raise DataError(f"{path} cannot be read as an LRGB file: {error}. Put a whole copy in its place.") from error
    graphs = [graph for part in parts for graph in part]
    packed = PackedGraphs(
        edge_index=torch.cat([edge_index for _, _, edge_index, _ in graphs], dim=1).to(torch.int16),
        node_ptr=offsets(torch.tensor([x.size(0) for x, _, _, _ in graphs])),
        edge_ptr=offsets(torch.tensor([edge_index.size(1) for _, _, edge_index, _ in graphs])),
        x=torch.cat([x for x, _, _, _ in graphs]).to(torch.uint8),
        edge_attr=torch.cat([edge_attr for _, edge_attr, _, _ in graphs]).to(torch.uint8),
        y=torch.cat([y.view(1, -1) for _, _, _, y in graphs]).float(),
    )
    sizes = [len(part) for part in parts]
    return Built(packed.validate(), (Split(*torch.split(torch.arange(sum(sizes)), sizes)),))


def _part(archive: zipfile.ZipFile, part: str, num_targets: int) -> list[Graph]:
    members = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == f"{part}.pt"]
    if len(members) != 1:
        raise DataError(f"{archive.filename}: expected one {part}.pt, found {len(members)}.")
    content = torch.load(io.BytesIO(archive.read(members[0])), weights_only=True)
    if not isinstance(content, list):
        raise DataError(f"{part}.pt: expected a list of graphs, got {type(content).__name__}.")
    return [_graph(f"{part}.pt, graph {i}", graph, num_targets) for i, graph in enumerate(content)]


def _graph(where: str, graph: Any, num_targets: int) -> Graph:
    tensors = isinstance(graph, list | tuple) and len(graph) == 4 and all(isinstance(t, Tensor) for t in graph)
    if not tensors:
        raise DataError(f"{where}: expected four tensors (x, edge_attr, edge_index, y).")
    x, edge_attr, edge_index, y = graph
    shapes = tuple(tuple(t.shape) for t in graph)
    sound = x.dim() == 2 and edge_attr.dim() == 2 and edge_index.dim() == 2 and edge_index.size(0) == 2
    if not sound or edge_attr.size(0) != edge_index.size(1) or y.numel() != num_targets:
        raise DataError(
            f"{where}: expected x [n, 9], edge_attr [e, 3], edge_index [2, e], y [1, {num_targets}]; got {shapes}."
        )
    return x, edge_attr, edge_index, y


def _facts(built: Built) -> dict[str, Any]:
    return {
        "node_features": FEATURES["ogb"][0],
        "edge_features": FEATURES["ogb"][1],
        "licence": "CC BY-NC 4.0 (non-commercial)",
        "citation": "Dwivedi et al., Long range graph benchmark, NeurIPS 2022",
    }


def _func_facts(built: Built) -> dict[str, Any]:
    return {
        **_facts(built),
        "notes": "the published split; OGB's atom and bond features",
        "classes": PEPTIDE_FUNCTIONS,
        **multilabel(len(PEPTIDE_FUNCTIONS)),
        "score": tied_average_precision,
        "metric": mean_over_targets(tied_average_precision),
    }


def _struct_facts(built: Built) -> dict[str, Any]:
    notes = "the published file of tensors, read without unpickling anything else; targets as published"
    return {**_facts(built), "notes": notes, **regression(11)}


def specs() -> list[DatasetSpec]:
    """Return Peptides-func and Peptides-struct."""
    build_func, build_struct = (partial(_build, targets) for targets in (len(PEPTIDE_FUNCTIONS), 11))
    return [
        DatasetSpec("peptides-func", "Peptides-func (LRGB)", 15535, (FUNC,), build_func, _func_facts),
        DatasetSpec("peptides-struct", "Peptides-struct (LRGB)", 15535, (STRUCT,), build_struct, _struct_facts),
    ]
