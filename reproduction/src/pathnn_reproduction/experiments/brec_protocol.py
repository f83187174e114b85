"""BREC's own protocol (Wang and Zhang 2024): per pair, train on relabelled copies, then test whether outputs differ.

A network is trained for each pair, to make the outputs of its two graphs point in different directions (cosine loss).
Of 32 relabelled copies of each graph, the differences of the outputs are then tested by Hotelling's T^2 against a
threshold. The same test between copies of one graph must find nothing; a pair where it does is not reliable and does
not count.

A PathNN on SP+ or AP gives copies of a graph the same output up to rounding, so the covariance of the differences is
next to 0. For that case the protocol's authors add 1e-7 to its diagonal, and so do we.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor, nn

from pathnn.nn import PathNN, paper_config
from pathnn.nn.path_conv import PathConv
from pathnn.nn.path_nn import PathNNConfig
from pathnn.paths import extract_paths
from pathnn.paths.options import Collection
from pathnn.paths.trie import LengthTrie, PathTrie
from pathnn.theory.fingerprints import hashed_annotations
from pathnn.theory.graphs import Graph, disjoint_union
from pathnn.theory.merged import SequenceFinder, merged_levels, merged_trie
from pathnn_reproduction.experiments.brec import COPIES, MAX_STEPS, relabelled
from pathnn_reproduction.results import Row

PAIRS = 8
"""Copies of each graph in a batch, where every path is read: 16 graphs in all."""


@dataclass(frozen=True)
class Batches:
    """Copies of a graph, and as many of another; each batch has the first graph's copies before the second's."""

    parts: tuple[MergedBatch | PlainBatch, ...]

    @classmethod
    def of(cls, ours: Sequence[Graph], theirs: Sequence[Graph], config: PathNNConfig) -> Batches:
        """Batches in which copy i of one graph is beside copy i of the other."""
        if config.collection != "sp":
            return cls((MergedBatch.of([*ours, *theirs], config),))
        starts = range(0, len(ours), PAIRS)
        return cls(tuple(PlainBatch.of([*ours[i : i + PAIRS], *theirs[i : i + PAIRS]], config) for i in starts))

    def step_outputs(self, model: PathNN, step: int) -> tuple[Tensor, Tensor]:
        """What the model gives for the batch of a step, differentiable: of the copies of each graph, a row per copy."""
        first, second = self.parts[step % len(self.parts)].outputs(model).chunk(2)
        return first, second

    def outputs(self, model: PathNN) -> tuple[Tensor, Tensor]:
        """What the model gives for all copies of each graph: `[copies, out_channels]`."""
        found = [self.step_outputs(model, step) for step in range(len(self.parts))]
        return torch.cat([first for first, _ in found]), torch.cat([second for _, second in found])


@dataclass(frozen=True)
class PlainBatch:
    """Graphs of which the network reads every path; extracted once, read in each step."""

    trie: PathTrie
    graph: Tensor  # [num_nodes]
    num_graphs: int

    @classmethod
    def of(cls, graphs: Sequence[Graph], config: PathNNConfig) -> PlainBatch:
        """Extract the paths."""
        edge_index, num_nodes, graph = disjoint_union(graphs)
        trie = extract_paths(
            edge_index, num_nodes, collection=config.collection, k=config.k, distances=bool(config.distances),
            extend=config.extend, max_paths=None, batch=graph,
        )  # fmt: skip
        return cls(trie, graph, len(graphs))

    def outputs(self, model: PathNN) -> Tensor:
        """The network's output for each graph, differentiable: `[num_graphs, out_channels]`."""
        ones = torch.ones(len(self.graph), 1, dtype=torch.float64)
        out: Tensor = model(ones, trie=self.trie, batch=self.graph, batch_size=self.num_graphs)
        return out


@dataclass(frozen=True)
class Layer:
    """What one layer reads, with equal tokens merged."""

    before: Tensor  # [classes]: the class before of each class after
    after: Tensor  # [num_nodes]: the class of each vertex
    chosen: Tensor  # [classes]: a vertex of each class
    parts: tuple[tuple[LengthTrie, Tensor, Tensor, Tensor], ...]  # trie, its entry, class and number per sequence


