"""Datasets by name: the published facts, features, splits; a batch of each equals PyG's."""

from __future__ import annotations

import shutil
from importlib import import_module
from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.utils import to_networkx

from pathnn.data import Categorical, Continuous, DatasetNotFoundError, UnknownDatasetError, find_data, load_dataset
from pathnn.data.datasets import registry
from pathnn.data.datasets.registry import FAMILIES, built_path, dataset_names, get_spec
from pathnn.data.datasets.synthetic import BREC_CATEGORIES, SKIPS, SR_FAMILIES, construct, skip_link_graph
from pathnn.data.errors import DataError

NAMES = [name for name in dataset_names() if name != "peptides-struct"]

# name: graphs, mean vertices, mean undirected edges, targets per class (or None)
FACTS = {
    "dd": (1178, 284.32, 715.66, [691, 487]),
    "proteins": (1113, 39.06, 72.82, [663, 450]),
    "nci1": (4110, 29.87, 32.30, [2053, 2057]),
    "enzymes": (600, 32.63, 62.14, [100] * 6),
    "imdb-binary": (1000, 19.77, 96.53, [500, 500]),
    "imdb-multi": (1500, 13.00, 65.94, [500] * 3),
    "zinc": (12000, 23.16, 24.92, None),
    "molhiv": (41127, 25.51, 27.47, None),
    "peptides-func": (15535, 150.94, 153.65, None),
    "csl": (150, 41.0, 82.0, [15] * 10),
    "exp": (1200, 48.70, 60.44, [600, 600]),
    "cexp": (1200, 55.78, 69.78, [600, 600]),
    "esol": (1128, 13.29, 13.68, None),
}


@pytest.mark.parametrize("name", FACTS)
def test_the_published_facts_hold(name: str, mirror: Path) -> None:
    count, nodes, edges, classes = FACTS[name]
    task = load_dataset(name).validate()
    graphs = task.graphs
    assert len(graphs) == count
    assert graphs.num_nodes / count == pytest.approx(nodes, abs=0.006)
    assert graphs.num_edges / count / 2 == pytest.approx(edges, abs=0.006)
    if classes is not None:
        assert torch.bincount(graphs.y).tolist() == classes
        assert task.out_channels == len(classes)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_every_dataset_equals_pygs(name: str, mirror: Path) -> None:
    if name == "esol":
        pytest.importorskip("rdkit")
    graphs = load_dataset(name).graphs
    index = torch.randint(len(graphs), (12,), generator=torch.Generator().manual_seed(0))
    ours, theirs = graphs.select(index), Batch.from_data_list([graphs[int(i)] for i in index])
    for field in ("x", "edge_index", "edge_attr", "batch", "ptr", "y"):
        mine = getattr(ours, field)
        assert (mine is None) == (field not in theirs)
        assert mine is None or (mine.dtype == theirs[field].dtype and torch.equal(mine, theirs[field])), field


@pytest.mark.parametrize("name", NAMES)
def test_every_edge_has_its_reverse_with_the_same_feature(name: str, mirror: Path) -> None:
    graphs = load_dataset(name).graphs
    edges = graphs.union()
    forward = edges[0] * graphs.num_nodes + edges[1]
    backward = edges[1] * graphs.num_nodes + edges[0]
    order, reverse = forward.argsort(), backward.argsort()
    assert torch.equal(forward[order], backward[reverse])
    assert bool((forward[order].diff() > 0).all()), "an edge is listed twice"
    assert bool((edges[0] != edges[1]).all()), "a loop"
    if graphs.edge_attr is not None:
        assert torch.equal(graphs.edge_attr[order], graphs.edge_attr[reverse])


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("dd", Continuous(82)),
        ("proteins", Continuous(3)),
        ("nci1", Continuous(37)),
        ("enzymes", Continuous(3 + 18)),
        ("imdb-binary", Continuous(65)),
        ("imdb-multi", Continuous(59)),
        ("zinc", Categorical((28,))),
        ("molhiv", Categorical((119, 5, 12, 12, 10, 6, 6, 2, 2))),
        ("csl", Continuous(1)),
    ],
)
def test_vertex_features_are_the_papers(name: str, features: object, mirror: Path) -> None:
    task = load_dataset(name)
    assert task.node_features == features
    if isinstance(features, Continuous) and features.channels > 1:
        one_hot = task.graphs.x[:, : features.channels - (18 if name == "enzymes" else 0)].float()
        assert torch.equal(one_hot.sum(dim=1), torch.ones(task.graphs.num_nodes))
        assert bool((one_hot.sum(dim=0) > 0).all()), "a column that never occurs"


