"""Compute annotated path sets and WL colours as fingerprints, which is fast enough for graphs of real size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray

from pathnn.paths.count import PathExplosionError
from pathnn.paths.cpu.extract import in_threads
from pathnn.paths.cpu.samples import GOLDEN, mix as finalize
from pathnn.paths.csr import to_csr
from pathnn.paths.options import COLLECTIONS, UNLIMITED, Collection, check_collection, check_k
from pathnn.theory.graphs import Graph
from pathnn.theory.kernels import GRAPH, annotate, multiset, total_fingerprint

Lanes = NDArray[np.uint64]
"""Elements of the field; an axis of size 2 has the two elements of one fingerprint."""


@dataclass(frozen=True)
class PathAnnotations:
    """Hold the annotations of the vertices of one graph."""

    levels: Lanes  # 0..k, [k + 1, 2, num_nodes]
    sums: Lanes  # over the paths of length k alone, [2, num_nodes]

    def fingerprints(self) -> Lanes:
        """Return the fingerprint of the multiset of annotations at each level, `[k + 1, 2]`: all a PathNN can know."""
        return np.stack([multiset(GRAPH, *lanes, level) for level, lanes in enumerate(self.levels)])

    def total(self) -> Lanes:
        """Return all that a PathNN can know if last layer and readout are sums, over all paths of length k, `[2]`."""
        return total_fingerprint(self.levels[-2], self.sums)


def hashed_annotations(
    graphs: Sequence[Graph],
    *,
    collection: Collection,
    k: int,
    residual: bool = True,
    extend: bool = False,
    distances: bool | None = None,
    max_steps: int | None = None,
) -> list[PathAnnotations]:
    """Compute the annotations of all vertices of each graph at levels 0..k.

    The annotation of v at level l is the multiset, over all paths of length l from v, of the sequences of the
    level l - 1 annotations of their vertices, as two integers modulo 2^61 - 1. Equal annotations have equal integers.
    Different annotations have equal integers with a probability below k^2 / 2^120, if the integers of tokens are
    random. The defaults are those of the network: the residual term, and distances for AP. As many threads as torch
    uses share the graphs.

    Args:
        graphs: `(edge_index, num_nodes)` pairs.
        collection: `"sp"`, `"sp+"` or `"ap"`.
        k: the largest path length, in edges.
        residual: whether an annotation includes that of the vertex at the previous level, as `h + sum` in the model.
        extend: whether to extend paths that no other path continues by dummy tokens.
        distances: whether tokens include their distance to the source; None for only with `"ap"`.
        max_steps: the largest number of steps for one graph; None for no limit.

    Raises:
        PathExplosionError: a graph takes more steps.

    >>> from pathnn.theory.examples import triangle
    >>> levels = hashed_annotations([triangle()], collection="ap", k=2)[0].levels
    >>> levels.shape, bool((levels[2] == levels[2, :, :1]).all())        # all vertices look alike
    ((3, 2, 3), True)
    """
    check_collection(collection)
    check_k(k)
    distances = collection == "ap" if distances is None else distances
    limit = UNLIMITED if max_steps is None else max_steps

    def one(index: int) -> PathAnnotations:
        edge_index, num_nodes = graphs[index]
        csr = to_csr(edge_index, num_nodes)
        levels, sums = np.zeros((k + 1, 2, num_nodes), np.uint64), np.zeros((2, num_nodes), np.uint64)
        rowptr, col = csr.rowptr.numpy(), csr.col.numpy()
        steps = annotate(rowptr, col, COLLECTIONS[collection].rule, k, residual, extend, distances, limit, levels, sums)
        if steps < 0:
            raise PathExplosionError(
                f"graph {index} takes more than max_steps={limit:,} steps at k={k}. "
                "Lower k, use collection='sp+', or raise max_steps."
            )
        return PathAnnotations(levels, sums)

    return in_threads(one, range(len(graphs)))


def classes(rows: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return a number from 0 for each row of `[n, 2]`; equal rows have equal numbers."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def wl_fingerprints(graphs: Sequence[Graph]) -> Lanes:
    """Compute the stable 1-WL colours of each graph as two integers.

    The result is `[graphs, 2]`. Its rows are equal if 1-WL confuses the graphs.

    >>> from pathnn.theory.examples import hexagon, open_triplet, two_triangles
    >>> first, second, third = wl_fingerprints([hexagon(), two_triangles(), open_triplet()])
    >>> bool((first == second).all()), bool((first == third).all())
    (True, False)
    """
    sizes = [n for _, n in graphs]
    edges = [edge_index + first for (edge_index, _), first in zip(graphs, accumulate(sizes, initial=0), strict=False)]
    csr = to_csr(torch.cat([torch.zeros(2, 0, dtype=torch.long), *edges], dim=1), sum(sizes))

    def add_neighbors(colors: Lanes) -> Lanes:
        return np.diff(_sums(_mix(colors + NEIGHBOR)[:, csr.col.numpy()])[:, csr.rowptr.numpy()])

    colors = _refine(np.zeros((2, sum(sizes)), np.uint64) + LANES, add_neighbors)
    return np.diff(_sums(_mix(colors))[:, list(accumulate(sizes, initial=0))]).T


LANES, NEIGHBOR, LEFT, RIGHT = np.array([[1], [2]], np.uint64), *np.arange(3, 6, dtype=np.uint64)
"""Constants that are added to colours, so that lanes and colours in different places are independent."""


def _mix(values: Lanes) -> Lanes:
    """Map integers to pseudorandom integers, as the kernels do."""
    return finalize.py_func(values + GOLDEN)


def _sums(values: Lanes) -> Lanes:
    """Return the sums of the first 0, 1, ... values in each lane, modulo 2^64."""
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))


def _refine(colors: Lanes, add_around: Callable[[Lanes], Lanes]) -> Lanes:
    """Hash each colour with the sum of the colours around it, until no class splits; the first axis has the lanes."""
    found = -1
    while found < (found := len(np.unique(colors[0]))):
        colors = _mix(_mix(colors) + add_around(colors))
    return colors


def folklore_fingerprints(graphs: Sequence[Graph]) -> Lanes:
    """Compute the stable 2-FWL colours of each graph, `[graphs, 2]`: rows are equal if 3-WL confuses the graphs."""

    def one(index: int) -> Lanes:
        edge_index, num_nodes = graphs[index]
        kind = np.zeros((num_nodes, num_nodes), np.uint64)
        kind[tuple(edge_index.numpy())] = 1
        np.fill_diagonal(kind, 2)
        pairs = _refine(kind + 3 * LANES[:, :, None], lambda colors: _mix(colors + LEFT) @ _mix(colors + RIGHT))
        return _mix(pairs).sum(axis=(1, 2))

    return np.array(in_threads(one, range(len(graphs))), np.uint64).reshape(-1, 2)
