"""LRGB's published files: a zip with `train.pt`, `val.pt`, `test.pt`, each a list of tuples of tensors."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pathnn.data.datasets.base import Built
from pathnn.data.errors import ARCHIVE_ERRORS, DataError
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.task import Split

PARTS = ("train", "val", "test")

Graph = tuple[Tensor, Tensor, Tensor, Tensor]
"""x, edge_attr, edge_index, y."""


def read_lrgb(path: Path, num_targets: int) -> Built:
    """The graphs of the three parts and their split. Only tensors are read (`weights_only`)."""
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
