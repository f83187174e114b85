"""The shapes of padded batches: little padding, also where a few graphs are much larger than the others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

import triton_on_cpu
from engine_tasks import one_thread as one_thread, random_graph
from pathnn.nn import Baseline, DeepPathNN, PathNN
from pathnn.nn.cuda_graphs.padded_copies import PaddedCopies, PaddedShape
from pathnn.nn.cuda_graphs.padded_modules import reads_edges, reads_paths
from pathnn.paths.extract import extract_paths
from pathnn.paths.random_walks import random_walk_pe


def batches_of(sizes: Tensor, batch_size: int, number: int) -> Tensor:
    return torch.stack([sizes[torch.randperm(len(sizes))[:batch_size]].sum(dim=0) for _ in range(number)])


def few_large_graphs() -> Tensor:
    """Vertices of 1000 graphs, most of them small; as many edges as in a complete graph; two levels."""
    nodes = torch.cat([torch.randint(5, 20, (970,)), torch.randint(60, 120, (30,))])
    edges = nodes * (nodes - 1)
    return torch.stack([edges, edges * (nodes - 2), nodes, edges], dim=1)


def test_little_of_a_shape_is_padding():
    torch.manual_seed(0)
    sizes = few_large_graphs()
    shapes = PaddedShape.shapes(sizes, 32)
    assert 3 <= len(shapes) <= 8
    amounts = [sum(shape.levels) for shape in shapes]
    assert all(b >= 1.05 * a for a, b in pairwise(amounts))
    used = room = 0
    for batch in batches_of(sizes, 32, 600):
        fitting = [shape for shape in shapes if shape.holds(batch)]
        room += sum(fitting[0].levels) if fitting else int(batch[:-2].sum())
        used += int(batch[:-2].sum())
    assert used / room > 0.7
    assert sum(map(shapes[-1].holds, batches_of(sizes, 32, 1000))) > 980


def test_graphs_of_equal_size_have_one_shape():
    assert PaddedShape.shapes(torch.tensor([[3, 6, 3, 6]] * 100), 32) == [PaddedShape(32, 100, 199, (97, 193))]


def test_many_graphs_are_not_shuffled_for_every_batch(monkeypatch: pytest.MonkeyPatch):
    shuffled, randperm = [], torch.randperm
    monkeypatch.setattr(torch, "randperm", lambda n, **options: shuffled.append(n) or randperm(n, **options))
    assert PaddedShape.shapes(torch.ones(100_000, 4, dtype=torch.long), 32)[0].nodes == 34
    assert len(shuffled) == 1
    PaddedShape.shapes(torch.ones(100, 4, dtype=torch.long), 32)
    assert len(shuffled) == 1 + -(-512 // 3)


def test_the_global_random_numbers_are_left_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first = PaddedShape.shapes(few_large_graphs()[:50], 8)
    torch.manual_seed(3)
    again = PaddedShape.shapes(few_large_graphs()[:50], 8)
    assert first == again
    torch.manual_seed(3)
    PaddedShape.shapes(torch.ones(9, 4, dtype=torch.long), 8)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("columns", [2, 4])
@pytest.mark.parametrize(("graphs", "batch_size"), [(1, 1), (3, 8), (8, 8), (5, 1)])
def test_few_graphs(graphs: int, batch_size: int, columns: int):
    sizes = torch.arange(graphs * columns).view(graphs, columns)
    *_, last = PaddedShape.shapes(sizes, batch_size)
    assert last.holds(sizes.sort(dim=0, descending=True).values[:batch_size].sum(dim=0))
    assert PaddedShape.shapes(torch.zeros(4, 4, dtype=torch.long), 2) == [PaddedShape(2, 1, 1, (1, 1))]


def inputs_of(sizes: list[int], **paths: Any) -> dict[str, Any]:
    """A batch of random graphs with edge features, features of graphs, and paths if asked for."""
    generator = torch.Generator().manual_seed(sum(sizes))
    graphs = []
    for size in sizes:
        edge_index = random_graph(size, generator)
        kinds = torch.randint(0, 3, (edge_index.size(1), 1), generator=generator)
        attr, y = torch.rand(1, 2, generator=generator), torch.rand(1, 1, generator=generator)
        graphs.append(Data(torch.rand(size, 4, generator=generator), edge_index, kinds, graph_attr=attr, y=y))
    batch: Any = Batch.from_data_list(graphs)
    trie = extract_paths(batch.edge_index, batch.num_nodes, **paths) if paths else None
    names = ("x", "edge_index", "edge_attr", "graph_attr", "y", "batch")
    batch.random_walk_pe = random_walk_pe(batch.edge_index, batch.num_nodes, 5)
    given = {name: batch[name] for name in (*names, "random_walk_pe")}
    return {**given, "trie": trie, "batch_size": len(sizes)}


OPTIONS: Any = {"edge_channels": (3,), "graph_channels": 2}
PATHS: Any = [{"collection": "ap", "k": 3}, {"collection": "sp", "k": 2}, {"collection": "sp+", "k": 3, "extend": True}]


@pytest.mark.parametrize("kind", ["pathnn", "pathnn+", "virtual node", "gin", "control"])
@pytest.mark.parametrize("paths", PATHS)
def test_outputs_on_padded_copies_are_those_of_the_batches(
    kind: str, paths: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    if kind not in ("gin", "control"):  # a kernel copies tries
        if triton_on_cpu.MISSING:
            pytest.skip(triton_on_cpu.MISSING)
        triton_on_cpu.mend_triton(monkeypatch)
    torch.manual_seed(0)
    deep = {"num_layers": 2, "walk_length": 5, "virtual_node": kind == "virtual node", "read_paths": kind != "control"}
    model: Any = (
        Baseline("gin", 4, 8, 1, **OPTIONS) if kind == "gin"
        else PathNN(4, 8, 1, **paths, **OPTIONS) if kind == "pathnn"
        else DeepPathNN(4, 8, 1, **paths, **deep, **OPTIONS)
    )  # fmt: skip
    model.eval()
    paths = paths if reads_paths(model) else {}
    first, second = inputs_of([7, 6, 8], **paths), inputs_of([4, 7, 5], **paths)
    if not isinstance(model, DeepPathNN):
        del first["random_walk_pe"], second["random_walk_pe"]
    totals = torch.maximum(PaddedCopies.totals(first), PaddedCopies.totals(second))
    copies = PaddedCopies(first, PaddedShape.holding(totals, 3).with_room(), with_edges=reads_edges(model))
    assert not copies.fits(inputs_of([4, 5], **paths))
    assert not copies.fits(inputs_of([40, 50, 60], **paths))
    for inputs in (first, second):  # the second overwrites a larger one
        assert copies.fits(inputs)
        copies.load(inputs)
        rows = copies.assemble()
        structure = {"trie": copies.trie, "edge_index": copies.edge_index}
        features = {"edge_attr": rows.edge_attr, "graph_attr": rows.graph_attr}
        features |= {"random_walk_pe": rows.random_walk_pe} if isinstance(model, DeepPathNN) else {}
        out = model(rows.x, **structure, **features, batch=copies.batch, batch_size=4)
        expected = model(**{name: value for name, value in inputs.items() if name != "y"})
        assert torch.equal(rows.y, inputs["y"])
        assert int(copies.valid) == inputs["x"].size(0)
        torch.testing.assert_close(out[:3], expected)
        assert bool(out.isfinite().all())
