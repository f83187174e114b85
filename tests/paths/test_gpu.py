"""A CUDA input gives the same trie, entry for entry, on its device. Needs neither hypothesis nor networkx's atlas."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch_geometric.data import Batch, Data

from path_checks import clique, cycle, layered, line, random_graph, union
from pathnn.paths import (
    PathExplosionError,
    PathTrie,
    RaggedTries,
    count_paths,
    extract_paths,
    list_paths,
)
from pathnn.transforms import AddPaths

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

COLLECTIONS = ("sp", "sp+", "ap")


def nothing(n):
    return torch.empty(2, 0, dtype=torch.int64), n


PARTS = [
    *(nothing(2), clique(5), cycle(8), line(7), layered(3, 4), nothing(0), clique(4)),
    *map(random_graph, range(12)),
    nothing(3),
]
WHOLE = union(PARTS)
GRAPHS = {
    "union": WHOLE.graph,
    "dense": random_graph(50, n=14, edges=60),
    "sparse": random_graph(51, n=3000, edges=3500),
    "no vertices": nothing(0),
    "one vertex": nothing(1),
    "no edges": nothing(5),
    "line": line(4),
}


def both(graph, **options):
    """The trie of a CPU and the trie of a GPU."""
    edge_index, n = graph
    there = extract_paths(edge_index.cuda(), n, **options)
    assert there.device.type == "cuda"
    return extract_paths(edge_index, n, **options), there


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_same_trie_for_all_options(name, collection):
    for k, distances, extend in product(
        (1, 2, 4, 6 if name in ("line", "sparse") else 5), (None, False, True), (False, True)
    ):
        here, there = both(GRAPHS[name], collection=collection, k=k, distances=distances, extend=extend)
        assert here.equal(there.to("cpu")), (k, distances, extend)
        assert (there.num_edges, there.extended, there.sampled) == (here.num_edges, extend, None)
        there.validate()


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_same_paths_and_counts(name, collection):
    edge_index, n = GRAPHS[name]
    here = list_paths(edge_index, n, collection=collection, k=4)
    there = list_paths(edge_index.cuda(), n, collection=collection, k=4)
    assert all(a.dtype == b.dtype and torch.equal(a, b.cpu()) for a, b in zip(here, there, strict=True))
    counts = count_paths(edge_index.cuda(), n, collection=collection, k=4)
    assert counts.dtype == torch.int64
    assert torch.equal(counts.cpu(), count_paths(edge_index, n, collection=collection, k=4))


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_same_counts_per_graph(collection):
    counts = count_paths(WHOLE.edge_index.cuda(), WHOLE.num_nodes, collection=collection, k=4, batch=WHOLE.batch.cuda())
    expected = count_paths(*WHOLE.graph, collection=collection, k=4, batch=WHOLE.batch)
    assert counts.is_cuda
    assert torch.equal(counts.cpu(), expected)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_same_sample(collection):
    for seed in (0, 1, 2**40):
        here, there = both(WHOLE.graph, collection=collection, k=3, max_paths_per_source=3, seed=seed)
        assert here.equal(there.to("cpu"))
        assert there.sampled == 3


@pytest.mark.parametrize("extend", [False, True])
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_batches_and_selections(collection, extend):
    options = {"collection": collection, "k": 3, "distances": True, "extend": extend}
    here = extract_paths(*WHOLE.graph, **options)
    tries = [extract_paths(e.cuda(), n, **options) for e, n in PARTS]
    assert here.equal(PathTrie.cat(tries).to("cpu"))
    there = extract_paths(WHOLE.edge_index.cuda(), WHOLE.num_nodes, **options)
    index = torch.tensor([3, 18, 0, 3, 11])
    expected = RaggedTries.from_trie(here, WHOLE.node_ptr, WHOLE.edge_ptr).select(index)
    for ragged in (
        RaggedTries.from_trie(there, WHOLE.node_ptr.cuda(), WHOLE.edge_ptr.cuda()),
        RaggedTries.from_tries(tries),
        RaggedTries.from_trie(here, WHOLE.node_ptr, WHOLE.edge_ptr).to("cuda"),
    ):
        for at in (index, index.cuda()):
            selected = ragged.select(at)
            assert selected.device.type == "cuda"
            assert expected.equal(selected.to("cpu"))


def test_paths_there_and_back():
    edge_index = WHOLE.edge_index.cuda()
    for collection, extend in product(COLLECTIONS, (False, True)):
        trie = extract_paths(edge_index, WHOLE.num_nodes, collection=collection, k=3, extend=extend)
        again = PathTrie.from_paths(trie.to_paths(), edge_index, WHOLE.num_nodes, collection=collection)
        assert again.equal(trie)
        assert trie.to("cpu").equal(extract_paths(*WHOLE.graph, collection=collection, k=3, extend=extend))


def test_transformed_batch_moves():
    data = [Data(edge_index=e, num_nodes=n) for e, n in PARTS]
    batch = Batch.from_data_list([AddPaths("ap", 3)(d) for d in data])
    trie = PathTrie.from_data(batch.to("cuda"))
    assert trie.device.type == "cuda"
    assert extract_paths(*WHOLE.graph, collection="ap", k=3).equal(trie.to("cpu"))
    there = AddPaths("ap", 3)(Data(edge_index=PARTS[1][0].cuda(), num_nodes=5))
    assert PathTrie.from_data(there).to("cpu").equal(extract_paths(*PARTS[1], collection="ap", k=3))


def test_pinned_memory():
    trie = extract_paths(*WHOLE.graph, collection="ap", k=3)
    pinned = trie.pin_memory()
    assert pinned.vertex.is_pinned()
    assert pinned.distance.is_pinned()
    assert trie.equal(pinned.to("cuda", non_blocking=True).to("cpu"))


@pytest.mark.parametrize("extend", [False, True])
def test_refusal(extend):
    edge_index, n = clique(60)
    torch.cuda.reset_peak_memory_stats()
    with pytest.raises(PathExplosionError, match=r"at least .*simple paths.*max_paths=1,000,000"):
        extract_paths(edge_index.cuda(), n, collection="ap", k=8, extend=extend, max_paths=1_000_000)
    assert torch.cuda.max_memory_allocated() < 4 * 2**30
    whole = union([line(3), clique(7)])
    with pytest.raises(PathExplosionError, match=r"^graph 1 "):
        extract_paths(whole.edge_index.cuda(), 10, collection="ap", k=4, max_paths=1000, batch=whole.batch.cuda())


def test_bad_input():
    with pytest.raises(ValueError, match=r"0 -> 1 but not 1 -> 0.*to_undirected"):
        extract_paths(torch.tensor([[0], [1]]).cuda(), 2, collection="ap", k=2)
    with pytest.raises(ValueError, match="vertex 2"):
        extract_paths(torch.tensor([[0, 2], [2, 0]]).cuda(), 2, collection="ap", k=2)


def test_two_builds_are_equal():
    a, b = (both(GRAPHS["dense"], collection="ap", k=4)[1] for _ in range(2))
    assert a.equal(b)
