"""Synthetic graphs: CSL, EXP and CEXP (table 1), and strongly regular graphs (SR), BREC and the graph atlas.

CSL has ten classes of 41-vertex rings (circular skip links), with the published folds. EXP and CEXP have pairs of
graphs that encode formulas, one satisfiable and one not. The others are to be distinguished pair by pair. The feature
of each vertex is 1.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from pathnn.data.datasets.registry import Built, DatasetSpec, load_arrays
from pathnn.data.errors import DataError, reading
from pathnn.data.packed import PackedGraphs, from_networkx, with_ones
from pathnn.data.readers.graph6 import parse_graph6, read_graph6
from pathnn.data.readers.pickles import read_npy, value_of
from pathnn.data.readers.table import read_text
from pathnn.data.sources import DataFile
from pathnn.data.splits import stratified_folds
from pathnn.data.task import Split, target_fields

NUM_NODES = 41
SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
COPIES = 15
CSL = DataFile("CSL.npz", "0c04efa271a922bce0af612b9cf91e826821cfa9bb254d6ffdbb8cd4e43b6e30", exact=True)

RNI = "https://raw.githubusercontent.com/ralphabb/GNN-RNI/main/Data"
EXP = {
    name: (DataFile(f"{name}.txt.xz", sha256), DataFile(text := f"{name}/raw/GRAPHSAT.txt", url=f"{RNI}/{text}"))
    for name, sha256 in (
        ("EXP", "4db461607e535873ec6f09db0e194932d6e3f9b22a157f6d065a7445296463e3"),
        ("CEXP", "221dbe430cd8c8238a1d23b76ceb3c9a1784b801be618eb8b73aa0360c32b21d"),
    )
}

SR_FAMILIES: dict[str, tuple[tuple[int, int, int, int], int]] = {
    "sr16622": ((16, 6, 2, 2), 2),
    "sr251256": ((25, 12, 5, 6), 15),
    "sr261034": ((26, 10, 3, 4), 10),
    "sr281264": ((28, 12, 6, 4), 4),
    "sr291467": ((29, 14, 6, 7), 41),
    "sr351668": ((35, 16, 6, 8), 3854),
    "sr351899": ((35, 18, 9, 9), 227),
    "sr361446": ((36, 14, 4, 6), 180),
    "sr401224": ((40, 12, 2, 4), 28),
}
"""The parameters of each family, and its number of graphs."""

IN_THE_FIGURE = ("sr16622", "sr251256", "sr261034", "sr281264", "sr291467", "sr361446", "sr401224")
SR_ARCHIVE = DataFile("SR_g6.tar.xz", "0dbf9050ef0a9aea54effe55adbdb2da5650e222d98b23f719945b25b5446613", exact=True)
SR_FOLDER = (
    "https://raw.githubusercontent.com/gasmichel/PathNNs_expressive/"
    "88c0de68cc1acfdb48e54bea27c220781e6f82dc/synthetic/data/SR25"
)

BREC = (
    DataFile("BREC_pairs.g6.xz", "c6817bbdcea30883e88dbe7a0cbdbef5523eb13590b4323ba179821d8ca977c7"),
    DataFile("brec_v3.npy", "6975d172d27aedcdf4eb2c747450ede7928c111caeb2689fbc67e6b62fbd5562"),
    DataFile(
        "BREC_data_all.zip",
        url="https://raw.githubusercontent.com/GraphPKU/BREC/d09e8c349a8bbc0882d2932f7b37b2726f576ce9/BREC_data_all.zip",
        url_sha256="3a2c8e7ba068f774b1115422d1bc04749432dde9f19631e6625cba142659530f",
    ),
)  # fmt: skip
BREC_COPIES = 32
"""How often brec_v3.npy has each graph: a block of 64 graphs for each pair, in turn; then 400 blocks of copies."""
BREC_CATEGORIES = {
    "basic": range(60),
    "regular": range(60, 110),
    "strongly regular": range(110, 160),
    "extension": range(160, 260),
    "CFI": range(260, 360),
    "4-vertex condition": range(360, 380),
    "distance regular": range(380, 400),
}
"""The pairs of each category."""


def specs() -> list[DatasetSpec]:
    """Return CSL, EXP, CEXP, the nine SR families, BREC, and the atlas of all graphs of at most seven vertices."""
    csl = {
        "classes": tuple(f"skip {skip}" for skip in SKIPS),
        "citation": "Murphy et al., Relational pooling, ICML 2019; folds: Dwivedi et al. 2020",
        "notes": "the published numbering and the five published folds",
        **target_fields("class", len(SKIPS)),
    }
    made_here = "constructed here, renumbered from seed 0, five stratified folds made here (CSL.npz is not at hand)"
    exp = {
        "pairs": torch.arange(1200).view(-1, 2),
        "classes": ("unsatisfiable", "satisfiable"),
        "licence": "GPL-3.0 (GNN-RNI)",
        "citation": "Abboud et al., The surprising power of GNNs with random node initialization, IJCAI 2021",
        "notes": (
            "graphs 2i and 2i + 1 are a pair; four splits of consecutive blocks; features are ones. "
            "The paper's text says EXP for EXP-Class, the released configuration "
            "reads CEXP; EXP-Iso reads EXP"
        ),
        **target_fields("class", 2),
    }
    brec = {
        "pairs": torch.arange(800).view(-1, 2),
        "licence": "MIT",
        "citation": "Wang and Zhang, An empirical study of realized GNN expressiveness, ICML 2024",
        "notes": "graphs 2i and 2i + 1 are pair i; features are ones; 1-WL distinguishes no pair",
    }
    atlas = {
        "pairs": "all",
        "licence": "BSD-3-Clause (networkx)",
        "citation": "Read and Wilson, An atlas of graphs, 1998",
        "notes": "graph 0 has no vertex; no two graphs are isomorphic; features are ones; not in the paper",
    }
    size = len(SKIPS) * COPIES
    return [
        DatasetSpec("csl", "CSL (circular skip links)", size, ((CSL,),), build_csl, csl, made_here, optional=True),
        *(DatasetSpec(name.lower(), name, 1200, (forms,), build_exp, exp) for name, forms in EXP.items()),
        *map(_sr_spec, SR_FAMILIES),
        DatasetSpec("brec", "BREC", 800, (BREC,), build_brec, brec),
        DatasetSpec("atlas", "Graph atlas", 1253, (), build_atlas, atlas),
    ]


def _sr_spec(name: str) -> DatasetSpec:
    parameters, count = SR_FAMILIES[name]
    files = (SR_ARCHIVE, DataFile(f"{name}.g6", url=f"{SR_FOLDER}/{name}.g6"))
    figure = "in the paper's figure" if name in IN_THE_FIGURE else "not in the paper's figure"
    facts = {
        "pairs": "all",
        "licence": "MIT (PathNNs_expressive)",
        "citation": "Michel et al., Path neural networks, ICML 2023",
        "notes": f"strongly regular graphs, features are ones; {figure}, which prints no numbers",
    }
    return DatasetSpec(name, f"SR{parameters}", count, (files,), partial(build_sr, name), facts)


def build_csl(path: Path | None) -> Built:
    """Read the published graphs, in the published numbering, and the five published folds, or make others."""
    if path is None:
        graphs = construct()
        assert graphs.y is not None
        return Built(graphs, stratified_folds(graphs.y, folds=5), published=False)
    arrays = load_arrays(path, ("g6", "y", "train", "val", "test"))
    graphs, _ = parse_graph6(bytes(arrays["g6"].numpy()).decode().split("\n"))
    folds = zip(arrays["train"].long(), arrays["val"].long(), arrays["test"].long(), strict=True)
    return Built(with_ones(graphs, arrays["y"].long()), tuple(Split(*fold) for fold in folds))


def skip_link_graph(num_nodes: int, skip: int) -> Tensor:
    """Return `edge_index` of a ring with a link from each vertex to the one `skip` further; sorted, both directions."""
    if not 1 < skip < num_nodes - 1:
        raise ValueError(f"skip={skip}: expected 2 to {num_nodes - 2} for a ring of {num_nodes} vertices.")
    vertex = torch.arange(num_nodes)
    one_way = torch.stack([vertex.repeat(2), torch.cat([vertex + 1, vertex + skip]) % num_nodes])
    return torch.unique(torch.cat([one_way, one_way.flip(0)], dim=1), dim=1)


def construct() -> PackedGraphs:
    """Make 15 copies of each class, with vertices renumbered at random from seed 0; `y` is the class."""
    generator = torch.Generator().manual_seed(0)
    edges = []
    for skip in SKIPS:
        graph = skip_link_graph(NUM_NODES, skip)
        for _ in range(COPIES):
            edges.append(torch.unique(torch.randperm(NUM_NODES, generator=generator)[graph], dim=1))
    graphs = PackedGraphs.from_edges(edges, [NUM_NODES] * len(edges))
    return with_ones(graphs, torch.arange(len(SKIPS)).repeat_interleave(COPIES))


def build_exp(path: Path) -> Built:
    """Read EXP or CEXP."""
    graphs = parse_exp(read_text(path))
    return Built(graphs, consecutive_splits(len(graphs)))


def consecutive_splits(num_graphs: int) -> tuple[Split, ...]:
    """Make the four splits of EXP, as in the released implementation; test sets may overlap.

    Split i validates on the i-th block of n / 10 graphs, and tests on the i-th block of 0.15 n graphs of the rest.
    """
    num_val, num_test = num_graphs // 10, num_graphs * 15 // 100
    splits = []
    for i in range(4):
        part = torch.zeros(num_graphs, dtype=torch.long)
        part[i * num_val : (i + 1) * num_val] = 1
        part[(part == 0).nonzero()[i * num_test : (i + 1) * num_test]] = 2
        splits.append(Split.of(part))
    return tuple(splits)


def parse_exp(text: str) -> PackedGraphs:
    """Parse the number of graphs, then per graph `n y` and n lines `tag degree neighbours...`."""
    lines = iter(text.splitlines())
    try:
        graphs = [_graph(lines) for _ in range(int(next(lines)))]
    except (ValueError, StopIteration, IndexError, RuntimeError) as error:
        raise DataError(
            "the file ends early or is not an EXP file: expected the number of graphs, then per graph "
            f"`n y` and n lines `tag degree neighbours...` ({error!r})."
        ) from error
    edges, sizes, labels = zip(*graphs, strict=True)
    return with_ones(PackedGraphs.from_edges(edges, sizes), torch.tensor(labels))


def _graph(lines: Iterator[str]) -> tuple[torch.Tensor, int, int]:
    size, label = (int(word) for word in next(lines).split())
    pairs = set()
    for u in range(size):
        _, degree, *neighbours = (int(word) for word in next(lines).split())
        if len(neighbours) != degree:
            raise ValueError(f"a vertex of degree {degree} lists {len(neighbours)} neighbours")
        pairs |= {(u, v) for v in neighbours} | {(v, u) for v in neighbours}
    return torch.tensor(sorted(pairs)).view(-1, 2).t(), size, label


def build_sr(name: str, path: Path) -> Built:
    """Read a family of strongly regular graphs, from its graph6 file or from the archive of all."""
    if path.suffix == ".g6":
        text = read_text(path)
    else:
        with reading(path, f"an archive with {name}.g6"), tarfile.open(path) as archive:
            file = archive.extractfile(f"{name}.g6")
            text = file.read().decode() if file is not None else ""
    graphs, _ = parse_graph6(text.splitlines(), source=str(path))
    return Built(with_ones(graphs))


def build_brec(path: Path) -> Built:
    """Read BREC from its 800 graphs, or the first copies of its pairs from the benchmark's file."""
    if path.suffix not in (".npy", ".zip"):
        return Built(with_ones(read_graph6(path)[0]))
    with reading(path, "an .npy file of graph6 lines"):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open("brec_v3.npy") as file:
                found = read_npy(file)
        else:
            with path.open("rb") as file:
                found = read_npy(file)
        block = 2 * BREC_COPIES
        if len(found) != 800 * block:
            raise DataError(f"{path}: expected {800 * block} graphs, got {len(found)}.")
        lines = [value_of(found[block * pair + i]).decode() for pair in range(400) for i in (0, 1)]
    return Built(with_ones(parse_graph6(lines, source=str(path))[0]))


def build_atlas() -> Built:
    """Take the graph atlas from networkx."""
    from networkx.generators.atlas import graph_atlas_g

    return Built(with_ones(from_networkx(graph_atlas_g())))
