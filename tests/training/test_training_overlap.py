"""A model knows the graphs of its training again, whatever the order of their vertices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from engine_tasks import one_thread as one_thread, tiny_config, tiny_task
from pathnn.data import PackedGraphs, load_dataset
from pathnn.data.fingerprints import graph_fingerprints
from pathnn.training import checkpoint, load_model, run, training_overlap
from pathnn.training.checkpoint import training_fingerprints


def packed(edges: torch.Tensor, x: torch.Tensor, edge_attr: torch.Tensor) -> PackedGraphs:
    return replace(PackedGraphs.from_edges([edges], [len(x)]), x=x, edge_attr=edge_attr)


@given(seed=st.integers(0, 2**32), size=st.integers(1, 9), numbers=st.booleans())
@settings(max_examples=60, deadline=None)
def test_prints_do_not_depend_on_any_order(seed: int, size: int, numbers: bool):
    generator = torch.Generator().manual_seed(seed)
    edges = (torch.rand(size, size, generator=generator) < 0.4).nonzero().t()
    x = torch.randint(0, 3, (size, 2), generator=generator)
    edge_attr = torch.randint(0, 2, (edges.size(1), 1), generator=generator)
    x, edge_attr = (x.float() / 3, edge_attr.double()) if numbers else (x, edge_attr.to(torch.uint8))
    (one,) = graph_fingerprints(packed(edges, x, edge_attr))
    to, rows = torch.randperm(size, generator=generator), torch.randperm(edges.size(1), generator=generator)
    moved = torch.empty_like(x)
    moved[to] = x
    assert graph_fingerprints(packed(to[edges][:, rows], moved, edge_attr[rows])).tolist() == [one]
    changed = x.clone()
    changed[0, 1] += 1
    assert graph_fingerprints(packed(edges, changed, edge_attr)).tolist() != [one]
    if edges.size(1):
        assert graph_fingerprints(packed(edges[:, 1:], x, edge_attr[1:])).tolist() != [one]


def test_prints_of_many_graphs_are_those_of_each():
    graphs = tiny_task(30).graphs
    each = [graph_fingerprints(graphs.subset([i])).item() for i in range(30)]
    assert graph_fingerprints(graphs).tolist() == each
    assert len(set(each)) == 30
    empty = PackedGraphs.from_edges([torch.zeros(2, 0, dtype=torch.long)] * 3, [0, 2, 0])
    assert np.unique(graph_fingerprints(empty)).size == 2
    assert graph_fingerprints(empty.subset([])).size == 0


def test_a_model_knows_its_training_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    task = tiny_task()
    run(tiny_config(epochs=1), tmp_path / "run", task=task)
    signature = load_model(tmp_path / "run" / "model.safetensors").signature
    split = task.splits[0]
    found = training_overlap(signature, task)
    assert found is not None
    assert found.nonzero().flatten().tolist() == sorted(split.train.tolist())
    again = training_overlap(signature, task, split.test)
    assert again is not None
    assert not again.any()
    monkeypatch.setattr(checkpoint, "MOST", 3)
    assert training_fingerprints(task.graphs, split.train) == ""


def test_a_model_of_a_named_dataset_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATHNN_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("PATHNN_MIRROR", raising=False)
    run(tiny_config(data="csl", epochs=1), tmp_path / "run")
    trained = load_model(tmp_path / "run" / "model.safetensors")
    assert training_overlap(trained.signature, load_dataset("csl")) is None
