"""`AddPaths`: paths through PyG's batches, loaders and datasets."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops

from pathnn.paths import PathTrie, extract_paths
from pathnn.transforms import AddPaths

COLLECTIONS = ("sp", "sp+", "ap")


def test_edges_may_be_added_for_another_layer():
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = Data(edge_index=edge_index, num_nodes=3, edge_attr=torch.rand(4, 2))
    more = AddSelfLoops("edge_attr")(AddPaths("ap", 2)(data))
    assert PathTrie.from_data(more).num_edges == 4
    fewer = data.clone()
    fewer = AddPaths("ap", 2)(fewer)
    fewer.edge_index, fewer.edge_attr = edge_index[:, :2], fewer.edge_attr[:2]
    with pytest.raises(ValueError, match="the graph has 2 edges, but the trie was extracted from 4"):
        PathTrie.from_data(fewer)


def test_its_repr_has_every_option_that_is_not_the_default():
    """PyG compares it to tell whether processed data is out of date."""
    assert repr(AddPaths("ap", 3)) == "AddPaths(collection='ap', k=3)"
    sample = AddPaths("ap", 3, max_paths_per_source=2, seed=4, distances=False)
    assert repr(sample) == "AddPaths(collection='ap', k=3, distances=False, max_paths_per_source=2, seed=4)"
    assert repr(AddPaths("sp", 2, extend=True, max_paths=None)).endswith("k=2, extend=True, max_paths=None)")


def test_edges_that_were_sorted_since_are_noticed():
    edge_index = torch.tensor([[2, 1, 1, 0, 0, 2], [1, 2, 0, 1, 2, 0]])
    data = AddPaths("ap", 2)(Data(edge_index=edge_index, num_nodes=3, edge_attr=torch.arange(6.0).view(-1, 1)))
    for batch in (data, Batch.from_data_list([data, data])):
        PathTrie.from_data(batch)
        with pytest.raises(ValueError, match="edges were sorted or changed since"):
            PathTrie.from_data(batch.coalesce())
    del data.edge_attr
    PathTrie.from_data(data.coalesce())  # whoever reads no features of edges does not mind
    with pytest.raises(ValueError, match="the graph has 2 vertices, but the trie was extracted from 3"):
        PathTrie.from_data(data.subgraph(torch.tensor([0, 1])))


def test_edges_of_one_vertex_that_changed_places_are_noticed():
    edge_index = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])
    data = AddPaths("ap", 2)(Data(edge_index=edge_index, num_nodes=3, edge_attr=torch.rand(4, 1)))
    data.edge_index = edge_index[:, [1, 0, 2, 3]]
    with pytest.raises(ValueError, match="from vertex 0 to 1 as row 0 of edge_index, where now the edge from 0 to 2"):
        PathTrie.from_data(data)


def molecule(seed: int, kind: type[Data] = Data) -> Data:
    """A random graph of 0 to 8 vertices whose attributes have names that PyG treats specially."""
    generator = torch.Generator().manual_seed(seed)
    n = seed % 9
    pairs = torch.randint(0, max(n, 1), (2, n), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    edge_index = edge_index[:, torch.randperm(edge_index.size(1), generator=generator)]
    return kind(
        x=torch.rand(n, 2, generator=generator),
        edge_index=edge_index,
        edge_attr=torch.rand(n, n, 3, generator=generator)[edge_index[0], edge_index[1]],
        y=torch.rand(1, generator=generator),
        num_nodes=n,
    )


DATA = [molecule(seed) for seed in range(20)]


def expected(data_list: list[Data], **options) -> PathTrie:
    return PathTrie.cat([extract_paths(data.edge_index, data.num_nodes, **options) for data in data_list])


@pytest.mark.parametrize("extend", [False, True])
@pytest.mark.parametrize("distances", [False, True])
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_batch_carries_the_paths_of_its_graphs(collection, distances, extend):
    options = {"distances": distances, "extend": extend}
    transform = AddPaths(collection, 3, **options)
    batch = Batch.from_data_list([transform(data) for data in DATA])
    trie = PathTrie.from_data(batch).validate()
    assert trie.equal(expected(DATA, collection=collection, k=3, **options))
    direct = extract_paths(batch.edge_index, batch.num_nodes, collection=collection, k=3, batch=batch.batch, **options)
    assert trie.equal(direct)
    assert trie.num_edges == batch.num_edges
    sizes = trie.length(1).levels[1]
    if not extend:
        step = torch.stack([trie.length(1).levels[0].vertex[sizes.parent], sizes.vertex])
        assert torch.equal(batch.edge_index[:, sizes.edge], step.long())


def test_one_graph():
    data = AddPaths("ap", 3)(DATA[7])
    assert PathTrie.from_data(data).equal(expected(DATA[7:8], collection="ap", k=3))
    assert "paths" not in DATA[7]  # the given data is left alone


def test_a_sample_stays_one():
    transform = AddPaths("ap", 3, max_paths_per_source=2, seed=4)
    trie = PathTrie.from_data(Batch.from_data_list([transform(data) for data in DATA]))
    assert trie.sampled == 2
    assert trie.equal(expected(DATA, collection="ap", k=3, max_paths_per_source=2, seed=4))


def test_graphs_without_vertices_or_edges():
    lonely = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=1)
    nothing = Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=0)
    graphs = [lonely, nothing, DATA[6], lonely]
    bare = [Data(edge_index=data.edge_index, num_nodes=data.num_nodes) for data in graphs]
    batch = Batch.from_data_list([AddPaths("ap", 2)(data) for data in bare])
    assert PathTrie.from_data(batch).equal(expected(bare, collection="ap", k=2))


def test_get_a_graph_back_from_a_batch():
    batch = Batch.from_data_list([AddPaths("ap", 3)(data) for data in DATA])
    for data, again in zip(DATA, batch.to_data_list(), strict=True):
        assert PathTrie.from_data(again).equal(expected([data], collection="ap", k=3))
    some = Batch.from_data_list(batch[torch.tensor([8, 3, 8])])
    assert PathTrie.from_data(some).equal(expected([DATA[i] for i in (8, 3, 8)], collection="ap", k=3))


def test_moves_and_copies_with_its_batch():
    batch = Batch.from_data_list([AddPaths("sp+", 3)(data) for data in DATA])
    trie = PathTrie.from_data(batch)
    for other in (batch.to("cpu"), copy.copy(batch), copy.deepcopy(batch), batch.clone(), batch.contiguous()):
        assert PathTrie.from_data(other).equal(trie)


class Transformed(torch.utils.data.Dataset):
    """Applies a transform when a graph is read: in the worker process, where there is one."""

    def __init__(self, graphs, transform):
        self.graphs, self.transform = graphs, transform

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, i):
        return self.transform(self.graphs[i])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # threads of torch, and a fork
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_loader(workers):
    loader = DataLoader(Transformed(DATA, AddPaths("ap", 3)), batch_size=6, num_workers=workers)
    batches = list(loader)
    assert [batch.num_graphs for batch in batches] == [6, 6, 6, 2]
    for i, batch in enumerate(batches):
        assert PathTrie.from_data(batch).equal(expected(DATA[6 * i : 6 * i + 6], collection="ap", k=3))


class InMemory(InMemoryDataset):
    def __init__(self, graphs, transform=None):
        super().__init__(transform=transform)
        self.data, self.slices = self.collate(graphs)


@pytest.mark.filterwarnings("ignore:It is not recommended to directly access")
def test_in_memory_dataset():
    dataset = InMemory([AddPaths("ap", 3)(data) for data in DATA])
    for data, stored in zip(DATA, dataset, strict=True):
        assert PathTrie.from_data(stored).equal(expected([data], collection="ap", k=3))
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
    batch = next(iter(DataLoader(dataset[order], batch_size=20)))
    assert PathTrie.from_data(batch).equal(expected([DATA[i] for i in order.tolist()], collection="ap", k=3))


def test_saved_and_loaded(tmp_path):
    batch = Batch.from_data_list([AddPaths("ap", 2)(data) for data in DATA])
    torch.save(batch.paths, tmp_path / "paths.pt")
    batch.paths = torch.load(tmp_path / "paths.pt", weights_only=True)
    assert PathTrie.from_data(batch).equal(expected(DATA, collection="ap", k=2))


class OwnNames(Data):
    """Has its own ideas about attributes whose names it knows."""

    def __inc__(self, key, value, *args, **kwargs):
        return self.num_nodes if key in {"vertex", "edge", "parent", "size"} else super().__inc__(key, value, *args)

    def __cat_dim__(self, key, value, *args, **kwargs):
        return 1 if key in {"size", "facts"} else super().__cat_dim__(key, value, *args)


class Molecule(Data):
    """Counts its own index on, as PyG's documentation shows."""

    def __inc__(self, key, value, *args, **kwargs):
        return self.num_edges if key == "ring_index" else super().__inc__(key, value, *args)


