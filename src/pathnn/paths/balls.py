"""Distances between near vertices, for the numba kernels.

Where the graphs are small, a square table per connected component, addressed directly; else, for each vertex, the ball
of radius `k` around it, sorted by id and searched.
"""

import numpy as np
from numba import njit

from pathnn.paths.walks import SP_PLUS, bfs, scratch


@njit(cache=True, nogil=True)
def component_spans(rowptr, col):
    """Smallest and largest vertex of each vertex's connected component."""
    n = rowptr.size - 1
    label = np.full(n, -1, np.int32)
    largest = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    for root in range(n):
        if label[root] >= 0:
            continue
        label[root] = root
        queue[0] = root
        head, tail, high = 0, 1, root
        while head < tail:
            v = queue[head]
            head += 1
            for slot in range(rowptr[v], rowptr[v + 1]):
                x = col[slot]
                if label[x] < 0:
                    label[x] = root
                    high = max(high, x)
                    queue[tail] = x
                    tail += 1
        for i in range(tail):
            largest[queue[i]] = high
    return label, largest


@njit(cache=True, nogil=True)
def fill_table(rowptr, col, k, start, stop, near_ptr, near):
    """Write `near[near_ptr[v] + x]`, the distance of `x` to `v`, for the given range of `v` and all `x` within `k`."""
    dist, pred, queue = scratch(rowptr.size - 1)
    for root in range(start, stop):
        size = bfs(rowptr, col, root, k, SP_PLUS, dist, pred, queue)
        for i in range(size):
            x = queue[i]
            near[near_ptr[root] + x] = dist[x]
            dist[x] = -1


@njit(cache=True, nogil=True)
def ball_sizes(rowptr, col, k, start, stop, sizes):
    """Write the number of vertices within `k` of each vertex of the range, itself included."""
    dist, pred, queue = scratch(rowptr.size - 1)
    for root in range(start, stop):
        size = bfs(rowptr, col, root, k, SP_PLUS, dist, pred, queue)
        sizes[root] = size
        for i in range(size):
            dist[queue[i]] = -1


@njit(cache=True, nogil=True)
def fill_balls(rowptr, col, k, start, stop, near_ptr, near):
    """Write the balls of the range: each vertex as `id * 256 + distance`, ascending."""
    dist, pred, queue = scratch(rowptr.size - 1)
    for root in range(start, stop):
        size = bfs(rowptr, col, root, k, SP_PLUS, dist, pred, queue)
        ball = near[near_ptr[root] : near_ptr[root] + size]
        for i in range(size):
            x = queue[i]
            ball[i] = np.int64(x) * 256 + dist[x]
            dist[x] = -1
        ball.sort()


@njit(cache=True, nogil=True, inline="always")
def distance_to(near_ptr, near, direct, center, x):
    """Distance of `x` to `center`, which must be within `k`."""
    if direct:
        return near[near_ptr[center] + x]
    return near[_search(near_ptr, near, center, x)] & 255


@njit(cache=True, nogil=True)
def _search(near_ptr, near, center, x):
    low, high = near_ptr[center], near_ptr[center + 1]
    wanted = np.int64(x) * 256 + 255
    while high - low > 1:
        middle = (low + high) >> 1
        if near[middle] <= wanted:
            low = middle
        else:
            high = middle
    return low
