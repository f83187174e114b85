"""ogbg-molhiv (table 4): molecules with OGB's features, from a packed file or from OGB's zip of CSV tables."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pathnn.data.datasets.base import Built, DatasetSpec, load_arrays
from pathnn.data.errors import ARCHIVE_ERRORS, DataError
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.readers.smiles import FEATURES
from pathnn.data.readers.tu import parse_numbers
from pathnn.data.sources import DataFile
from pathnn.data.targets import binary
from pathnn.data.task import Split

MOLHIV = (
    DataFile(
        "ogbg_molhiv_graphs.npz",
        "9d1cce73c2cf5661b546d7749dc60e04e59e87c1fa8781a5cf5a91235ebd3bed",
        exact=True,
    ),
    DataFile("hiv.zip", url="https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/hiv.zip"),
)
_RAW = ("edge", "num-node-list", "num-edge-list", "node-feat", "edge-feat", "graph-label")
_SPLIT = ("train", "valid", "test")


def _build(path: Path) -> Built:
    return read_packed_molecules(path, "valid") if path.suffix == ".npz" else read_ogb_csv(path)


def read_packed_molecules(path: Path, val: str) -> Built:
    """Read graphs, targets and the split from an `.npz` file of this project; `val` names the validation part."""
    names = ("x", "bonds", "bond_feat", "num_nodes", "num_bonds", "y", "train", val, "test")
    arrays = load_arrays(path, names)
    edge_index, edge_attr = both_directions(arrays["bonds"], arrays["bond_feat"])
    y = arrays["y"].float()
    graphs = PackedGraphs(
        edge_index=edge_index,
        node_ptr=offsets(arrays["num_nodes"].long()),
        edge_ptr=offsets(2 * arrays["num_bonds"].long()),
        x=arrays["x"],
        edge_attr=edge_attr,
        y=y.view(y.size(0), -1),
    )
    return Built(graphs, (Split(arrays["train"].long(), arrays[val].long(), arrays["test"].long()),))


def read_ogb_csv(path: Path) -> Built:
    """Read the graphs, features, labels and the scaffold split of a zip such as OGB's `hiv.zip`."""
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
    """Turn bonds `[B, 2]` into `edge_index` `[2, 2B]` in OGB's order: each bond, then its reverse.

    >>> both_directions(torch.tensor([[0, 1], [1, 2]]), torch.tensor([[7], [8]]))[0].tolist()
    [[0, 1, 1, 2], [1, 0, 2, 1]]
    """
    edge_index = torch.stack([bonds, bonds.flip(1)], dim=1).view(-1, 2).t().contiguous()
    return edge_index, features.repeat_interleave(2, dim=0)


def _table(archive: zipfile.ZipFile, suffix: str) -> Tensor:
    members = [name for name in archive.namelist() if name.endswith(suffix)]
    if len(members) != 1:
        raise DataError(f"{archive.filename}: expected one {suffix}, found {len(members)}.")
    text = gzip.decompress(archive.read(members[0])).decode()
    return torch.from_numpy(parse_numbers(text))


def _facts(built: Built) -> dict[str, Any]:
    return {
        "node_features": FEATURES["ogb"][0],
        "edge_features": FEATURES["ogb"][1],
        "licence": "MIT",
        "citation": "Hu et al., Open graph benchmark, NeurIPS 2020",
        "notes": "the official scaffold split; OGB's atom and bond features",
        **binary(),
    }


def specs() -> list[DatasetSpec]:
    """Return ogbg-molhiv."""
    return [DatasetSpec("molhiv", "ogbg-molhiv", 41127, (MOLHIV,), _build, _facts)]
