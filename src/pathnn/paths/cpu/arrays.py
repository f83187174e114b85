"""Compiled loops on arrays: an edge list to CSR, closing gaps.

Loops instead of numpy's functions: each of those would be compiled as well, which the first call of a user waits for.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def compress(source, target, n):
    """Rows sorted by target, without self-loops, repeated edges once (their first row).

    Returns rowptr, col, row, the slot of each slot's reverse (-1: none), and an array of one edge (source, target)
    that has no reverse, or an empty one.
    """
    order = _sorted_order(source, target, n)
    rowptr = np.zeros(n + 1, np.int64)
    col = np.empty(source.size, np.int32)
    row = np.empty(source.size, np.int32)
    size = 0
    last_u, last_v = -1, -1
    for i in range(source.size):
        e = order[i] if order.size else i
        u, v = source[e], target[e]
        if u != v and (u != last_u or v != last_v):
            col[size] = v
            row[size] = e
            size += 1
            rowptr[u + 1] += 1
            last_u, last_v = u, v
    for v in range(n):
        rowptr[v + 1] += rowptr[v]
    reverse = np.empty(size, np.int64)
    one_way = _match(rowptr, col[:size], reverse)
    return rowptr, col[:size], row[:size], reverse, one_way


@njit(cache=True, nogil=True)
def _sorted_order(source, target, n):
    """The stable order by (source, target), by two counting sorts; empty if the edges are in that order already."""
    in_order = True
    for e in range(1, source.size):
        in_order &= (source[e - 1] < source[e]) | ((source[e - 1] == source[e]) & (target[e - 1] <= target[e]))
    if in_order:
        return np.empty(0, np.int64)
    order = np.empty(source.size, np.int64)
    for e in range(order.size):
        order[e] = e
    by_target = _sort_by_count(target, order, n)
    return _sort_by_count(source, by_target, n)


@njit(cache=True, nogil=True)
def _sort_by_count(keys, order, n):
    place = np.zeros(n + 1, np.int64)
    for key in keys:
        place[key + 1] += 1
    for v in range(n):
        place[v + 1] += place[v]
    out = np.empty_like(order)
    for e in order:
        out[place[keys[e]]] = e
        place[keys[e]] += 1
    return out


@njit(cache=True, nogil=True)
def _match(rowptr, col, reverse):
    """Write the slot of each slot's reverse, or -1; returns the first edge that has none.

    In sorted rows, the reverses of row after row lie from left to right in every row.
    """
    n = rowptr.size - 1
    filled = np.empty(n, np.int64)
    for v in range(n):
        filled[v] = rowptr[v]
    one_way = np.empty(2, np.int64)
    missing = False
    for u in range(n):
        for slot in range(rowptr[u], rowptr[u + 1]):
            v = col[slot]
            while filled[v] < rowptr[v + 1] and col[filled[v]] < u:
                filled[v] += 1
            if filled[v] < rowptr[v + 1] and col[filled[v]] == u:
                reverse[slot] = filled[v]
            else:
                reverse[slot] = -1
                if not missing:
                    one_way[0], one_way[1] = u, v
                    missing = True
    return one_way if missing else one_way[:0]


@njit(cache=True, nogil=True)
def close_gaps(values, starts, sizes):
    """Move segments `values[starts[i]:starts[i] + sizes[i]]` to the front, one after the other; returns their end."""
    at = 0
    for i in range(starts.size):
        if at != starts[i]:
            to, start = np.uint64(at), np.uint64(starts[i])
            for j in range(np.uint64(sizes[i])):  # to the front and from the front, so the two may overlap
                values[to + j] = values[start + j]
        at += sizes[i]
    return at


@njit(cache=True, nogil=True)
def close_gaps_shifted(values, starts, sizes, shifts):
    """The same, adding `shifts[i]` to every value of segment `i`."""
    at = 0
    for i in range(starts.size):
        shift = np.int32(shifts[i])
        to, start = np.uint64(at), np.uint64(starts[i])
        for j in range(np.uint64(sizes[i])):
            values[to + j] = values[start + j] + shift
        at += sizes[i]
    return at


@njit(cache=True, nogil=True)
def smallest_of_components(rowptr, col):
    """The smallest vertex of each vertex's component, in which edges connect both ways."""
    n = rowptr.size - 1
    label = np.empty(n, np.int64)
    for v in range(n):
        label[v] = v
    for v in range(n):
        for slot in range(rowptr[v], rowptr[v + 1]):
            a, b = np.int64(v), np.int64(col[slot])
            while label[a] != a:
                label[a] = label[label[a]]
                a = label[a]
            while label[b] != b:
                label[b] = label[label[b]]
                b = label[b]
            label[max(a, b)] = min(a, b)
    for v in range(n):
        label[v] = label[label[v]]
    return label
