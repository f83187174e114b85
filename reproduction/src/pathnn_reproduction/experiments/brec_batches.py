"""What networks read in BREC's protocol: copies of two graphs, in batches.

A PathNN on SP+ or AP gives copies of a graph the same output up to rounding. Merging equal tokens over all copies thus
changes nothing, and makes training cheap: all copies are one batch, read in every step. On SP copies differ where
shortest paths tie, and there is little to merge: every path is read, in batches of 16 graphs, as in the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from pathnn.nn import PathNN
from pathnn.nn.path_conv import PathConv
from pathnn.nn.path_nn import PathNNConfig
from pathnn.paths import extract_paths
from pathnn.paths.trie import LengthTrie, PathTrie
from pathnn.theory.fingerprints import hashed_annotations
from pathnn.theory.graphs import Graph, disjoint_union
from pathnn.theory.merged import SequenceFinder, merged_levels, merged_trie
from pathnn_reproduction.experiments.brec import MAX_STEPS

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
