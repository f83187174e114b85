"""Why PathNN-SP cannot tell two of CSL's ten classes apart, whatever its tie rule: what docs/results.md says."""

from __future__ import annotations

from collections import defaultdict

import pytest
import torch

from pathnn import PathNN, count_paths
from pathnn.data import load_dataset


@pytest.fixture(scope="module")
def csl(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHNN_DATA", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("PATHNN_MIRROR", raising=False)
        yield load_dataset("csl")


def classes_by_counts(task, collection: str) -> dict[tuple[int, ...], set[str]]:
    """By number of paths of each length, the classes that have it."""
    found = defaultdict(set)
    for i in range(0, len(task.graphs), 5):
        graph = task.graphs[i]
        counts = count_paths(graph.edge_index, graph.num_nodes, collection=collection, k=11)[0]
        found[tuple((counts // 41).tolist())].add(task.classes[int(task.graphs.y[i])])
    return dict(found)


def test_skips_6_and_16_have_the_same_distances(csl) -> None:
    found = classes_by_counts(csl, "sp")
    assert found.pop((4, 8, 12, 10, 6, 0, 0, 0, 0, 0, 0)) == {"skip 6", "skip 16"}
    assert sorted(len(classes) for classes in found.values()) == [1] * 8


def test_numbers_of_all_shortest_paths_differ(csl) -> None:
    assert sorted(len(classes) for classes in classes_by_counts(csl, "sp+").values()) == [1] * 10


def test_relabelled_graphs_are_equal_to_sp(csl) -> None:
    """The tie rule looks at ids, and yet a network sees no difference: all vertices are alike."""
    torch.manual_seed(0)
    model = PathNN.from_paper("csl", collection="sp").double().eval()
    outs = {}
    for i, label in enumerate(csl.graphs.y.tolist()):
        if i % 5:
            continue
        graph = csl.graphs[i]
        permutation = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(i))
        out = model(graph.x.double(), permutation[graph.edge_index])
        outs.setdefault(csl.classes[label], []).append(out)
    for rows in outs.values():
        assert all(torch.allclose(rows[0], row, rtol=1e-9) for row in rows)
    assert torch.allclose(outs["skip 6"][0], outs["skip 16"][0], rtol=1e-9)
    assert not torch.allclose(outs["skip 6"][0], outs["skip 5"][0], rtol=1e-6)
