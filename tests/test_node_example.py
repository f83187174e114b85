"""`examples/node_classification.py` on a small graph, and training on a graph with hubs in bounded memory."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "node_classification.py"))


def test_a_batch_has_the_format_of_a_neighbor_loader(example: dict[str, Any]) -> None:
    data = example["make_graph"](500)
    sampler = example["TorchSampler"](data, [3, 2])
    loader = example["NeighborLoader"](
        data, [3, 2], input_nodes=torch.arange(40), batch_size=20, neighbor_sampler=sampler
    )
    for seeds, batch in zip(torch.arange(40).split(20), loader, strict=True):
        assert torch.equal(batch.n_id[: batch.batch_size], seeds)
        assert batch.n_id.unique().numel() == batch.num_nodes
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
        assert torch.equal(batch.x, data.x[batch.n_id])
        drawn = batch.edge_index[1].bincount(minlength=batch.num_nodes)
        assert int(drawn[:20].max()) <= 3
        assert int(drawn.max()) <= 3
        assert bool((drawn[:20] > 0).all())


def test_pathnn_finds_what_gcn_does_not(example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    found = example["main"](size=5000, epochs=6)
    models = found["models"]
    assert models["PathNN, SP, K = 2"]["test"] > models[found["best_gcn"]]["test"] + 5
    assert "GraphSAGE" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_degree_of_hubs() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "path_choices.py"))
    row = script["hubs"](vertices=20_000, batches=3)
    assert row["max_degree"] > 1000
    assert row["paths"] <= 3 * 500 * 30
    assert row["peak_bytes"] < 300 * 2**20
