"""Tiny tasks and runs for the tests of the engine, made the same way in every process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from pathnn.data import PackedGraphs, Task, task_from_graphs
from pathnn.nn.cuda_graphs.padded_copies import PaddedShape
from pathnn.training import RunConfig, run
from pathnn.training.cuda_graphs.padded_batch import graph_sizes


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The networks of these tests are too small for two threads; test modules import this."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def largest_shape(graphs: PackedGraphs, batch_size: int, *, paths: bool = True) -> PaddedShape:
    """The shape that holds any batch of `batch_size` graphs."""
    sizes = graph_sizes(graphs, paths=paths).sort(dim=0, descending=True).values
    shape = PaddedShape.holding(sizes[:batch_size].sum(dim=0), batch_size)
    return shape if paths else shape.with_room()


def random_graph(num_nodes: int, generator: torch.Generator) -> torch.Tensor:
    """A ring with one chord, both directions."""
    ring = torch.stack([torch.arange(num_nodes), (torch.arange(num_nodes) + 1) % num_nodes])
    chord = torch.randperm(num_nodes, generator=generator)[:2, None]
    one_way = torch.cat([ring, chord], dim=1)
    return torch.unique(torch.cat([one_way, one_way.flip(0)], dim=1), dim=1)


def tiny_task(num_graphs: int = 24, *, classes: bool = False, seed: int = 0) -> Task:
    """Graphs of 4 to 8 vertices with 3 features and the density of edges as target."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(4, 9, (num_graphs,), generator=generator).tolist()
    edges = [random_graph(size, generator) for size in sizes]
    graphs = PackedGraphs.from_edges(edges, sizes)
    x = torch.randn(graphs.num_nodes, 3, generator=generator)
    density = torch.tensor([[edge.size(1) / size] for edge, size in zip(edges, sizes, strict=True)])
    y = (density[:, 0] > 2.3).long() if classes else density
    return task_from_graphs(replace(graphs, x=x, y=y), name="tiny")


def partly_known_task(num_graphs: int = 24, *, seed: int = 0) -> Task:
    """The tiny task with its target and twice it, of which a third is not known."""
    task = tiny_task(num_graphs, seed=seed)
    assert task.graphs.y is not None
    y = torch.cat([task.graphs.y, 2 * task.graphs.y], dim=1)
    y[::3, 0] = y[1::3, 1] = torch.nan
    return task_from_graphs(replace(task.graphs, y=y), name="tiny", targets=("density", "twice"))


def tiny_config(**changes: Any) -> RunConfig:
    """Three epochs of a narrow PathNN with dropout and BatchNorm on the CPU."""
    options: dict[str, Any] = {
        "data": "tiny",
        "collection": "sp+",
        "k": 2,
        "batch_size": 8,
        "epochs": 3,
        "device": "cpu",
        "max_entries": None,
        "options": {"hidden_channels": 8, "dropout": 0.2},
    }
    return RunConfig(**{**options, **changes})


def train_here(out: str, config: dict[str, Any], *, resume: bool) -> None:
    """A whole run on one thread: what a child process does until it is killed."""
    torch.set_num_threads(1)
    run(RunConfig.from_dict(config), Path(out), task=tiny_task(), resume=resume)


def assert_same_files(one: Path, other: Path) -> None:
    """Weights bit by bit, and the same lines but for the times."""
    for name in ("model.safetensors", "last.ckpt"):
        a, b = load_file(one / name), load_file(other / name)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[key], b[key]) for key in a), name
    lines = [
        [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in path.read_text().splitlines()]
        for path in (one / "metrics.jsonl", other / "metrics.jsonl")
    ]
    assert lines[0] == lines[1]
