"""Walks, cycles and custom paths: against the oracle, in tries, batches and storage."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, strategies as st
from torch_geometric.data import Batch, Data

from path_checks import clique, cycle, levels_of, line, random_graph, union
from path_reference import reference_cycles, reference_levels, reference_walks
from path_strategies import graphs, lengths, quick
from pathnn.data import PackedGraphs
from pathnn.nn import PathNN
from pathnn.paths import PathExplosionError, PathOptions, PathTrie, RaggedTries, count_paths, extract_paths, list_paths
from pathnn.transforms import AddPaths

WALKS = ("walks", "nb-walks")


def rows_of(trie: PathTrie) -> list[list[tuple[int, ...]]]:
    return [sorted(tuple(row) for row in rows.tolist()) for rows in trie.to_paths()]


@quick
@given(graph=graphs(), k=lengths, directed=st.booleans(), distances=st.booleans())
def test_cycles_are_those_of_the_oracle(graph, k, directed, distances):
    edge_index, n = graph
    edge_index = edge_index[:, : edge_index.size(1) * 3 // 4] if directed else edge_index
    cycles = reference_cycles(edge_index, n, k=k, directed=directed)
    options = {"collection": "cycles", "k": k, "directed": directed}
    trie = extract_paths(edge_index, n, distances=distances, **options).validate()
    assert rows_of(trie) == cycles
    assert levels_of(trie) == reference_levels(edge_index, n, distances=distances, given=cycles, **options)
    assert count_paths(edge_index, n, **options).tolist() == [[len(of_length) for of_length in cycles]]
    some = torch.arange(0, n, 2)
    few = extract_paths(edge_index, n, sources=some, **options)
    assert rows_of(few) == [[path for path in paths if path[0] % 2 == 0] for paths in cycles]


def test_too_many_paths_to_search_for_cycles_are_refused():
    assert extract_paths(*clique(6), collection="cycles", k=3, max_paths=150).num_paths == 120
    with pytest.raises(PathExplosionError, match="max_paths=149"):
        extract_paths(*clique(6), collection="cycles", k=3, max_paths=149)


@quick
@given(graph=graphs(), k=lengths, name=st.sampled_from(WALKS), directed=st.booleans(), distances=st.booleans())
def test_walks_are_walks(graph, k, name, directed, distances):
    edge_index, n = graph
    edge_index = edge_index[:, : edge_index.size(1) * 3 // 4] if directed else edge_index
    options = {"collection": name, "k": k, "directed": directed}
    trie = extract_paths(edge_index, n, **options, max_paths_per_source=3, distances=distances).validate()
    assert trie.sampled == 3
    for length, rows in enumerate(rows_of(trie), start=1):
        drawn = Counter(row[0] for row in rows)
        for v in range(n):
            known = reference_walks(edge_index, n, v, length=length, backtrack=name == "walks", directed=directed)
            assert {row for row in rows if row[0] == v} <= known.keys()
            whole = sum(known.values())  # below 1 if some walks cannot go on
            assert drawn[v] == 3 if whole > 1 - 1e-9 else drawn[v] <= (3 if known else 0)
    levels = reference_levels(edge_index, n, given=rows_of(trie), distances=distances, **options)
    assert levels_of(trie) == levels


@pytest.mark.parametrize("name", WALKS)
def test_walks_have_the_probabilities_of_the_oracle(name):
    graph, most = random_graph(3, n=8, edges=14), 40_000
    found = Counter(rows_of(extract_paths(*graph, collection=name, k=3, max_paths_per_source=most))[2])
    for v in range(8):
        for walk, probability in reference_walks(*graph, v, length=3, backtrack=name == "walks").items():
            spread = (probability * (1 - probability) / most) ** 0.5
            assert abs(found[walk] / most - probability) <= 5 * spread + 1e-9


def test_walks_follow_the_seed_alone_and_in_a_batch():
    options = {"collection": "walks", "k": 3, "max_paths_per_source": 4}
    parts = [random_graph(i) for i in range(3)]
    tries = [extract_paths(*part, **options) for part in parts]
    whole = union(parts)
    assert extract_paths(*whole.graph, **options).equal(PathTrie.cat(tries))
    assert not tries[0].equal(extract_paths(*parts[0], **options, seed=1))
    draws = [extract_paths(*parts[0], **options, seed=None) for _ in range(2)]
    assert not draws[0].equal(draws[1])


def there_and_back(edge_index: torch.Tensor, num_nodes: int) -> list[torch.Tensor]:
    """Every edge, and every edge there and back, twice."""
    u, v = edge_index
    return [edge_index.t(), torch.stack([u, v, u], dim=1).repeat(2, 1)]


@quick
@given(graph=graphs(), distances=st.booleans())
def test_a_function_gives_custom_paths(graph, distances):
    edge_index, n = graph
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    expected = [sorted(tuple(row) for row in rows.tolist()) for rows in there_and_back(edge_index, n)] + [[]]
    trie = extract_paths(edge_index, n, collection=there_and_back, k=3, distances=distances).validate()
    assert rows_of(trie) == expected
    options = {"collection": "custom", "k": 3, "distances": distances}
    assert levels_of(trie) == reference_levels(edge_index, n, given=expected, **options)
    again = PathTrie.from_paths(trie.to_paths(), edge_index, n, collection="custom", distances=distances)
    assert again.equal(trie)
    seeds = torch.arange(n)[:1]
    few = extract_paths(edge_index, n, collection=there_and_back, k=3, sources=seeds)
    assert rows_of(few) == [[row for row in rows if row[0] == 0] for rows in expected]


@pytest.mark.parametrize("collection", ["cycles", there_and_back, "walks"])
def test_batches_and_storage(collection):
    options = {"k": 4, "max_paths_per_source": 5 if collection == "walks" else None}
    parts = [cycle(4), clique(5), line(3)]
    whole = union(parts)
    tries = [extract_paths(*part, collection=collection, **options) for part in parts]
    together = PathTrie.cat(tries).validate()
    batch = Batch.from_data_list([AddPaths(collection, **options)(Data(edge_index=e, num_nodes=n)) for e, n in parts])
    assert PathTrie.from_data(batch).equal(together)
    assert RaggedTries.from_trie(together, whole.node_ptr, whole.edge_ptr).trie().equal(together)


@pytest.mark.parametrize("collection", ["cycles", "nb-walks"])
def test_datasets(collection):
    parts = [cycle(4), clique(5), line(3)]
    graphs = PackedGraphs.from_edges(*zip(*parts, strict=True))
    options = {"collection": collection, "k": 4, "max_paths_per_source": 5 if collection == "nb-walks" else None}
    expected = extract_paths(*union(parts).graph, **options)
    assert graphs.with_paths(**options).trie().equal(expected)
    with pytest.raises(ValueError, match="has no paths to count"):
        graphs.with_paths(collection="custom", k=2)


def test_a_model_reads_them():
    graph = clique(5)
    x = torch.rand(5, 3)
    cycles = PathNN(3, 8, 2, collection="cycles", k=3).eval()
    trie = extract_paths(*graph, collection="cycles", k=3)
    assert torch.equal(cycles(x, graph[0]), cycles(x, trie=trie))
    walks = PathNN(3, 8, 2, collection="walks", k=3, max_paths_per_source=4).eval()
    assert torch.equal(walks(x, graph[0]), walks(x, graph[0]))
    custom = PathNN(3, 8, 2, collection="custom", k=2).eval()
    paths = [graph[0].t(), torch.empty(0, 3, dtype=torch.int64)]
    once = PathTrie.from_paths(paths, *graph, collection="custom")
    twice = PathTrie.from_paths([rows.repeat(2, 1) for rows in paths], *graph, collection="custom")
    assert not torch.allclose(custom(x, trie=once), custom(x, trie=twice))
    with pytest.raises(ValueError, match="and a model their trie"):
        custom(x, graph[0])
    with pytest.raises(ValueError, match=r"collection is a function: .* models take 'custom'"):
        PathNN(3, 8, 2, collection=lambda *_: paths, k=2)
    with pytest.raises(ValueError, match="x is a Data without edge_index"):
        custom(Data(x=x))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"collection": "walks"}, "give max_paths_per_source"),
        ({"collection": "cycles", "max_paths_per_source": 3}, "has no samples"),
        ({"collection": "cycles", "extend": True}, "extend=True"),
        ({"collection": "custom"}, "a function as collection"),
        ({"collection": "walk"}, "expected one of .*'walks'"),
        ({"collection": lambda e, n: e}, "gave a Tensor"),
        ({"collection": lambda e, n: [e.t()] * 3}, "gave 3 lengths: expected a list of at most k=2"),
        ({"collection": lambda e, n: [e]}, r"paths\[0\] has shape"),
        ({"collection": lambda e, n: [e.t(), torch.tensor([[0, 2, 1]])]}, "no edge of the graph"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        extract_paths(*cycle(4), k=2, **options)


def test_only_the_papers_collections_are_listed_and_have_simple_paths():
    with pytest.raises(ValueError, match="expected one of 'sp', 'sp\\+', 'ap'"):
        list_paths(*clique(4), collection="cycles", k=3)
    with pytest.raises(ValueError, match="visits a vertex twice"):
        PathTrie.from_paths([clique(3)[0].t(), torch.tensor([[0, 1, 0]])], *clique(3), collection="ap")


def test_transforms_name_the_function():
    assert repr(AddPaths(there_and_back, 2)) == "AddPaths(collection='custom', k=2, function='there_and_back')"
    assert repr(AddPaths("walks", 2, max_paths_per_source=3)) == (
        "AddPaths(collection='walks', k=2, max_paths_per_source=3)"
    )
    assert "function" not in PathOptions("custom", 2, function=there_and_back).key()
