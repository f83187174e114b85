"""BREC's own protocol (Wang and Zhang 2024): per pair, train on relabelled copies, then test whether outputs differ.

For each pair, a network is trained with a cosine loss, so that the outputs of the two graphs point in different
directions. Then the differences of the outputs on 32 relabelled copies of each graph are tested with Hotelling's T^2
against a threshold. The same test between copies of one graph must stay below it, or the pair is unreliable and does
not count.

A PathNN on SP+ or AP gives copies of a graph the same output up to rounding, so the covariance of the differences is
nearly 0. As the authors of the protocol advise for this case, 1e-7 is added to its diagonal. Their annotations do not
depend on the numbering of the vertices, so those of a graph serve all of its copies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pathnn.data import PackedGraphs, load_dataset
from pathnn.nn import PathNN, paper_config
from pathnn.nn.path_nn import PathConv, PathNNConfig
from pathnn.paths import PathExplosionError, extract_paths
from pathnn.paths.options import Collection
from pathnn.theory.fingerprints import PathAnnotations, hashed_annotations
from pathnn.theory.graphs import Graph
from pathnn.theory.isomorphism import as_graphs
from pathnn.theory.merged import SequenceFinder, merged_levels, merged_trie
from pathnn_reproduction.results import Row, measured_row
from pathnn_reproduction.spec import RunSpec
from pathnn_reproduction.worker import Settings

MAX_STEPS = 2_000_000_000
"""Steps that a graph may take at one K; a step is a path of length K - 1."""

COPIES = 32
"""Relabelled copies of each graph, as in BREC's protocol."""

BLOCK = 10
"""Pairs of one row of BREC's protocol."""

PAIRS = 8
"""Copies of each graph in a batch if every path is read: 16 graphs in all."""


@cache
def brec_graphs() -> list[Graph]:
    """Return the 800 graphs; 2i and 2i + 1 are pair i."""
    return as_graphs(load_dataset("brec").graphs)


def relabelled(graph: Graph, seed: int) -> Graph:
    """Return the same graph with its vertices renumbered.

    >>> from pathnn.theory.examples import open_triplet
    >>> relabelled(open_triplet(), 1)[0].shape
    torch.Size([2, 4])
    """
    edge_index, num_nodes = graph
    return torch.unique(_new_numbers(num_nodes, seed)[edge_index], dim=1), num_nodes


def _new_numbers(num_nodes: int, seed: int) -> Tensor:
    return torch.randperm(num_nodes, generator=torch.Generator().manual_seed(seed))


class Copy(NamedTuple):
    """A relabelled copy of a graph, and the annotations of its vertices if equal sequences of them are merged."""

    graph: Graph
    annotations: PathAnnotations | None


def relabelled_copies(graph: Graph, seeds: Iterable[int], config: PathNNConfig) -> list[Copy]:
    """Return copies of a graph for batches of `config`; paths are searched in the graph only, not in its copies.

    Raises `PathExplosionError` if the search takes more than `MAX_STEPS` steps.
    """
    if config.collection == "sp":
        return [Copy(relabelled(graph, seed), None) for seed in seeds]
    (found,) = hashed_annotations(
        [graph], collection=config.collection, k=config.k, distances=bool(config.distances), max_steps=MAX_STEPS
    )
    copies = []
    for seed in seeds:
        old = torch.argsort(_new_numbers(graph[1], seed)).numpy()
        annotations = PathAnnotations(found.levels[..., old], found.sums[..., old])
        copies.append(Copy(relabelled(graph, seed), annotations))
    return copies


def disjoint_union(graphs: Sequence[Graph]) -> tuple[Tensor, int, Tensor]:
    """Join graphs into one: its `edge_index`, its number of vertices, and the graph of each vertex.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> edge_index, num_nodes, graph = disjoint_union([(edges_to_index([(0, 1)]), 2)] * 2)
    >>> edge_index.tolist(), num_nodes, graph.tolist()
    ([[0, 1, 2, 3], [1, 0, 3, 2]], 4, [0, 0, 1, 1])
    """
    edges, sizes = zip(*graphs, strict=True)
    batch = PackedGraphs.from_edges(edges, sizes).select(range(len(graphs)))
    return batch.edge_index, batch.num_nodes, batch.batch


