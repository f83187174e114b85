"""Molecules: ZINC12k (table 5), ogbg-molhiv (table 4), Peptides of LRGB (table 3), and ESOL.

Peptides and ogbg-molhiv have OGB's features. LRGB publishes a zip with `train.pt`, `val.pt` and `test.pt`, each a list
of tuples of tensors; OGB a zip of CSV tables.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from pathnn.data.datasets.registry import PARTS, Built, DatasetSpec, load_arrays
from pathnn.data.errors import DataError, reading
from pathnn.data.metrics import MetricInfo, tied_average_precision
from pathnn.data.packed import PackedGraphs, from_pyg, offsets
from pathnn.data.readers.pickles import read_pickle, value_of
from pathnn.data.readers.smiles import FEATURES, pack_bonds, smiles_graphs
from pathnn.data.readers.table import read_table
from pathnn.data.readers.tu import parse_numbers
from pathnn.data.sources import DataFile, get_file
from pathnn.data.task import Categorical, Split, metric_fields, random_split, target_fields

ZINC_SIZES = (10_000, 1_000, 1_000)
ATOM_TYPES, BOND_TYPES = 28, 4
ZINC = DataFile("zinc12k.npz", "ae4c8fb6d4f6011e52655d89eaa64865f13a313f3ad456e53bfe807b1feceaf3", exact=True)
ZINC_PUBLISHED = (
    DataFile("molecules.zip", url="https://www.dropbox.com/s/feo9qle74kg48gy/molecules.zip?dl=1"),
    DataFile("train.pickle", "9c76df5a1ab90aac200df22902893827168aeced3df87aab4b6bee100235d7f2"),
)
"""All of ZINC as the benchmark publishes it: a zip, or its files (with PyG, in the folder `raw`)."""
ZINC_INDEX = "https://raw.githubusercontent.com/graphdeeplearning/benchmarking-gnns/master/data/molecules"
"""Where the numbers of the molecules of the subset are."""

MOLHIV = (
    DataFile("ogbg_molhiv_graphs.npz", "9d1cce73c2cf5661b546d7749dc60e04e59e87c1fa8781a5cf5a91235ebd3bed", exact=True),
    DataFile("hiv.zip", url="https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/hiv.zip"),
)
PEPTIDES_FUNC = (
    DataFile(
        "peptides_func_graphs.npz", "95aa41559b489a395388e5720d6e6df8945e4ee95f01ece6aba34a368a6a759c", exact=True
    ),
    DataFile("peptidesfunc.zip", url="https://www.dropbox.com/s/ycsq37q8sxs1ou8/peptidesfunc.zip?dl=1"),
)
PEPTIDES_STRUCT = (
    DataFile("peptidesstruct.zip", url="https://www.dropbox.com/s/zgv4z8fcpmknhs8/peptidesstruct.zip?dl=1"),
)
PEPTIDE_FUNCTIONS = (
    "antifungal", "cell_cell_communication", "anticancer", "drug_delivery_vehicle", "antimicrobial", "antiviral",
    "antihypertensive", "antibacterial", "antiparasitic", "toxic",
)  # fmt: skip
"""The labels of Peptides-func, in the order of its columns."""

ESOL = (
    DataFile("esol.csv.gz", "61688a42b6767692e69cca04b838fe1eef93043ae6093148d65fdccf1d5be310"),
    DataFile(
        "delaney-processed.csv",
        url="https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/delaney-processed.csv",
    ),
)
ESOL_TARGETS = ("logSolubility", "measured log solubility in mols per litre")


def specs() -> list[DatasetSpec]:
    """Return ZINC12k, ogbg-molhiv, Peptides-func, Peptides-struct and ESOL."""
    zinc = {
        "node_features": Categorical((ATOM_TYPES,)),
        "edge_features": Categorical((BOND_TYPES,)),
        "licence": "MIT (benchmarking-gnns)",
        "citation": "Dwivedi et al., Benchmarking graph neural networks, 2020",
        "notes": (
            "in zinc12k.npz, rebuilt from the benchmark's SMILES and index files, a handful of targets may differ by "
            "0.1 to 0.2"
        ),
        **target_fields("regression"),
    }
    cip, ogb = (dict(zip(("node_features", "edge_features"), FEATURES[kind], strict=True)) for kind in ("cip", "ogb"))
    molhiv = ogb | {
        "licence": "MIT",
        "citation": "Hu et al., Open graph benchmark, NeurIPS 2020",
        "notes": "the official scaffold split; OGB's atom and bond features",
        **target_fields("binary"),
    }
    peptides = ogb | {
        "licence": "CC BY-NC 4.0 (non-commercial)",
        "citation": "Dwivedi et al., Long range graph benchmark, NeurIPS 2022",
    }
    func = peptides | {
        "notes": "the published split; OGB's atom and bond features",
        "classes": PEPTIDE_FUNCTIONS,
        **target_fields("multilabel", len(PEPTIDE_FUNCTIONS)),
        **metric_fields("multilabel", MetricInfo("AP", tied_average_precision, scale=100.0)),
    }
    struct = peptides | {
        "notes": "the published file of tensors, read without unpickling anything else; targets as published",
        **target_fields("regression", 11),
    }
    esol = cip | {
        "licence": "MIT (KANO)",
        "citation": "Delaney, ESOL, 2004; Wu et al., MoleculeNet, 2018",
        "notes": "the features of a user's own molecules; a random split of 80 / 10 / 10 from seed 0; not in the paper",
        **target_fields("regression"),
    }
    build_molhiv = partial(read_packed_or_published, "valid", read_ogb_csv)
    build_func = partial(read_packed_or_published, "val", partial(read_lrgb, num_targets=len(PEPTIDE_FUNCTIONS)))
    build_struct = partial(read_lrgb, num_targets=11)
    return [
        DatasetSpec("zinc", "ZINC12k", 12000, ((ZINC, *ZINC_PUBLISHED),), build_zinc, zinc),
        DatasetSpec("molhiv", "ogbg-molhiv", 41127, (MOLHIV,), build_molhiv, molhiv),
        DatasetSpec("peptides-func", "Peptides-func (LRGB)", 15535, (PEPTIDES_FUNC,), build_func, func),
        DatasetSpec("peptides-struct", "Peptides-struct (LRGB)", 15535, (PEPTIDES_STRUCT,), build_struct, struct),
        DatasetSpec("esol", "ESOL", 1128, (ESOL,), build_esol, esol, version=3),
    ]


def build_esol(path: Path) -> Built:
    """Read the molecules of ESOL, 1128 small ones with their measured solubility, from a CSV of SMILES."""
    table = read_table(path)
    target = next((column for column in ESOL_TARGETS if column in table.columns), ESOL_TARGETS[0])
    graphs, _ = smiles_graphs(table, smiles="smiles", targets=[target])
    return Built(graphs, (random_split(len(graphs)),), published=False)


def read_packed_or_published(val: str, read_published: Callable[[Path], Built], path: Path) -> Built:
    """Read molecules from an `.npz` file of this project, where `val` is the validation part, or as published."""
    if path.suffix != ".npz":
        return read_published(path)
    fields = ("x", "bond_feat", "bonds", "num_nodes", "num_bonds")
    arrays = load_arrays(path, (*fields, "y", "train", val, "test"))
    graphs = pack_bonds(*(arrays[name] for name in fields))
    y = arrays["y"].float()
    split = Split(*(arrays[part].long() for part in ("train", val, "test")))
    return Built(replace(graphs, y=y.view(y.size(0), -1)), (split,))


def read_ogb_csv(path: Path) -> Built:
    """Read the graphs, features, labels and the scaffold split of a zip such as OGB's `hiv.zip`."""
    with reading(path, "an OGB file"), zipfile.ZipFile(path) as archive:

        def table(name: str) -> Tensor:
            text = gzip.decompress(archive.read(_name(archive, f"{name}.csv.gz"))).decode()
            return torch.from_numpy(parse_numbers(text))

        atoms, bonds = (table(f"raw/{name}").to(torch.uint8) for name in ("node-feat", "edge-feat"))
        sizes = (table(f"raw/{name}").view(-1) for name in ("num-node-list", "num-edge-list"))
        graphs = pack_bonds(atoms, bonds, table("raw/edge").to(torch.int16), *sizes)
        graphs = replace(graphs, y=table("raw/graph-label").float())
        split = Split(*(table(f"split/scaffold/{part}").view(-1).long() for part in ("train", "valid", "test")))
    return Built(graphs.validate(), (split,))


