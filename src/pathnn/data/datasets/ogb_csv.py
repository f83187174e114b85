"""OGB's published molecule files: a zip of compressed CSV tables."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from pathnn.data.datasets.base import Built
from pathnn.data.errors import ARCHIVE_ERRORS, DataError
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.readers.table import parse_numbers
from pathnn.data.task import Split


def read_ogb_csv(path: Path) -> Built:
    """Graphs, features, labels and the scaffold split of a zip such as OGB's `hiv.zip`."""
    try:
        with zipfile.ZipFile(path) as archive:
            raw = {name: _table(archive, f"raw/{name}.csv.gz") for name in _RAW}
            split = [_table(archive, f"split/scaffold/{name}.csv.gz").view(-1).long() for name in _SPLIT]
    except (*ARCHIVE_ERRORS, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read as an OGB file: {error}. Put a whole copy in its place.") from error
    edge_index, edge_attr = both_directions(raw["edge"].long(), raw["edge-feat"])
    graphs = PackedGraphs(
        edge_index=edge_index.to(torch.int16),
        node_ptr=offsets(raw["num-node-list"].view(-1).long()),
        edge_ptr=offsets(2 * raw["num-edge-list"].view(-1).long()),
        x=raw["node-feat"].to(torch.uint8),
        edge_attr=edge_attr.to(torch.uint8),
        y=raw["graph-label"].float(),
    )
    return Built(graphs.validate(), (Split(*split),))


def both_directions(bonds: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
    """Bonds `[B, 2]` as `edge_index` `[2, 2B]` in OGB's order: each bond, then its reverse; features twice.

    >>> both_directions(torch.tensor([[0, 1], [1, 2]]), torch.tensor([[7], [8]]))[0].tolist()
    [[0, 1, 1, 2], [1, 0, 2, 1]]
    """
    edge_index = torch.stack([bonds, bonds.flip(1)], dim=1).view(-1, 2).t().contiguous()
    return edge_index, features.repeat_interleave(2, dim=0)


_RAW = ("edge", "num-node-list", "num-edge-list", "node-feat", "edge-feat", "graph-label")
_SPLIT = ("train", "valid", "test")


def _table(archive: zipfile.ZipFile, suffix: str) -> Tensor:
    members = [name for name in archive.namelist() if name.endswith(suffix)]
    if len(members) != 1:
        raise DataError(f"{archive.filename}: expected one {suffix}, found {len(members)}.")
    text = gzip.decompress(archive.read(members[0])).decode()
    return torch.from_numpy(parse_numbers(text))
