"""Count the token sequences of the paths from one vertex: numba kernels that store no path.

A sequence is one number with its tokens as digits, the token of the source first. If few sequences are possible, a
table counts them; otherwise an array lists them, to be sorted.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pathnn.paths.cpu.walks import bfs, may_step, scratch


@njit(cache=True, nogil=True)
def reach(rowptr, col, mode, root, k):
    """Return the vertices within `k` of `root`, and the distances and chosen predecessors of all vertices."""
    dist, pred, queue = scratch(rowptr.size - 1)
    size = bfs(rowptr, col, root, k, mode, dist, pred, queue)
    return queue[:size], dist, pred


@njit(cache=True, nogil=True)
def visit_sequences(rowptr, col, mode, length, root, token, base, extend, dist, pred, tabulate, out):
    """Visit the paths of one length from `root` and return their number.

    `token[v]` is the digit of a vertex, `base - 1` that of a dummy token. With `tabulate`, `out[sequence]` counts the
    sequences; otherwise `out[i]` is the sequence of the i-th path, up to the size of `out`.
    """
    path = np.empty(length + 1, np.int32)
    slots = np.empty(length + 1, np.int64)
    code = np.empty(length + 1, np.int64)
    found = 0
    depth = 0
    path[0], slots[0], code[0] = root, rowptr[root], token[root]
    while depth >= 0:
        v = path[depth]
        down = False
        if depth == length - 1:
            for slot in range(rowptr[v], rowptr[v + 1]):
                x = col[slot]
                if may_step(mode, x, v, path, depth, dist, pred):
                    found = _put(tabulate, out, found, code[depth] * base + token[x])
        else:
            slot = slots[depth]
            while slot < rowptr[v + 1] and not down:
                x = col[slot]
                slot += 1
                if may_step(mode, x, v, path, depth, dist, pred):
                    slots[depth] = slot
                    depth += 1
                    path[depth], slots[depth] = x, rowptr[x]
                    code[depth] = code[depth - 1] * base + token[x]
                    down = True
        if not down:
            if extend and depth > 0 and _ends(rowptr, col, mode, v, path, depth, dist, pred):
                sequence = code[depth]
                for _ in range(length - depth):
                    sequence = sequence * base + base - 1
                found = _put(tabulate, out, found, sequence)
            depth -= 1
    return found


@njit(cache=True, nogil=True, inline="always")
def _put(tabulate, out, found, sequence):
    if tabulate:
        out[sequence] += 1
    elif found < out.size:
        out[found] = sequence
    return found + 1


@njit(cache=True, nogil=True)
def _ends(rowptr, col, mode, v, path, depth, dist, pred):
    """Return whether no path of the collection continues the one to `v`."""
    for slot in range(rowptr[v], rowptr[v + 1]):
        if may_step(mode, col[slot], v, path, depth, dist, pred):
            return False
    return True
