"""Classify vertices of a large graph in mini-batches of PyG's `NeighborLoader`: PathNN next to GCN and GraphSAGE.

    python examples/node_classification.py [--device cuda]

The graph is a contextual stochastic block model, designed so that paths of two edges matter: find the members whose
colour is not that of their circle. There are four circles and four colours, which the features of members show with
noise. Two members in three have the colour of their circle (class 0), the others another one (class 1). Members are
connected to mediators of their circle only (one edge in ten goes to any mediator), and the features of mediators are
noise. So neighbours say nothing: the class is the relation between a member's colour and the colours two steps away.
An LSTM reads both in one path; a GCN adds a vertex to what is around it, which hides the relation.

All models have the same split, width, epochs and batches of PyG's loader. The depth of GCN is the best on validation
vertices.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GCN, GraphSAGE
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from pathnn import PathNN, extract_paths

COLOURS, SIZE, DEGREE, NOISE, WIDTH, BATCH = 4, 20_000, 5, 0.3, 32, 250


class TorchSampler(BaseSampler):  # type: ignore[misc]
    """Draw neighbours with torch, for machines without pyg-lib: at most `num_neighbors[i]` per vertex in step i."""

    def __init__(self, data: Data, num_neighbors: list[int]) -> None:
        order = data.edge_index[1].argsort()
        self.source, self.edge, self.num_neighbors = data.edge_index[0][order], order, num_neighbors
        self.degree = torch.bincount(data.edge_index[1], minlength=data.num_nodes)
        self.first = self.degree.cumsum(0) - self.degree

    def sample_from_nodes(self, inputs: NodeSamplerInput) -> SamplerOutput:
        """Return the vertices within the steps, seeds first, and the drawn edges, which lead to the seeds."""
        seeds = frontier = inputs.node
        position = torch.full_like(self.degree, -1)
        position[seeds] = torch.arange(seeds.numel())
        nodes, edges = [seeds], []
        for count in self.num_neighbors:
            at = frontier[self.degree[frontier] > 0].repeat_interleave(count)
            drawn = (self.first[at] + (torch.rand(at.numel()) * self.degree[at]).long()).unique()  # with replacement
            frontier = self.source[drawn].unique()
            frontier = frontier[position[frontier] < 0]
            position[frontier] = torch.arange(frontier.numel()) + sum(map(len, nodes))
            nodes, edges = [*nodes, frontier], [*edges, drawn]
        drawn = torch.cat(edges)
        target = torch.searchsorted(self.first + self.degree, drawn, right=True)
        metadata = (inputs.input_id, inputs.time)
        return SamplerOutput(
            torch.cat(nodes), position[self.source[drawn]], position[target], self.edge[drawn], metadata=metadata
        )

    def sample_from_edges(self, *_: Any) -> SamplerOutput:
        raise NotImplementedError


def make_loader(data: Data, num_neighbors: list[int], nodes: Tensor, *, shuffle: bool = False) -> NeighborLoader:
    """Return PyG's loader; without pyg-lib and torch-sparse, which it needs, with a sampler of this file."""
    sampler = None if WITH_PYG_LIB or WITH_TORCH_SPARSE else TorchSampler(data, num_neighbors)
    options = {"input_nodes": nodes, "batch_size": BATCH, "shuffle": shuffle, "neighbor_sampler": sampler}
    return NeighborLoader(data, num_neighbors, **options)


