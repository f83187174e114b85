"""Measure what collections, K, cells, aggregations and samples cost, and how collections and K score on ESOL.

    python benchmarks/path_choices.py benchmarks/results/collections.jsonl [PART...]

Parts: cost, reader, sampler, esol, nodes, hubs, and nodes-gpu on a GPU. Rows that the file already has are skipped.
Times are CPU seconds of one thread, so that other programs on the machine disturb them little. Datasets come from the
cache or `PATHNN_MIRROR`. `pathnn bench --report` writes docs/which-paths.md from the file.
"""

from __future__ import annotations

import multiprocessing
import runpy
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MedianAggregation
from torch_geometric.transforms import AddRandomWalkPE
from torch_geometric.utils import barabasi_albert_graph, to_undirected

from pathnn import PathNN, PathTrie, extract_paths
from pathnn.data import PackedGraphs, load_dataset
from pathnn.data.task import Task
from pathnn.nn import Baseline, PathCell
from pathnn.paths import PathExplosionError
from pathnn_reproduction.bench.extract import peak_bytes
from pathnn_reproduction.results import Results, provenance

ROOT = Path(__file__).resolve().parents[1]
LENGTHS = (2, 4, 6, 8)
WALKS = ("walks", "nb-walks")
COLLECTIONS = ("sp", "sp+", "ap", "nb-walks", "walks", "cycles")
BATCHES = {"zinc": 64, "esol": 64, "imdb-binary": 32}
MOST = 300_000
"""More paths than this are not trained on."""

Row = dict[str, Any]
Measure = Callable[[], Row]


class Elman(PathCell):
    """The smallest custom cell."""

    gates = 1

    def step(self, z: Tensor, r: Tensor | None, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return ((z if r is None else z + r).tanh(),)


def graph_of(workload: str) -> tuple[Tensor, int, int]:
    """Return the edges, vertices and graphs of a batch: graphs of a dataset, or one with hubs."""
    if workload == "hub":
        torch.manual_seed(0)
        return barabasi_albert_graph(1000, 3), 1000, 1
    graphs = load_dataset(workload).graphs
    chosen = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))[: BATCHES[workload]]
    batch = graphs.select(chosen)
    return batch.edge_index, batch.num_nodes, batch.num_graphs


def cpu_seconds(work: Callable[[], Any], rounds: int = 1) -> float:
    """Return the median CPU seconds of some calls, after one to warm up."""
    times = []
    for _ in range(rounds + 1):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times[1:])


def step_ms(trie: PathTrie, **options: Any) -> float:
    """Return the CPU milliseconds of a training step with ready paths: 64 channels, one output per vertex."""
    torch.manual_seed(0)
    model = PathNN(16, 64, 1, collection=trie.collection, k=trie.k, readout=None, **options)
    optimizer, x = torch.optim.Adam(model.parameters()), torch.rand(trie.num_nodes, 16)

    def step() -> None:
        optimizer.zero_grad()
        model(x, trie=trie).square().mean().backward()
        optimizer.step()

    return 1e3 * cpu_seconds(step)


def cost(workload: str, collection: str, k: int, per_source: int | None) -> Row:
    """Return paths, entries and the times of an extraction and of a training step."""
    edges, vertices, graphs = graph_of(workload)
    row: Row = {"graphs": graphs, "vertices": vertices}

    def extract() -> PathTrie:
        options = {"max_paths_per_source": per_source, "max_paths": MOST}
        return extract_paths(edges, vertices, collection=collection, k=k, **options)

    try:
        trie = extract()
    except PathExplosionError:
        return {**row, "refused": True}
    seconds = cpu_seconds(extract)
    row |= {"paths": trie.num_paths, "entries": trie.num_entries, "extract_ms": 1e3 * seconds}
    return row | {"step_ms": step_ms(trie)}


def reader(workload: str, cell: str, aggregation: str) -> Row:
    """Return the time of a training step with a cell and an aggregation: AP with K = 4, and SP of ten paths."""
    edges, vertices, _ = graph_of(workload)
    hub: Row = {"collection": "sp", "k": 3, "max_paths_per_source": 10}
    trie = extract_paths(edges, vertices, **(hub if workload == "hub" else {"collection": "ap", "k": 4}))
    own = {"custom": Elman, "median": MedianAggregation()}
    options = {"cell": own.get(cell, cell), "aggregation": own.get(aggregation, aggregation)}
    return {"entries": trie.num_entries, "step_ms": step_ms(trie, **options)}