@dataclass(frozen=True)
class MergedBatch:
    """Graphs as the layers of a network read them; made once, read in each step."""

    layers: tuple[Layer, ...]
    graph: Tensor  # [num_nodes]
    num_graphs: int

    @classmethod
    def of(cls, graphs: Sequence[Graph], config: PathNNConfig) -> MergedBatch:
        """Find the sequences of all layers."""
        distances = bool(config.distances)
        found = hashed_annotations(
            graphs, collection=config.collection, k=config.k, distances=distances, max_steps=MAX_STEPS
        )
        sizes = [n for _, n in graphs]
        finder = SequenceFinder(graphs, list(accumulate(sizes, initial=0)), config, None)
        layers, count = [], 1
        for length, level in enumerate(merged_levels(found, config.k), start=1):
            parts = [
                (*merged_trie(one, finder.width, count, finder.dummy, "cpu"), one.owner, one.count.double())
                for one in finder.batches(level, length, 10**9)
            ]
            before, chosen = torch.from_numpy(level.before[level.chosen]), torch.from_numpy(level.chosen)
            layers.append(Layer(before, torch.from_numpy(level.after), chosen, tuple(parts)))
            count = len(level.chosen)
        return cls(tuple(layers), torch.repeat_interleave(torch.tensor(sizes)), len(graphs))

    def outputs(self, model: PathNN) -> Tensor:
        """The network's output for each graph, differentiable: `[num_graphs, out_channels]`."""
        h = model.encoder(torch.ones(1, 1, dtype=torch.float64))
        for layer, conv in zip(self.layers, model.convs, strict=True):
            assert isinstance(conv, PathConv)
            h = conv.scale(h)
            total = h.new_zeros(len(layer.chosen), h.size(1))
            for trie, entry, owner, count in layer.parts:
                paths = model.lstm.path_representations(h, trie)
                total = total.index_add(0, owner, paths[entry] * count.unsqueeze(1))
            h = conv.phi(conv.norm((h[layer.before] + total)[layer.after]))[layer.chosen]
        last = self.layers[-1].after
        out: Tensor = model.head(h.new_zeros(self.num_graphs, h.size(1)).index_add(0, self.graph, h[last]))
        return out


CHANNELS = 16


THRESHOLD = 72.34


EPSILON = 1e-7


EPOCHS, STEPS, LEARNING_RATE, WEIGHT_DECAY, ENOUGH = 20, 4, 1e-4, 1e-4, 0.2
"""Training: epochs of 4 steps, Adam, and the loss at which it stops."""


def protocol_model(collection: Collection, k: int, seed: int) -> PathNN:
    """A PathNN with 16 outputs: BatchNorm over the copies and tanh after each layer, float64."""
    config = paper_config("sr", collection=collection, k=k, hidden_channels=CHANNELS)
    config = replace(config, out_channels=CHANNELS, head="linear", normalize=False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PathNN.from_config(config)
    for conv in model.convs:
        conv.phi = nn.Sequential(nn.BatchNorm1d(CHANNELS, track_running_stats=False), nn.Tanh())
    return model.double()


def hotelling(first: Tensor, second: Tensor) -> float:
    """BREC's statistic of two sets of outputs `[copies, channels]`: mean difference, by its covariance.

    >>> hotelling(torch.ones(32, 16).double(), torch.ones(32, 16).double())
    0.0
    """
    difference = first - second
    mean = difference.mean(dim=0)
    covariance = torch.cov(difference.T) + EPSILON * torch.eye(difference.size(1), dtype=difference.dtype)
    return float(mean @ torch.linalg.pinv(covariance) @ mean)


def run_pair(
    first: Graph, second: Graph, *, collection: Collection, k: int, seed: int = 0, copies: int = COPIES
) -> Row:
    """Train a network on a pair, and test: `told_apart` needs a difference, and none between copies of one graph."""
    begin = time.perf_counter()
    ours, theirs = ([relabelled(graph, seed + i) for i in range(copies)] for graph in (first, second))
    again = [relabelled(first, seed + copies + i) for i in range(copies)]
    model = protocol_model(collection, k, seed)
    batches = Batches.of(ours, theirs, model.config)
    epochs = train(model, batches)
    with torch.no_grad():
        statistic = hotelling(*batches.outputs(model))
        of_copies = hotelling(*Batches.of(ours, again, model.config).outputs(model))
    return {
        "told_apart": statistic > THRESHOLD > of_copies,
        "reliable": of_copies < THRESHOLD,
        "statistic": statistic,
        "statistic_of_copies": of_copies,
        "epochs": epochs,
        "seconds": time.perf_counter() - begin,
    }


def run_block(graphs: Sequence[Graph], pairs: Sequence[int], *, collection: Collection, k: int, seed: int = 0) -> Row:
    """Several pairs of BREC: which are distinguished, which are not reliable, and the statistics."""
    begin = time.perf_counter()
    found = {
        pair: run_pair(graphs[2 * pair], graphs[2 * pair + 1], collection=collection, k=k, seed=seed) for pair in pairs
    }
    return {
        "told_apart": [pair for pair, row in found.items() if row["told_apart"]],
        "unreliable": [pair for pair, row in found.items() if not row["reliable"]],
        "pairs": list(pairs),
        "statistics": [row["statistic"] for row in found.values()],
        "statistics_of_copies": [row["statistic_of_copies"] for row in found.values()],
        "epochs": [row["epochs"] for row in found.values()],
        "seconds": time.perf_counter() - begin,
    }


def train(model: PathNN, batches: Batches) -> int:
    """Minimise the cosine between the outputs of the two graphs; returns the number of epochs."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    loss_of = nn.CosineEmbeddingLoss(margin=0.0)
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for step in range(STEPS):
            optimizer.zero_grad()
            ours, theirs = batches.step_outputs(model, step)
            loss = loss_of(ours, theirs, -ours.new_ones(len(ours)))
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        if sum(losses) / STEPS < ENOUGH:
            return epoch
        scheduler.step(sum(losses) / STEPS)
    return EPOCHS