@pytest.mark.parametrize("kind", [Molecule, OwnNames])
def test_subclasses_that_increment_their_own_attributes(kind):
    graphs = [molecule(seed, kind) for seed in (5, 6, 7)]
    for data in graphs:
        data.ring_index = torch.zeros(1, dtype=torch.int64)
    batch = Batch.from_data_list([AddPaths("ap", 2)(data) for data in graphs])
    assert PathTrie.from_data(batch).validate().equal(expected(graphs, collection="ap", k=2))


@pytest.mark.parametrize("other", [{"k": 3}, {"collection": "sp"}, {"extend": True}, {"max_paths_per_source": 1}])
def test_a_batch_of_different_paths_is_refused(other):
    options = {"collection": "ap", "k": 2, "distances": False}
    first, second = AddPaths(**options)(DATA[7]), AddPaths(**{**options, **other})(DATA[8])
    ((name, value),) = other.items()
    for graphs, differs in (
        ([first, second], f"graph 1 has {name}={value!r} instead of .*graph 0"),
        ([second, first], f"graph 1 has {name}=.* instead of {value!r} .*graph 0"),
    ):
        batch = next(iter(DataLoader(graphs, batch_size=2)))
        with pytest.raises(ValueError, match=f"{differs}.*Apply the same AddPaths"):
            PathTrie.from_data(batch)
        assert PathTrie.from_data(batch[1]).equal(PathTrie.from_data(graphs[1]))


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_a_batch_with_and_without_distances_is_refused(order):
    graphs = [AddPaths("ap", 2, distances=distances)(DATA[7]) for distances in order]
    with pytest.raises(ValueError, match=r"distances|options"):
        PathTrie.from_data(Batch.from_data_list(graphs))


