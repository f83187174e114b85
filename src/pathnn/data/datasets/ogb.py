"""Molecules with OGB's features: ogbg-molhiv (table 4), Peptides-func and Peptides-struct (table 3)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pathnn.data.datasets.base import Built, DatasetSpec, load_arrays, needed
from pathnn.data.datasets.lrgb import read_lrgb
from pathnn.data.datasets.ogb_csv import both_directions, read_ogb_csv
from pathnn.data.metrics import mean_over_targets, tied_average_precision
from pathnn.data.packed import PackedGraphs, offsets
from pathnn.data.readers.atom_features import FEATURES
from pathnn.data.sources import DataFile
from pathnn.data.targets import binary, multilabel, regression
from pathnn.data.task import Split, Task

PEPTIDES_LICENCE = "CC BY-NC 4.0 (non-commercial)"
LRGB = "Dwivedi et al., Long range graph benchmark, NeurIPS 2022"

PEPTIDE_FUNCTIONS = (
    "antifungal", "cell_cell_communication", "anticancer", "drug_delivery_vehicle", "antimicrobial", "antiviral",
    "antihypertensive", "antibacterial", "antiparasitic", "toxic",
)  # fmt: skip
"""The labels of Peptides-func, in the order of its columns."""

MOLHIV = (
    DataFile(
        "ogbg_molhiv_graphs.npz",
        "9d1cce73c2cf5661b546d7749dc60e04e59e87c1fa8781a5cf5a91235ebd3bed",
        exact=True,
    ),
    DataFile("hiv.zip", url="https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/hiv.zip"),
)
PEPTIDES_FUNC = (
    DataFile(
        "peptides_func_graphs.npz",
        "95aa41559b489a395388e5720d6e6df8945e4ee95f01ece6aba34a368a6a759c",
        exact=True,
    ),
    DataFile("peptidesfunc.zip", url="https://www.dropbox.com/s/ycsq37q8sxs1ou8/peptidesfunc.zip?dl=1"),
)
PEPTIDES_STRUCT = (
    DataFile("peptidesstruct.zip", url="https://www.dropbox.com/s/zgv4z8fcpmknhs8/peptidesstruct.zip?dl=1"),
)


def _read_npz(path: Path, val: str) -> Built:
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


def _build(val: str, targets: int, paths: tuple[Path | None, ...]) -> Built:
    """From our own packed file, or from the public zip: OGB's CSV files, or LRGB's tensors."""
    path = needed(paths[0])
    if path.suffix == ".npz":
        return _read_npz(path, val)
    return read_ogb_csv(path) if path.name == MOLHIV[1].name else read_lrgb(path, targets)


def _molhiv(built: Built) -> Task:
    return Task(
        name="molhiv",
        title="ogbg-molhiv",
        graphs=built.graphs,
        node_features=FEATURES["ogb"][0],
        edge_features=FEATURES["ogb"][1],
        splits=built.splits,
        paper={("sp", 2): (78.62, 1.30), ("sp+", 2): (79.17, 1.09), ("ap", 2): (78.84, 1.46)},
        licence="MIT",
        citation="Hu et al., Open graph benchmark, NeurIPS 2020",
        notes="the official scaffold split; OGB's atom and bond features",
        **binary(),
    )


def _peptides_func(built: Built) -> Task:
    return Task(
        name="peptides-func",
        title="Peptides-func (LRGB)",
        graphs=built.graphs,
        node_features=FEATURES["ogb"][0],
        edge_features=FEATURES["ogb"][1],
        splits=built.splits,
        paper={("sp", 8): (68.16, 0.26), ("sp+", 8): (67.84, 0.52), ("ap", 7): (68.07, 0.72)},
        licence=PEPTIDES_LICENCE,
        citation=LRGB,
        notes="the published split; OGB's atom and bond features",
        classes=PEPTIDE_FUNCTIONS,
        **multilabel(len(PEPTIDE_FUNCTIONS))
        | {"score": tied_average_precision, "metric": mean_over_targets(tied_average_precision)},
    )


def _peptides_struct(built: Built) -> Task:
    return Task(
        name="peptides-struct",
        title="Peptides-struct (LRGB)",
        graphs=built.graphs,
        node_features=FEATURES["ogb"][0],
        edge_features=FEATURES["ogb"][1],
        splits=built.splits,
        paper={("sp", 4): (0.2545, 0.0032), ("sp+", 4): (0.2540, 0.0046), ("ap", 4): (0.2569, 0.0030)},
        licence=PEPTIDES_LICENCE,
        citation=LRGB,
        notes="the published file of tensors, read without unpickling anything else; targets as published",
        **regression(11),
    )


def specs() -> list[DatasetSpec]:
    """ogbg-molhiv, Peptides-func and Peptides-struct."""
    return [
        DatasetSpec("molhiv", "ogbg-molhiv", 41127, (MOLHIV,), partial(_build, "valid", 1), _molhiv),
        DatasetSpec(
            "peptides-func",
            "Peptides-func (LRGB)",
            15535,
            (PEPTIDES_FUNC,),
            partial(_build, "val", len(PEPTIDE_FUNCTIONS)),
            _peptides_func,
        ),
        DatasetSpec(
            "peptides-struct",
            "Peptides-struct (LRGB)",
            15535,
            (PEPTIDES_STRUCT,),
            partial(_build, "val", 11),
            _peptides_struct,
        ),
    ]