def make_graph(size: int = SIZE, seed: int = 0) -> Data:
    """Return the block model: a fifth of the vertices are mediators; `y` is -1 for them."""
    random = torch.Generator().manual_seed(seed)
    mediators, members = size // 5, size - size // 5
    circle = torch.randint(COLOURS, (members,), generator=random)
    y = (torch.rand(members, generator=random) < 1 / 3).long()
    colour = (circle + y * torch.randint(1, COLOURS, (members,), generator=random)) % COLOURS
    member = torch.arange(members).repeat_interleave(DEGREE)
    stray = torch.rand(member.numel(), generator=random) < 0.1
    at = torch.where(stray, torch.randint(COLOURS, member.shape, generator=random), circle[member])
    mediator = members + COLOURS * torch.randint(mediators // COLOURS, member.shape, generator=random) + at
    edge_index = torch.stack([torch.cat([member, mediator]), torch.cat([mediator, member])]).unique(dim=1)
    x = NOISE * torch.randn(size, COLOURS, generator=random)
    x[torch.arange(members), colour] += 1
    return Data(x=x, edge_index=edge_index, y=torch.cat([y, torch.full((mediators,), -1)]))


class Paths(nn.Module):
    """A PathNN that reads ten shortest paths per seed and length, drawn again for each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.network = PathNN(COLOURS, WIDTH, 2, collection="sp", k=2, readout=None, aggregation="mean", phi="mlp")

    def forward(self, batch: Data) -> Tensor:
        away = batch.edge_index.flip(0)  # the loader's edges lead to the seeds
        seeds = torch.arange(batch.batch_size, device=away.device)
        trie = extract_paths(away, batch.num_nodes, collection="sp", k=2, directed=True, max_paths_per_source=10,
                             sources=seeds, seed=None)  # fmt: skip
        return self.network(batch.x, trie=trie)[: batch.batch_size]


class Messages(nn.Module):
    """A network of PyG with some layers."""

    def __init__(self, kind: type[nn.Module], layers: int) -> None:
        super().__init__()
        self.network = kind(COLOURS, WIDTH, layers, 2, norm="batch_norm")

    def forward(self, batch: Data) -> Tensor:
        return self.network(batch.x, batch.edge_index)[: batch.batch_size]


def accuracy(model: nn.Module, loader: NeighborLoader, device: str) -> float:
    """Return the share of seeds whose class is predicted, in percent."""
    model.eval()
    with torch.no_grad():
        batches = (batch.to(device) for batch in loader)
        right = [model(batch).argmax(1) == batch.y[: batch.batch_size] for batch in batches]
    return 100 * float(torch.cat(right).float().mean())


def run(make: Callable[[], nn.Module], data: Data, steps: int, epochs: int, device: str) -> dict[str, float]:
    """Train a model; return its accuracies and the seconds of an epoch."""
    torch.manual_seed(0)
    members = torch.randperm(int((data.y >= 0).sum()))
    parts = members.tensor_split([members.numel() // 2, 5 * members.numel() // 8])
    train, val, test = (make_loader(data, [10] * steps, part, shuffle=i == 0) for i, part in enumerate(parts))
    model = make().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seconds = []
    for _ in range(epochs):
        model.train()
        wall, start = time.perf_counter(), time.process_time()
        for batch in train:
            batch = batch.to(device)
            loss = nn.functional.cross_entropy(model(batch), batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append((time.perf_counter() - wall, time.process_time() - start))
    return {
        "val": accuracy(model, val, device),
        "test": accuracy(model, test, device),
        "seconds": min(w for w, _ in seconds),
        "cpu_seconds": min(c for _, c in seconds),
    }


def main(size: int = SIZE, epochs: int = 8, device: str = "cpu") -> dict[str, Any]:
    """Train all models and print a table; return its values."""
    data = make_graph(size)
    if not (WITH_PYG_LIB or WITH_TORCH_SPARSE):
        print(
            "neither pyg-lib nor torch-sparse is installed: NeighborLoader uses a sampler of this file, in plain torch"
        )
    share = 100 * float((data.y == 0).sum() / (data.y >= 0).sum())
    print(f"{data.num_nodes:,} vertices, {data.num_edges:,} edges; {share:.1f} % of the members are of class 0")
    found = {}
    for name, steps, make in [
        ("PathNN, SP, K = 2", 2, Paths),
        *((f"GCN, {layers} layers", layers, partial(Messages, GCN, layers)) for layers in (1, 2, 3)),
        ("GraphSAGE, 2 layers", 2, partial(Messages, GraphSAGE, 2)),
    ]:
        found[name] = row = run(make, data, steps, epochs, device)
        print(f"{name:20} validation {row['val']:5.1f} %  test {row['test']:5.1f} %  {row['seconds']:6.2f} s per epoch"
              f" ({row['cpu_seconds']:.2f} s of CPU)", flush=True)  # fmt: skip
    best = max((name for name in found if name.startswith("GCN")), key=lambda name: found[name]["val"])
    ours, gcn = found["PathNN, SP, K = 2"], found["GCN, 2 layers"]  # with the same batches
    print(f"test members: PathNN {ours['test']:.1f} %, {best} {found[best]['test']:.1f} %; "
          f"time, relative to GCN with 2 layers: {ours['seconds'] / gcn['seconds']:.1f} to 1")  # fmt: skip
    return {"vertices": data.num_nodes, "epochs": epochs, "majority": share, "models": found, "best_gcn": best}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    main(device=parser.parse_args().device)