@pytest.mark.parametrize(
    ("data", "came", "way_out"),
    [
        (HeteroData(), "HeteroData", "to_homogeneous"),
        (Data(x=torch.ones(3, 1)), "without edge_index", "num_edges"),
        (torch.ones(3), "Tensor", "Data"),
        (Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2), "0 -> 1", "to_undirected"),
    ],
)
def test_what_has_no_paths(data, came, way_out):
    with pytest.raises(ValueError, match=f"(?s){came}.*{way_out}"):
        AddPaths("ap", 2)(data)


@pytest.mark.parametrize("data", [Data(num_nodes=2), Data(num_nodes=2, paths=3), Data(num_nodes=2, paths={"a": 1})])
def test_data_that_no_paths_were_added_to(data):
    with pytest.raises(ValueError, match="AddPaths"):
        PathTrie.from_data(data)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"collection": "all", "k": 2}, "collection"),
        ({"collection": "ap", "k": 0}, "k=0"),
        ({"collection": "ap", "k": 256}, "k=256"),
        ({"collection": "ap", "k": 2, "max_paths": 0}, "max_paths"),
        ({"collection": "ap", "k": 2, "max_paths_per_source": -1}, "max_paths_per_source"),
        ({"collection": "ap", "k": 2, "extend": True, "max_paths_per_source": 1}, "extend"),
    ],
)
def test_bad_options_when_it_is_made(options, name):
    with pytest.raises(ValueError, match=name):
        AddPaths(**options)


def test_repr():
    assert repr(AddPaths("sp+", 4)) == "AddPaths(collection='sp+', k=4)"


def test_edges_that_were_left_out_or_renumbered_since_are_noticed():
    ring = torch.stack([torch.arange(10), (torch.arange(10) + 1) % 10])
    edges = torch.cat([ring, ring.flip(0)], dim=1)
    data = AddPaths("ap", k=3)(Data(x=torch.rand(10, 2), edge_index=edges))
    data.edge_index = edges.flip(1)
    PathTrie.from_data(data)  # in another order they are the same
    shuffled = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    for changed in (edges[:, :0], edges[:, 2:], shuffled[edges]):
        data.edge_index = changed
        with pytest.raises(ValueError, match="edges that the graph does not have"):
            PathTrie.from_data(data)


def test_saved_paths_load_without_arbitrary_code(tmp_path):
    """In a process that imports nothing but pathnn, which registers what is safe."""
    data = AddPaths("ap", 2)(molecule(8))
    torch.save({"data": data, "list": [data, data], "trie": PathTrie.from_data(data)}, tmp_path / "saved.pt")
    code = f"""
from pathnn import AddPaths, PathTrie
import torch
saved = torch.load({str(tmp_path / "saved.pt")!r}, weights_only=True)
assert PathTrie.from_data(saved["data"]).equal(saved["trie"].validate())
assert PathTrie.from_data(saved["list"][1]).equal(saved["trie"])
print(saved["trie"])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == repr(PathTrie.from_data(data))


def test_parallel_edges_with_different_features_are_noticed():
    edge_index = torch.tensor([[0, 1, 1, 2, 0, 2, 2], [1, 0, 2, 1, 1, 2, 2]])
    same = torch.tensor([1.0, 2.0, 3.0, 4.0, 1.0, 5.0, 6.0])  # self-loops are in no path
    AddPaths("ap", 2)(Data(edge_index=edge_index, num_nodes=3, edge_attr=same))
    for attr in (same + torch.tensor([0.0] * 4 + [1.0] + [0.0] * 2), torch.rand(7, 2)):
        with pytest.warns(UserWarning, match=r"the edge 0 -> 1 has several rows .*coalesce"):
            AddPaths("ap", 2)(Data(edge_index=edge_index, num_nodes=3, edge_attr=attr))
