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
from dataclasses import replace

import torch
from torch import Tensor, nn

from pathnn.nn import PathNN, paper_config
from pathnn.paths.options import Collection
from pathnn.theory.graphs import Graph
from pathnn_reproduction.experiments.brec import COPIES, relabelled
from pathnn_reproduction.experiments.brec_batches import Batches
from pathnn_reproduction.rows import Row

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
    """Several pairs of BREC: which are told apart, which are not reliable, and the statistics."""
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