Batch = Callable[[PathNN], Tensor]
"""The outputs of a model for some graphs: `[num_graphs, out_channels]`."""


def make_batches(ours: Sequence[Copy], theirs: Sequence[Copy], config: PathNNConfig) -> list[Batch]:
    """Return batches of copies of two graphs, in order: copies of the first, then as many of the second."""
    make, size = (plain_batch, PAIRS) if config.collection == "sp" else (merged_batch, len(ours))
    starts = range(0, len(ours), size)
    return [make([*ours[i : i + size], *theirs[i : i + size]], config) for i in starts]


def outputs(model: PathNN, batches: Sequence[Batch]) -> tuple[Tensor, Tensor]:
    """Return the outputs of a model for all copies of each of the two graphs."""
    parts = [batch(model).chunk(2) for batch in batches]
    return torch.cat([first for first, _ in parts]), torch.cat([second for _, second in parts])


def plain_batch(copies: Sequence[Copy], config: PathNNConfig) -> Batch:
    """Return a batch that reads every path; the paths are extracted once."""
    graphs = [copy.graph for copy in copies]
    edge_index, num_nodes, graph = disjoint_union(graphs)
    trie = extract_paths(
        edge_index, num_nodes, collection=config.collection, k=config.k, distances=bool(config.distances),
        extend=config.extend, max_paths=None, batch=graph,
    )  # fmt: skip
    ones = torch.ones(num_nodes, 1, dtype=torch.float64)
    return lambda model: model(ones, trie=trie, batch=graph, batch_size=len(graphs))


def merged_batch(copies: Sequence[Copy], config: PathNNConfig) -> Batch:
    """Return a batch with equal sequences and equal vertices merged; they are found once."""
    graphs = [copy.graph for copy in copies]
    annotations = [copy.annotations for copy in copies if copy.annotations is not None]
    graph = torch.repeat_interleave(torch.tensor([n for _, n in graphs]))
    finder = SequenceFinder(graphs, config)
    layers, count = [], 1
    for length, level in enumerate(merged_levels(annotations, config.k), start=1):
        parts = [  # trie, and for each sequence its entry, class and number
            (*merged_trie(one, finder.width, count, finder.dummy, "cpu"), one.owner, one.counts.double())
            for one in finder.batches(level, length, 10**9)
        ]
        before, after, chosen = map(torch.from_numpy, (level.before[level.chosen], level.after, level.chosen))
        layers.append((before, after, chosen, parts))
        count = len(level.chosen)

    def compute(model: PathNN) -> Tensor:
        h = model.encoder(torch.ones(1, 1, dtype=torch.float64))
        for (before, after, chosen, parts), conv in zip(layers, model.convs, strict=True):
            assert isinstance(conv, PathConv)
            h = conv.scale(h)
            total = h.new_zeros(len(chosen), h.size(1))
            for trie, entry, owner, number in parts:
                paths = model.lstm.path_representations(h, trie)
                total = total.index_add(0, owner, paths[entry] * number.unsqueeze(1))
            h = conv.phi(conv.norm((h[before] + total)[after]))[chosen]
        return model.head(h.new_zeros(len(graphs), h.size(1)).index_add(0, graph, h[layers[-1][1]]))

    return compute


CHANNELS, THRESHOLD, EPSILON = 16, 72.34, 1e-7
"""Outputs of a network, the threshold of the statistic, and what is added to the diagonal of the covariance."""

EPOCHS, STEPS, LEARNING_RATE, WEIGHT_DECAY, ENOUGH = 20, 4, 1e-4, 1e-4, 0.2
"""Epochs, steps of an epoch, options of Adam, and the loss at which training stops."""


