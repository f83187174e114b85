"""Run untrained networks on token sequences of paths: read each different sequence once, and multiply by its count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathnn.nn import PathNN
from pathnn.nn.path_nn import PathNNConfig
from pathnn.paths.count import PathExplosionError
from pathnn.paths.cpu.extract import in_threads
from pathnn.paths.cpu.walks import bfs, scratch
from pathnn.paths.csr import to_csr
from pathnn.paths.options import COLLECTIONS, check_collection
from pathnn.paths.trie import LengthTrie, TrieLevel
from pathnn.theory.fingerprints import PathAnnotations, classes, hashed_annotations
from pathnn.theory.graphs import Graph
from pathnn.theory.kernels import list_sequences

Ints = NDArray[np.int64]

TABLE = 2**16
"""The largest number of possible sequences that are counted in a table; otherwise sequences are sorted."""

BYTES_PER_SEQUENCE = 8 * 6
"""Bytes per channel that the backend stores for a trie entry: gates, hidden and cell state."""

BLOCK = 256
"""Vertices whose sequences are found at once."""


class MergedLevel(NamedTuple):
    """Classes of equal vertices of all graphs before and after one layer, numbered from 0."""

    before: Ints  # [num_nodes]: the class of each vertex that the layer reads
    after: Ints  # [num_nodes]: the class of each vertex after the layer
    chosen: Ints  # [classes after]: one vertex of each


def merged_levels(annotations: Sequence[PathAnnotations], k: int) -> Iterator[MergedLevel]:
    """Yield the classes of the vertices of all graphs for layers 1..k; vertices with equal annotations are equal."""
    none = np.zeros((k + 1, 2, 0), np.uint64)
    first, *levels = np.concatenate([none, *(one.levels for one in annotations)], axis=2)
    before = np.zeros(first.shape[1], np.int64)
    for level in levels:
        after = classes(level.T)
        yield MergedLevel(before, after, np.unique(after, return_index=True)[1])
        before = after


class Sequences(NamedTuple):
    """Different token sequences of the paths from some vertices, and their counts."""

    tokens: Tensor  # [n, length + 1], source first: class * width + distance; -1 for a dummy token
    owner: Tensor  # [n]: position of the source among the chosen vertices
    counts: Tensor  # [n]


class SequenceFinder:
    """Find the token sequences of one vertex of each class, in threads."""

    def __init__(self, graphs: Sequence[Graph], config: PathNNConfig) -> None:
        self.mode = COLLECTIONS[check_collection(config.collection)].rule
        self.extend, self.distances = config.extend, bool(config.distances)
        self.dummy = config.k + 1
        self.width = self.dummy if self.distances else 1
        self.ptr = np.cumsum([0, *(n for _, n in graphs)])
        csrs = [to_csr(*graph) for graph in graphs]
        self.rows = [(csr.rowptr.numpy(), csr.col.numpy()) for csr in csrs]

    def batches(self, level: MergedLevel, length: int, most: int) -> Iterator[Sequences]:
        """Yield the sequences of all chosen vertices, in batches of at most `most` sequences."""
        waiting: list[Sequences] = []
        size = 0
        for start in range(0, len(level.chosen), BLOCK):
            owners = range(start, min(start + BLOCK, len(level.chosen)))
            for found in in_threads(lambda owner: self._find(level, length, owner), owners):
                if waiting and size + len(found.counts) > most:
                    yield Sequences(*map(torch.cat, zip(*waiting, strict=True)))
                    waiting, size = [], 0
                waiting.append(found)
                size += len(found.counts)
        if waiting:
            yield Sequences(*map(torch.cat, zip(*waiting, strict=True)))

    def _find(self, level: MergedLevel, length: int, owner: int) -> Sequences:
        """Return the different sequences of the paths from one chosen vertex."""
        (rowptr, col), source, kinds, token, dist, pred = self.tokens(level, length, int(level.chosen[owner]))
        base = len(kinds) + 1
        codes = np.empty(0, np.int64)
        if length < rowptr.size - 1 or self.extend:  # else no path visits so many vertices
            codes = list_sequences(rowptr, col, self.mode, length, source, token, base, self.extend, dist, pred)
        if base ** (length + 1) <= TABLE:
            count = np.bincount(codes)
            code, count = count.nonzero()[0], count[count > 0]
        else:
            code, count = np.unique(codes, return_counts=True)
        places = base ** np.arange(length, -1, -1, dtype=np.int64)
        tokens = np.append(kinds, -1)[code[:, None] // places % base]
        return Sequences(torch.from_numpy(tokens), torch.full((len(code),), owner), torch.from_numpy(count))

    def tokens(self, level: MergedLevel, length: int, vertex: int) -> tuple[Any, ...]:
        """Return the graph of a vertex, its number there, the tokens, their digits, distances and predecessors.

        Raises `PathExplosionError` if an integer of 64 bits cannot encode every sequence of these tokens.
        """
        graph = int(np.searchsorted(self.ptr, vertex, side="right")) - 1
        rowptr, col = self.rows[graph]
        first = int(self.ptr[graph])
        dist, pred, queue = scratch(rowptr.size - 1)
        near = queue[: bfs(rowptr, col, vertex - first, length, self.mode, dist, pred, queue)]
        tokens = level.before[first + near] * self.width + (dist[near] if self.distances else 0)
        token = np.zeros(rowptr.size - 1, np.int64)
        kinds, token[near] = np.unique(tokens, return_inverse=True)
        if (len(kinds) + 1) ** (length + 1) >= 2**62 and (length < rowptr.size - 1 or self.extend):
            raise PathExplosionError(
                f"vertex {vertex - first} of graph {graph} reads {len(kinds)} kinds of tokens: too many to merge "
                f"sequences of {length + 1}. Lower k, or leave out the networks (seeds=0)."
            )
        return (rowptr, col), vertex - first, kinds, token, dist, pred


def merged_embeddings(
    models: Sequence[PathNN],
    graphs: Sequence[Graph],
    *,
    memory: int = 2**30,
    device: str | torch.device = "cpu",
    annotations: Sequence[PathAnnotations] | None = None,
) -> Tensor:
    """Compute the representation of each graph by each model, `[models, graphs, hidden_channels]`.

    All features are ones, and models differ only in their weights. A BatchNorm in training mode uses the vertices of
    all graphs. `memory` is the approximate limit of the LSTM in bytes; the sequences of one vertex are never split.
    """
    config = models[0].config
    models = [model.to(device) for model in models]
    most = max(1, memory // (BYTES_PER_SEQUENCE * config.hidden_channels))
    if annotations is None:
        annotations = hashed_annotations(
            graphs, collection=config.collection, k=config.k, extend=config.extend, distances=bool(config.distances)
        )
    finder = SequenceFinder(graphs, config)
    levels = list(enumerate(merged_levels(annotations, config.k), start=1))
    for length, level in levels:
        for vertex in level.chosen.tolist():
            finder.tokens(level, length, vertex)  # refuses long sequences before any layer is computed
    dtype = next(models[0].parameters()).dtype
    states = [model.encoder(torch.ones(1, 1, dtype=dtype, device=device)).detach() for model in models]
    for length, level in levels:
        states = _layer(models, states, level, length, finder, most)
    graph = torch.repeat_interleave(torch.tensor([n for _, n in graphs], device=device))
    rows = torch.from_numpy(level.after).to(device)
    return torch.stack([h.new_zeros(len(graphs), h.size(1)).index_add_(0, graph, h[rows]) for h in states])


@torch.no_grad()
def _layer(
    models: Sequence[PathNN], states: list[Tensor], level: MergedLevel, length: int, finder: SequenceFinder, most: int
) -> list[Tensor]:
    convs: list[Any] = [model.convs[length - 1] for model in models]
    read = [conv.scale(h) for conv, h in zip(convs, states, strict=True)]
    device = read[0].device
    sums = [h.new_zeros(len(level.chosen), h.size(1)) for h in read]
    for found in finder.batches(level, length, most):
        trie, entry = merged_trie(found, finder.width, states[0].size(0), finder.dummy, device)
        owner, count = found.owner.to(device), found.counts.to(device)
        for model, h, total in zip(models, read, sums, strict=True):
            paths = model.lstm.path_representations(h, trie)
            total.index_add_(0, owner, paths[entry] * count.to(paths.dtype).unsqueeze(1))
    rows, chosen, after = (
        torch.from_numpy(ids).to(device) for ids in (level.before[level.chosen], level.chosen, level.after)
    )
    layers = zip(convs, read, sums, strict=True)
    # Expand to all vertices: a BatchNorm counts each of them.
    return [conv.phi(conv.norm((h[rows] + total)[after]))[chosen] for conv, h, total in layers]


def merged_trie(
    found: Sequences, width: int, num_classes: int, dummy: int, device: str | torch.device
) -> tuple[LengthTrie, Tensor]:
    """Return the trie of the sequences, far ends first, and the entry of each sequence in the last level."""
    tokens = found.tokens.to(device)
    most = num_classes * width + 1
    levels: list[TrieLevel] = []
    at = torch.zeros(tokens.size(0), dtype=torch.long, device=device)
    for position in range(tokens.size(1) - 1, -1, -1):
        keys, at = torch.unique(at * most + tokens[:, position] + 1, return_inverse=True)
        token = keys % most - 1
        vertex = torch.where(token < 0, -1, torch.div(token, width, rounding_mode="floor"))
        distance = torch.where(token < 0, dummy, token % width)
        parent = torch.div(keys, most, rounding_mode="floor").int() if levels else None
        levels.append(TrieLevel(vertex.int(), distance.int(), parent, None))
    return LengthTrie(tuple(levels), num_classes), at