def sample(collection: str, per_source: int | None) -> Row:
    """Return the time and the memory of an extraction, K = 3, from a graph with 10,000 vertices, in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_sample, (collection, per_source))


def _sample(collection: str, per_source: int | None) -> Row:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    edges = barabasi_albert_graph(10_000, 3)
    options = {"k": 3, "max_paths": None, "max_paths_per_source": per_source}
    extract_paths(edges[:, edges.max(0).values < 50], 50, collection=collection, **options)  # loads all code
    start = time.process_time()
    trie, peak = peak_bytes(lambda: extract_paths(edges, 10_000, collection=collection, **options))
    return {"paths": trie.num_paths, "cpu_seconds": time.process_time() - start, "peak_bytes": peak}


class WithWalks(nn.Module):
    """Read atoms by the encoder of a model, and their random-walk encodings, the last columns, by a linear layer."""

    def __init__(self, atoms: nn.Module, columns: int, steps: int, channels: int) -> None:
        super().__init__()
        self.atoms, self.columns, self.walks = atoms, columns, nn.Linear(steps, channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.atoms(x[:, : self.columns].long()) + self.walks(x[:, self.columns :])


WALK_STEPS = 16
EPOCHS, FOLDS = 10, 3


def training_part(task: Task) -> PackedGraphs:
    """Return the molecules that are not for test."""
    return task.graphs.subset(torch.cat([task.splits[0].train, task.splits[0].val]))


def molecules(task: Task, walks: bool) -> list[Data]:
    """Return the training part as PyG graphs, with standardised targets."""
    packed = training_part(task)
    y = (packed.y - packed.y.mean()) / packed.y.std()
    found = []
    for i in range(len(packed)):
        one = packed.select(torch.tensor([i]))
        data = Data(x=one.x, edge_index=one.edge_index, edge_attr=one.edge_attr, y=y[i : i + 1])
        if walks:
            data = AddRandomWalkPE(WALK_STEPS, attr_name="walks")(data)
            data.x = torch.cat([data.x.float(), data.walks], dim=1)
        found.append(data)
    return found


def esol_model(name: str, k: int, task: Task) -> nn.Module:
    """Return a model with the options that `pathnn train` has by default: 64 channels, mean over atoms."""
    atoms, bonds = task.node_features.sizes, task.edge_features.sizes
    options: Row = {"edge_channels": bonds, "encoder": "categorical", "readout": "mean"}
    if name.startswith("gine"):
        model = Baseline("gin", atoms, 64, 1, num_layers=k, **options)
        if name == "gine-rwpe":
            model.encoder = WithWalks(model.encoder, len(atoms), WALK_STEPS, 64)
        return model
    options |= {"max_paths_per_source": 10} if name in WALKS else {}
    return PathNN(atoms, 64, 1, collection=name, k=k, phi="mlp", **options)


def esol(name: str, k: int) -> Row:
    """Return the out-of-fold RMSE on the training part of ESOL, and the CPU seconds of training."""
    task = load_dataset("esol")
    graphs = molecules(task, name == "gine-rwpe")
    fold = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0)) % FOLDS  # the same for all
    squares, seconds = [], 0.0
    for held_out in range(FOLDS):
        torch.manual_seed(0)
        model = esol_model(name, k, task)
        train = [graphs[i] for i in (fold != held_out).nonzero().flatten()]
        loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=EPOCHS * len(loader))
        start = time.process_time()
        for _ in range(EPOCHS):
            for data in loader:
                loss = nn.functional.mse_loss(model(data), data.y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        seconds += time.process_time() - start
        model.eval()
        with torch.no_grad():
            for data in DataLoader([graphs[i] for i in (fold == held_out).nonzero().flatten()], batch_size=128):
                squares.append((model(data) - data.y).square().flatten())
    rmse = float(torch.cat(squares).mean().sqrt() * training_part(task).y.std())
    parameters = sum(weight.numel() for weight in model.parameters())
    return {"molecules": len(graphs), "epochs": EPOCHS, "folds": FOLDS, "rmse": rmse, "cpu_seconds": seconds,
            "parameters": parameters}  # fmt: skip


def nodes(device: str = "cpu") -> Row:
    """Return what `examples/node_classification.py` prints."""
    return dict(runpy.run_path(str(ROOT / "examples" / "node_classification.py"))["main"](device=device))


def hub_edges(vertices: int) -> Tensor:
    """Return a graph with hubs: five edges for each vertex, to a vertex of number v with a density like v^(-2/3)."""
    random = torch.Generator().manual_seed(0)
    source = torch.arange(vertices).repeat_interleave(5)
    hub = (vertices * torch.rand(source.numel(), generator=random) ** 3).long()
    return to_undirected(torch.stack([source, hub])[:, source != hub])


def hubs(vertices: int = 100_000, batches: int = 10) -> Row:
    """Return time and peak memory of training steps on batches of 500 vertices, AP, K = 3, ten paths, drawn again."""
    edges = hub_edges(vertices)
    x, y = torch.rand(vertices, 16), torch.randint(2, (vertices,))
    torch.manual_seed(0)
    model = PathNN(16, 64, 2, collection="ap", k=3, distances=False, readout=None, aggregation="mean")
    optimizer = torch.optim.Adam(model.parameters())
    options: Row = {"collection": "ap", "k": 3, "distances": False, "max_paths_per_source": 10, "seed": None}

    def train(seeds: Tensor) -> int:
        trie = extract_paths(edges, vertices, sources=seeds, **options)
        loss = nn.functional.cross_entropy(model(x, trie=trie)[seeds], y[seeds])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return trie.num_paths

    train(torch.arange(10))  # loads all code
    start = time.process_time()
    seeds = torch.randperm(vertices)[: 500 * batches].split(500)
    paths, peak = peak_bytes(lambda: [train(some) for some in seeds])
    return {"vertices": vertices, "max_degree": int(edges[0].bincount().max()), "paths": sum(paths), "batches": batches,
            "cpu_seconds": time.process_time() - start, "peak_bytes": peak}  # fmt: skip


def planned() -> Iterator[tuple[Row, Measure]]:
    """Give the key of each row, and what measures it."""
    workloads: list[tuple[str, int | None]] = [*((name, None) for name in BATCHES), ("hub", None), ("hub", 10)]
    for k in LENGTHS:
        for workload, per_source in workloads:
            for collection in COLLECTIONS:
                many = 10 if collection in WALKS else per_source
                if (collection, many) != ("cycles", 10):  # cycles have no samples
                    key = {"workload": workload, "collection": collection, "k": k, "per_source": many}
                    yield {"part": "cost", **key}, lambda key=key: cost(**key)  # type: ignore[misc]
    for workload in ("zinc", "hub"):
        readers = [(cell, "sum") for cell in ("lstm", "gru", "mingru", "custom")]
        for cell, aggregation in readers + [("lstm", name) for name in ("mean", "max", "attention", "median")]:
            key = {"workload": workload, "cell": cell, "aggregation": aggregation}
            yield {"part": "reader", **key}, lambda key=key: reader(**key)  # type: ignore[misc]
    for collection in ("sp", "sp+", "ap"):
        for per_source in (None, 10):
            key = {"collection": collection, "per_source": per_source}
            yield {"part": "sampler", **key}, lambda key=key: sample(**key)  # type: ignore[misc]
    first = [(name, 4) for name in ("gine", "gine-rwpe", "ap", "sp", "sp+", "nb-walks")]
    for name, k in [*first, ("cycles", 6), *((name, k) for k in (2, 6) for name in ("sp", "ap", "gine-rwpe", "gine"))]:
        key = {"name": name, "k": k}
        yield {"part": "esol", **key}, lambda key=key: esol(**key)  # type: ignore[misc]
    yield {"part": "nodes"}, nodes
    yield {"part": "hubs"}, hubs
    if torch.cuda.is_available():
        yield {"part": "nodes-gpu"}, partial(nodes, "cuda")


def main(path: Path, parts: list[str]) -> None:
    torch.set_num_threads(1)
    results, total = Results.open(path), 0.0
    for key, measure in planned():
        if (not parts or key["part"] in parts) and results.find(key) is None:
            start = time.process_time()
            results.add({**key, **measure(), **provenance("cuda" if key["part"] == "nodes-gpu" else "cpu")}, key)
            total += time.process_time() - start
            print(f"{total:6.0f} s of CPU", key, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