def read_lrgb(path: Path, num_targets: int) -> Built:
    """Read the graphs of the three parts and their split; only tensors are unpickled (`weights_only`)."""
    with reading(path, "lists of graphs of LRGB, each of four tensors"), zipfile.ZipFile(path) as archive:
        return _in_parts([_part(archive, part, num_targets) for part in PARTS])


def _in_parts(parts: Sequence[Sequence[Data]]) -> Built:
    """Return the graphs for training, validation and test, with edges and features in small integers."""
    graphs = from_pyg([graph for part in parts for graph in part])
    small: dict[str, Any] = {name: graphs.tensors()[name].to(torch.uint8) for name in ("x", "edge_attr")}
    graphs = replace(graphs, edge_index=graphs.edge_index.to(torch.int16), **small)
    return Built(graphs, (consecutive_parts([len(part) for part in parts]),))


def consecutive_parts(sizes: Sequence[int]) -> Split:
    """Return the split into consecutive parts of these sizes for training, validation and test."""
    return Split(*torch.split(torch.arange(sum(sizes)), list(sizes)))


def _name(archive: zipfile.ZipFile, ending: str) -> str:
    """Return the only file of a zip whose path ends with `ending`."""
    members = [name for name in archive.namelist() if f"/{name}".endswith(f"/{ending}")]
    if len(members) != 1:
        raise DataError(f"{archive.filename}: expected one {ending}, found {len(members)}.")
    return members[0]


