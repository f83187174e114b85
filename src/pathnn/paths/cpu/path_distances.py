"""Compiled search for the distances of the vertices of given paths to their sources, and no others."""

from __future__ import annotations

import numpy as np
from numba import njit

from pathnn.paths.cpu.walks import scratch


@njit(cache=True, nogil=True)
def fill_path_distances(rowptr, col, into, sources, k, rows, begin, ptr, start, stop, out):
    """Write the distance from its source of every vertex of the paths whose source is in the range.

    The paths of length `l` from `v` begin in `rows` at `begin[ptr[l - 1, v]:ptr[l - 1, v + 1]]`. A vertex at position
    `p` is at most `p` away; the search from the source stops where searching back from the vertices costs less.
    """
    n = rowptr.size - 1
    dist, _, queue = scratch(n)
    behind, _, behind_queue = scratch(n)
    nearest = np.zeros(n, np.int32)  # the first position of a vertex in a path; afterwards its distance
    wanted = np.empty(n, np.int32)
    for root in range(start, stop):
        number, edges, farthest = 0, 0, 0
        for length in range(1, k + 1):
            for at in begin[ptr[length - 1, root] : ptr[length - 1, root + 1]]:
                for p in range(1, length + 1):
                    x = rows[at + p]
                    if x < 0:
                        break
                    if nearest[x] == 0:
                        wanted[number] = x
                        number += 1
                        nearest[x] = p
                        edges += into[x + 1] - into[x]
                    nearest[x] = min(nearest[x], p)
        for i in range(number):
            farthest = max(farthest, nearest[wanted[i]])
        radius, size = _grow_ball(rowptr, col, root, farthest - 1, edges, dist, queue)
        for i in range(number):
            x = wanted[i]
            if dist[x] >= 0:
                nearest[x] = dist[x]
            elif nearest[x] - 1 > radius:
                nearest[x] = _search_back(into, sources, x, radius, nearest[x], dist, behind, behind_queue)
        for length in range(1, k + 1):
            for at in begin[ptr[length - 1, root] : ptr[length - 1, root + 1]]:
                out[at] = 0
                for p in range(1, length + 1):
                    x = rows[at + p]
                    out[at + p] = nearest[x] if x >= 0 else k + 1
        for i in range(number):
            nearest[wanted[i]] = 0
        for i in range(size):
            dist[queue[i]] = -1


@njit(cache=True, nogil=True)
def _grow_ball(rowptr, col, root, most, edges, dist, queue):
    """Fill `dist` (-1 before) up to a radius of at most `most`; return the radius and how many are in `queue`.

    From half of `most` on, the ball stops growing when its next step goes over more than `edges` edges.
    """
    dist[root] = 0
    queue[0] = root
    radius, first, last = 0, 0, 1
    while radius < most and first < last:
        cost = 0
        for i in range(first, last):
            cost += rowptr[queue[i] + 1] - rowptr[queue[i]]
        if 2 * radius >= most and cost > edges:
            break
        size = last
        for i in range(first, last):
            for slot in range(rowptr[queue[i]], rowptr[queue[i] + 1]):
                x = col[slot]
                if dist[x] < 0:
                    dist[x] = radius + 1
                    queue[size] = x
                    size += 1
        radius, first, last = radius + 1, last, size
    return (most if first == last else radius), last


@njit(cache=True, nogil=True)
def _search_back(into, sources, x, radius, most, dist, behind, queue):
    """Return the distance of `x`, at most `most`, from the source of the ball `dist` of the given radius."""
    behind[x] = 0
    queue[0] = x
    head, tail, found = 0, 1, most
    while head < tail and found == most:
        v = queue[head]
        head += 1
        if behind[v] + radius + 1 == most:
            break
        for slot in range(into[v], into[v + 1]):
            u = sources[slot]
            if dist[u] >= 0:
                found = radius + behind[v] + 1
                break
            if behind[u] < 0:
                behind[u] = behind[v] + 1
                queue[tail] = u
                tail += 1
    for i in range(tail):
        behind[queue[i]] = -1
    return found