def protocol_model(collection: Collection, k: int, seed: int) -> PathNN:
    """Return a PathNN with 16 outputs, and BatchNorm over the copies and tanh after each layer, in float64."""
    config = paper_config("sr", collection=collection, k=k, hidden_channels=CHANNELS)
    config = replace(config, out_channels=CHANNELS, head="linear", normalize=False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PathNN.from_config(config)
    for conv in model.convs:
        conv.phi = nn.Sequential(nn.BatchNorm1d(CHANNELS, track_running_stats=False), nn.Tanh())
    return model.double()


def hotelling(first: Tensor, second: Tensor) -> float:
    """Return Hotelling's statistic of two sets of outputs `[copies, channels]`.

    >>> hotelling(torch.ones(32, 16).double(), torch.ones(32, 16).double())
    0.0
    """
    difference = first - second
    mean = difference.mean(dim=0)
    covariance = torch.cov(difference.T) + EPSILON * torch.eye(difference.size(1), dtype=difference.dtype)
    return float(mean @ torch.linalg.pinv(covariance) @ mean)


def run_pair(first: Graph, second: Graph, *, collection: Collection, k: int, copies: int = COPIES) -> Row:
    """Train a network on a pair and test it; `told_apart` requires that copies of one graph do not differ."""
    model = protocol_model(collection, k, seed=0)
    of_first = relabelled_copies(first, range(2 * copies), model.config)
    ours, again = of_first[:copies], of_first[copies:]
    batches = make_batches(ours, relabelled_copies(second, range(copies), model.config), model.config)
    epochs = train(model, batches)
    with torch.no_grad():
        statistic = hotelling(*outputs(model, batches))
        of_copies = hotelling(*outputs(model, make_batches(ours, again, model.config)))
    return {
        "told_apart": statistic > THRESHOLD > of_copies,
        "reliable": of_copies < THRESHOLD,
        "statistic": statistic,
        "statistic_of_copies": of_copies,
        "epochs": epochs,
    }


def run_block(graphs: Sequence[Graph], pairs: Sequence[int], *, collection: Collection, k: int) -> Row:
    """Train on several pairs of BREC: which are distinguished, which are unreliable, and the statistics.

    `pairs` of the result leaves out those with more than `MAX_STEPS` steps.
    """
    begin, found = time.perf_counter(), {}
    for pair in pairs:
        with suppress(PathExplosionError):
            found[pair] = run_pair(graphs[2 * pair], graphs[2 * pair + 1], collection=collection, k=k)
    return {
        "told_apart": [pair for pair, row in found.items() if row["told_apart"]],
        "unreliable": [pair for pair, row in found.items() if not row["reliable"]],
        "pairs": list(found),
        "statistics": [row["statistic"] for row in found.values()],
        "statistics_of_copies": [row["statistic_of_copies"] for row in found.values()],
        "epochs": [row["epochs"] for row in found.values()],
        "seconds": time.perf_counter() - begin,
    }


def train(model: PathNN, batches: Sequence[Batch]) -> int:
    """Minimize the cosine between the outputs of the two graphs, and return the number of epochs."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    loss_of = nn.CosineEmbeddingLoss(margin=0.0)
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for step in range(STEPS):
            optimizer.zero_grad()
            ours, theirs = batches[step % len(batches)](model).chunk(2)
            loss = loss_of(ours, theirs, -ours.new_ones(len(ours)))
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        if sum(losses) / STEPS < ENOUGH:
            return epoch
        scheduler.step(sum(losses) / STEPS)
    return EPOCHS


def protocol_run(spec: RunSpec, settings: Settings) -> Row:
    """Train on a block of pairs by BREC's own protocol."""
    key: Any = spec.key
    pairs = range(key["first"], key["first"] + BLOCK)
    return measured_row(spec, run_block(brec_graphs(), pairs, collection=key["collection"], k=key["k"]))