def _part(archive: zipfile.ZipFile, part: str, num_targets: int) -> list[Data]:
    content = io.BytesIO(archive.read(_name(archive, f"{part}.pt")))
    graphs = []
    for i, (x, edge_attr, edge_index, y) in enumerate(torch.load(content, weights_only=True)):
        if y.numel() != num_targets:
            raise DataError(f"{part}.pt, graph {i}: expected {num_targets} targets, got {y.numel()}.")
        graphs.append(Data(x=x, edge_attr=edge_attr, edge_index=edge_index, y=y.view(1, -1).float()))
    return graphs


def build_zinc(path: Path) -> Built:
    """Read ZINC12k: 28 atom types, 4 bond types, the published split of 10,000 / 1,000 / 1,000."""
    if path.suffix == ".npz":
        fields = ("x", "edge_index", "edge_attr", "num_nodes", "num_edges", "y")
        arrays = load_arrays(path, [f"{part}_{field}" for part in PARTS for field in fields])
        edge_index, nodes, edges, x, edge_attr, y = (
            torch.cat([arrays[f"{part}_{field}"] for part in PARTS], dim=1 if field == "edge_index" else 0)
            for field in ("edge_index", "num_nodes", "num_edges", "x", "edge_attr", "y")
        )
        ptrs = offsets(nodes.long()), offsets(edges.long())
        graphs = PackedGraphs(edge_index.to(torch.int16), *ptrs, x[:, None], edge_attr[:, None], y[:, None]).validate()
        built = Built(graphs, (consecutive_parts([arrays[f"{part}_y"].numel() for part in PARTS]),))
    else:
        with reading(path, "the benchmark's pickles of ZINC"):
            built = _in_parts([_published_zinc(path, part) for part in PARTS])
    for name, kinds in (("x", ATOM_TYPES), ("edge_attr", BOND_TYPES)):
        low, high = torch.aminmax(built.graphs.tensors()[name])
        if low < 0 or high >= kinds:
            raise DataError(f"{path}: expected codes from 0 to {kinds - 1} in {name}, got {low} to {high}.")
    sizes = tuple(len(part) for part in vars(built.splits[0]).values())
    if sizes != ZINC_SIZES:
        raise DataError(f"{path}: expected {ZINC_SIZES} graphs for training, validation and test, got {sizes}.")
    return built


def _published_zinc(path: Path, part: str) -> list[Data]:
    """Read a part of ZINC12k from the pickle of all ZINC and the index of the subset, which may be beside it."""
    index = path.with_name(f"{part}.index")
    if not index.is_file():
        index = get_file(DataFile(index.name, url=f"{ZINC_INDEX}/{index.name}"))
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(_name(archive, f"{part}.pickle")) as file:
            molecules = read_pickle(file)
    else:
        with path.with_name(f"{part}.pickle").open("rb") as file:
            molecules = read_pickle(file)
    return [_zinc_molecule(molecules[int(number)]) for number in index.read_text().strip().split(",")]


def _zinc_molecule(molecule: dict[str, Any]) -> Data:
    """Return a molecule of the benchmark: the matrix of its bonds has the type of each bond twice, and zeros."""
    atoms, bonds, y = (value_of(molecule[name]) for name in ("atom_type", "bond_type", "logP_SA_cycle_normalized"))
    edge_index = bonds.nonzero().t()
    return Data(
        x=atoms.view(-1, 1).long(), edge_index=edge_index, edge_attr=bonds[*edge_index].view(-1, 1).long(),
        y=torch.as_tensor(y).float().view(1, 1),
    )  # fmt: skip