def test_imdb_features_are_degrees(mirror: Path) -> None:
    graphs = load_dataset("imdb-binary").graphs
    degree = torch.bincount(graphs.union()[0], minlength=graphs.num_nodes)
    code = graphs.x.float().argmax(dim=1)
    values = torch.unique(degree)
    assert torch.equal(values[code], degree)


@pytest.mark.parametrize("name", ["dd", "proteins", "nci1", "enzymes", "imdb-binary", "imdb-multi"])
def test_each_graph_is_tested_in_one_of_the_ten_folds(name: str, mirror: Path) -> None:
    task = load_dataset(name)
    assert len(task.splits) == 10
    assert torch.cat([split.test for split in task.splits]).sort().values.tolist() == list(range(len(task.graphs)))
    for split in task.splits:
        parts = torch.cat([split.train, split.val, split.test])
        assert parts.sort().values.tolist() == list(range(len(task.graphs)))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("zinc", (10000, 1000, 1000)),
        ("molhiv", (32901, 4113, 4113)),
        ("peptides-func", (10873, 2331, 2331)),
        ("csl", (90, 30, 30)),
        ("cexp", (900, 120, 180)),
    ],
)
def test_the_published_splits(name: str, sizes: tuple[int, int, int], mirror: Path) -> None:
    task = load_dataset(name)
    split = task.splits[0]
    assert (split.train.numel(), split.val.numel(), split.test.numel()) == sizes
    assert torch.cat([split.train, split.val, split.test]).sort().values.tolist() == list(range(len(task.graphs)))


def test_the_functions_of_peptides_stand_at_their_columns(mirror: Path) -> None:
    """What acts on bacteria, fungi, viruses or parasites acts on microbes, what lowers blood pressure is short."""
    task = load_dataset("peptides-func")
    assert task.graphs.y is not None
    atoms = task.graphs.node_ptr.diff()
    has = {name: task.graphs.y[:, i] == 1 for i, name in enumerate(task.classes)}
    within = {name for name in has if bool(has["antimicrobial"][has[name]].all())}
    assert within == {"antibacterial", "antifungal", "antiviral", "antiparasitic", "antimicrobial"}
    assert min(has, key=lambda name: atoms[has[name]].float().mean().item()) == "antihypertensive"


@pytest.mark.parametrize("skip", SKIPS)
def test_csl_is_isomorphic_to_the_published_graphs(skip: int, mirror: Path) -> None:
    published, ours = load_dataset("csl"), construct()
    index = SKIPS.index(skip) * 15
    assert int(published.graphs.y[index]) == int(ours.y[index]) == SKIPS.index(skip)
    theirs = [to_networkx(published.graphs[i], to_undirected=True) for i in range(index, index + 15)]
    mine = to_networkx(ours[index + 7], to_undirected=True)
    assert all(nx.is_isomorphic(mine, graph) for graph in theirs)


def test_the_classes_of_csl_are_different_graphs() -> None:
    spectra = []
    for skip in SKIPS:
        adjacency = torch.zeros(41, 41, dtype=torch.float64)
        adjacency[tuple(skip_link_graph(41, skip))] = 1
        spectra.append(torch.linalg.eigvalsh(adjacency))
    assert not any(torch.allclose(a, b, atol=1e-6) for a, b in combinations(spectra, 2))


def test_csl_without_its_file_is_constructed(own_cache: Path) -> None:
    task = load_dataset("csl").validate()
    assert "constructed here" in task.notes
    assert len(task.splits) == 5
    for split in task.splits:
        assert torch.bincount(task.graphs.y[split.test]).tolist() == [3] * 10
    with pytest.raises(ValueError, match="skip=40"):
        skip_link_graph(41, 40)


