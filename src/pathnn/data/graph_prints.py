"""Fingerprints of graphs that do not depend on the order of their vertices: graphs that come back are known again."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from pathnn.data.packed import PackedGraphs, widen

ROUNDS = 4
FIRST, SECOND, THIRD = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def graph_prints(graphs: PackedGraphs) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A number for each graph, from its vertices, edges and their features: `[G]`.

    Vertices are coloured by their features, and in each of `ROUNDS` rounds by the colours around them, as in the
    Weisfeiler-Leman test; the print is that of all colours. Graphs that such a test cannot tell apart have the same.

    >>> import torch
    >>> path, same, less = [[0, 1, 1, 2], [1, 0, 2, 1]], [[0, 2, 0, 1], [2, 0, 1, 0]], [[0, 1], [1, 0]]
    >>> one, two, other = graph_prints(PackedGraphs.from_edges([torch.tensor(e) for e in (path, same, less)], [3] * 3))
    >>> bool(one == two), bool(one == other)
    (True, False)
    """
    source, target = graphs.union().cpu().numpy()
    order = np.argsort(target, kind="stable")
    ends = np.searchsorted(target[order], np.arange(graphs.num_nodes + 1))
    source, edges = source[order], _rows(graphs.edge_attr, graphs.num_edges)[order]
    colors = _rows(graphs.x, graphs.num_nodes)
    for _ in range(ROUNDS):
        around = _mixed(colors[source] * FIRST + edges)
        colors = _mixed(colors * SECOND + _sums(around, ends))
    return _mixed(_sums(colors, graphs.node_ptr.numpy()) + graphs.node_ptr.diff().numpy().astype(np.uint64) * FIRST)


def _rows(values: Tensor | None, number: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A number for each row, from the bits of its values."""
    found = np.full(number, FIRST)
    if values is None or not number:
        return found
    table = widen(values.detach().cpu()).reshape(number, -1)
    numbers = (table.double() + 0.0).numpy() if table.is_floating_point() else table.long().numpy()  # -0.0 is 0.0
    for column in np.ascontiguousarray(numbers).view(np.uint64).T:
        found = _mixed(found * SECOND + column)
    return found


def _sums(values: np.ndarray[Any, np.dtype[np.uint64]], ends: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Sums of consecutive values, modulo 2**64: those between each two of `ends`."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return np.diff(total[ends])


def _mixed(values: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The same numbers, their bits spread over all places (the last steps of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * SECOND
    values = (values ^ (values >> np.uint64(27))) * THIRD
    return values ^ (values >> np.uint64(31))
