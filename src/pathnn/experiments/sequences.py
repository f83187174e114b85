"""The different token sequences of the paths from a vertex, and how often each occurs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathnn.experiments.merge_kernels import reach, visit_sequences
from pathnn.nn.config import PathNNConfig
from pathnn.paths.csr import to_csr
from pathnn.paths.limits import PathExplosionError
from pathnn.theory.graphs import Graph
from pathnn.theory.hashed import MODES, PathAnnotations, classes, in_threads

TABLE = 2**16
"""Up to so many possible sequences are counted in a table; more are written down and sorted."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class MergedLevel:
    """Which vertices are alike before and after one layer: classes of all graphs' vertices, counted from 0."""

    before: Ints  # [num_nodes]: the class of each vertex that the layer reads
    after: Ints  # [num_nodes]: the class that it ends in
    chosen: Ints  # [classes after]: one vertex of each


def merged_levels(annotations: Sequence[PathAnnotations], k: int) -> Iterator[MergedLevel]:
    """The vertices of all graphs in layers 1..k: those with equal annotations are alike.

    >>> from pathnn.theory.examples import open_triplet
    >>> from pathnn.theory.hashed import hashed_annotations
    >>> (level,) = merged_levels(hashed_annotations([open_triplet()], collection="ap", k=1), 1)
    >>> level.before.tolist(), len(level.chosen), bool(level.after[1] == level.after[2])
    ([0, 0, 0], 2, True)
    """
    none = np.zeros((k + 1, 2, 0), np.uint64)
    whole = np.concatenate([none, *(one.levels for one in annotations)], axis=2)
    before = np.zeros(whole.shape[2], np.int64)
    for length in range(1, k + 1):
        after = classes(whole[length].T)
        yield MergedLevel(before, after, np.unique(after, return_index=True)[1])
        before = after


@dataclass(frozen=True)
class Sequences:
    """Different token sequences of the paths from some vertices, and how often each occurs."""

    tokens: Tensor  # [n, length + 1], source first: class * width + distance; -1 for a dummy token
    owner: Tensor  # [n]: position of the source among the chosen vertices
    count: Tensor  # [n]


class SequenceFinder:
    """Finds the sequences of chosen vertices, graph by graph and in threads."""

    def __init__(self, graphs: Sequence[Graph], ptr: list[int], config: PathNNConfig, most: int | None) -> None:
        self.mode = MODES[config.collection]
        self.extend = config.extend
        self.distances = bool(config.distances)
        self.dummy = config.k + 1
        self.width = self.dummy if self.distances else 1
        self.ptr = np.asarray(ptr)
        self.most = most
        csrs = [to_csr(*graph) for graph in graphs]
        self.rows = [(csr.rowptr.numpy(), csr.col.numpy()) for csr in csrs]

    def batches(self, level: MergedLevel, length: int, most: int) -> Iterator[Sequences]:
        """The sequences of all chosen vertices, so many at once."""
        waiting: list[tuple[int, Ints, Ints]] = []
        size = 0
        block = 256
        for start in range(0, len(level.chosen), block):
            owners = range(start, min(start + block, len(level.chosen)))
            for owner, (tokens, count) in zip(
                owners, in_threads(lambda i: self.find(int(level.chosen[i]), level.before, length), owners), strict=True
            ):
                if waiting and size + len(count) > most:
                    yield _join(waiting)
                    waiting, size = [], 0
                waiting.append((owner, tokens, count))
                size += len(count)
        if waiting:
            yield _join(waiting)

    def check(self, level: MergedLevel, length: int) -> None:
        """Raise `PathExplosionError` if the sequences of a chosen vertex could not be told apart by a number."""
        for vertex in level.chosen.tolist():
            self._reach(vertex, level.before, length)

    def find(self, vertex: int, ids: Ints, length: int) -> tuple[Ints, Ints]:
        """The different sequences of the paths from one vertex, `[n, length + 1]`, and their counts `[n]`."""
        graph, start, token, kinds, dist, pred = self._reach(vertex, ids, length)
        rowptr, col = self.rows[graph]
        base = len(kinds) + 1
        if length >= rowptr.size - 1 and not self.extend:  # no path visits so many vertices
            return np.empty((0, length + 1), np.int64), np.empty(0, np.int64)
        arguments = (rowptr, col, self.mode, length, start, token, base, self.extend, dist, pred)
        sequence, count = self._count(arguments, base ** (length + 1))
        places = base ** np.arange(length, -1, -1, dtype=np.int64)
        return np.append(kinds, -1)[sequence[:, None] // places % base], count

    def _reach(self, vertex: int, ids: Ints, length: int) -> tuple[int, int, Ints, Ints, Ints, Ints]:
        """The graph of a vertex, its number there, the token of each vertex in reach as a position among the kinds of
        tokens, those kinds, and distances and predecessors."""
        graph = int(np.searchsorted(self.ptr, vertex, side="right")) - 1
        rowptr, col = self.rows[graph]
        first = int(self.ptr[graph])
        near, dist, pred = reach(rowptr, col, self.mode, vertex - first, length)
        kinds, digits = np.unique(
            ids[first + near] * self.width + (dist[near] if self.distances else 0), return_inverse=True
        )
        token = np.zeros(rowptr.size - 1, np.int64)
        token[near] = digits
        base = len(kinds) + 1
        if base ** (length + 1) >= 2**62 and (length < rowptr.size - 1 or self.extend):
            raise PathExplosionError(
                f"vertex {vertex - first} of graph {graph} sees {base} kinds of tokens: too many to merge sequences of "
                f"{length + 1}. Lower k, leave the networks out (--seeds 0), or read every path (--plain)."
            )
        return graph, vertex - first, token, kinds, dist, pred

    def _count(self, arguments: tuple[object, ...], possible: int) -> tuple[Ints, Ints]:
        if possible <= TABLE:
            table = np.zeros(possible, np.int64)
            visit_sequences(*arguments, True, table)
            sequence = table.nonzero()[0]
            return sequence, table[sequence]
        room = np.empty(0, np.int64)
        paths = visit_sequences(*arguments, False, room)
        if self.most is not None and paths > self.most:
            raise PathExplosionError(
                f"a vertex has {paths:,} paths, over max_paths_per_source={self.most:,}. Lower k, or raise the limit."
            )
        room = np.empty(paths, np.int64)
        visit_sequences(*arguments, False, room)
        sequence, count = np.unique(room, return_counts=True)
        return sequence, count.astype(np.int64)


def _join(parts: list[tuple[int, Ints, Ints]]) -> Sequences:
    owner = np.concatenate([np.full(len(count), owner, np.int64) for owner, _, count in parts])
    tokens = np.concatenate([tokens for _, tokens, _ in parts])
    count = np.concatenate([count for _, _, count in parts])
    return Sequences(torch.from_numpy(tokens), torch.from_numpy(owner), torch.from_numpy(count))