@pytest.mark.parametrize("name", SR_FAMILIES)
def test_strongly_regular_graphs_are_what_they_say(name: str, mirror: Path) -> None:
    (vertices, degree, common, other), count = SR_FAMILIES[name]
    task = load_dataset(name)
    assert len(task.graphs) == count
    for i in (0, count - 1):
        adjacency = torch.zeros(vertices, vertices, dtype=torch.long)
        adjacency[tuple(task.graphs[i].edge_index)] = 1
        eye = torch.eye(vertices, dtype=torch.long)
        expected = degree * eye + common * adjacency + other * (1 - eye - adjacency)
        assert torch.equal(adjacency @ adjacency, expected)
    assert len(task.pair_index()) == count * (count - 1) // 2


def test_brec_has_400_pairs_in_seven_categories(mirror: Path) -> None:
    task = load_dataset("brec")
    assert task.pair_index().shape == (400, 2)
    assert [i for part in BREC_CATEGORIES.values() for i in part] == list(range(400))
    sizes = task.graphs.node_ptr.diff()[task.pair_index()]
    assert torch.equal(sizes[:, 0], sizes[:, 1])


def test_exp_pairs_have_one_graph_of_each_class(mirror: Path) -> None:
    task = load_dataset("exp")
    assert task.graphs.y[task.pair_index()].sum(dim=1).tolist() == [1] * 600


def test_the_atlas_needs_no_file(own_cache: Path) -> None:
    task = load_dataset("atlas")
    assert len(task.graphs) == 1253
    assert task.graphs.node_ptr.diff().max() == 7


def test_a_name_needs_no_dataset_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "import_module", lambda name: pytest.fail(f"{name} was imported"))
    assert find_data("ZINC").name == "zinc"
    assert dataset_names()[-1] == "esol"


def test_every_name_is_in_the_table_of_its_module() -> None:
    for family, names in FAMILIES.items():
        module = import_module(f"pathnn.data.datasets.{family}")
        assert tuple(spec.name for spec in module.specs()) == names


@pytest.mark.parametrize("name", ["zinc", "molhiv", "peptides-func", "enzymes"])
def test_loss_and_metric_take_what_a_model_gives(name: str, mirror: Path) -> None:
    task = load_dataset(name)
    y = task.graphs.select(task.splits[0].train[:200]).y
    out = torch.randn(200, task.out_channels, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert task.loss is not None
    assert task.metric is not None
    task.loss()(out, y).backward()
    metric = task.metric()
    metric.update(*task.metric_inputs(out.detach(), y))
    assert torch.isfinite(metric.compute())


def test_an_unknown_name_suggests_the_closest() -> None:
    with pytest.raises(UnknownDatasetError, match="did you mean peptides-func or"):
        load_dataset("peptide-func")
    with pytest.raises(UnknownDatasetError, match="known are dd"):
        load_dataset("qqqqqq")


def test_a_dataset_that_is_not_at_hand_says_so(own_cache: Path) -> None:
    for name in ("peptides-struct", "zinc", "dd"):
        with pytest.raises(DatasetNotFoundError, match="PATHNN_MIRROR"):
            load_dataset(name)


def test_a_built_dataset_does_not_need_its_files(
    mirror: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load_dataset("proteins").graphs
    monkeypatch.delenv("PATHNN_MIRROR")
    after = load_dataset("proteins").graphs
    assert torch.equal(before.edge_index, after.edge_index)
    path = built_path(get_spec("proteins"))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DatasetNotFoundError):
        load_dataset("proteins")


def test_a_changed_source_file_is_built_anew(
    mirror: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_dataset("exp")
    shutil.copy(mirror / "synthetic" / "CEXP.txt.xz", tmp_path / "EXP.txt.xz")
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path))
    assert load_dataset("exp").graphs.num_nodes == 66938, "the nodes of CEXP"


def test_a_file_with_other_graphs_is_refused(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "BREC_pairs.g6.xz").write_bytes(__import__("lzma").compress(b"Bw\nBw\n"))
    monkeypatch.setenv("PATHNN_MIRROR", str(tmp_path))
    with pytest.raises(DataError, match="2 graphs; expected 800"):
        load_dataset("brec")
