"""Colour refinement of vertices and of pairs of vertices: numba kernels."""

import numpy as np
from numba import njit

from pathnn.theory.field import add, element, mix_pair, multiply

COLOR, NEIGHBOR, LEFT, RIGHT, PAIR, SUMMARY = 11, 12, 13, 14, 15, 16  # kinds of keys
ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def _count_distinct(first):
    """Number of different values; one lane is enough to see a partition split."""
    ordered = np.sort(first)
    return 0 if not ordered.size else 1 + np.sum(ordered[1:] != ordered[:-1])


@njit(cache=True, nogil=True)
def _summary(first, second, rounds):
    out = np.empty(2, np.uint64)
    for lane in range(2):
        total = np.uint64(first.size)
        for i in range(first.size):
            total = add(total, element(lane, SUMMARY, first[i], second[i], rounds))
        out[lane] = total
    return out


@njit(cache=True, nogil=True)
def refine_vertices(rowptr, col, colors):
    """The summary `[2]` of the stable 1-WL colours, from `colors[lane, v]` on."""
    n = rowptr.size - 1
    found, rounds = _count_distinct(colors[0]), 0
    shown = np.empty((2, n), np.uint64)
    while True:
        rounds += 1
        for lane in range(2):
            for v in range(n):
                shown[lane, v] = element(lane, NEIGHBOR, colors[0, v], colors[1, v], 0)
        after = np.empty((2, n), np.uint64)
        for lane in range(2):
            for v in range(n):
                total = ZERO
                for slot in range(rowptr[v], rowptr[v + 1]):
                    total = add(total, shown[lane, col[slot]])
                after[lane, v] = mix_pair(lane, COLOR, colors[0, v], colors[1, v], total)
        colors, before = after, found
        found = _count_distinct(colors[0])
        if found == before:
            return _summary(colors[0], colors[1], rounds)


@njit(cache=True, nogil=True)
def refine_pairs(kind):
    """The summary `[2]` of the stable 2-FWL colours, from `kind[u, v]` on: 0 no edge, 1 edge, 2 the same vertex."""
    n = kind.shape[0]
    colors = np.empty((2, n, n), np.uint64)
    for lane in range(2):
        for u in range(n):
            for v in range(n):
                colors[lane, u, v] = mix_pair(lane, PAIR, ZERO, ZERO, kind[u, v])
    found, rounds = _count_distinct(colors[0].ravel()), 0
    left, right = np.empty((n, n), np.uint64), np.empty((n, n), np.uint64)
    while True:
        rounds += 1
        after = np.empty((2, n, n), np.uint64)
        for lane in range(2):
            for u in range(n):
                for v in range(n):
                    left[u, v] = element(lane, LEFT, colors[0, u, v], colors[1, u, v], 0)
                    right[v, u] = element(lane, RIGHT, colors[0, u, v], colors[1, u, v], 0)
            for u in range(n):
                for v in range(n):
                    total = ZERO
                    for w in range(n):
                        total = add(total, multiply(left[u, w], right[v, w]))
                    after[lane, u, v] = mix_pair(lane, PAIR, colors[0, u, v], colors[1, u, v], total)
        colors, before = after, found
        found = _count_distinct(colors[0].ravel())
        if found == before:
            return _summary(colors[0].ravel(), colors[1].ravel(), rounds)
