"""Compiled loops for AP with distances: token tries, and the distances that they need."""

from __future__ import annotations

import numpy as np
from numba import njit

from pathnn.paths.cpu.arrays import smallest_of_components
from pathnn.paths.cpu.walks import SP_PLUS, bfs, scratch


@njit(cache=True, nogil=True)
def component_spans(rowptr, col):
    """Smallest and largest vertex of each vertex's component."""
    smallest = smallest_of_components(rowptr, col)
    largest = np.empty_like(smallest)
    for v in range(smallest.size):
        largest[smallest[v]] = v
    for v in range(smallest.size):
        largest[v] = largest[smallest[v]]
    return smallest, largest


@njit(cache=True, nogil=True)
def fill_table(rowptr, col, k, start, stop, distance_ptr, distance_of):
    """Write the distance of `x` to `v` to `distance_of[distance_ptr[v] + x]`: a range of `v`, all `x` within `k`."""
    dist, pred, queue = scratch(rowptr.size - 1)
    for root in range(start, stop):
        size = bfs(rowptr, col, root, k, np.int64(SP_PLUS), dist, pred, queue)
        for i in range(size):
            x = queue[i]
            distance_of[distance_ptr[root] + x] = dist[x]
            dist[x] = -1


@njit(cache=True, nogil=True)
def ball_sizes(rowptr, col, k, start, stop, sizes):
    """Write the number of vertices within `k` of each vertex of the range, itself included."""
    dist, pred, queue = scratch(rowptr.size - 1)
    for root in range(start, stop):
        size = bfs(rowptr, col, root, k, np.int64(SP_PLUS), dist, pred, queue)
        sizes[root] = size
        for i in range(size):
            dist[queue[i]] = -1


@njit(cache=True, nogil=True)
def fill_balls(rowptr, col, k, start, stop, distance_ptr, distance_of):
    """Write the balls of the range: each vertex as `id * 256 + distance`, ascending."""
    dist, pred, queue = scratch(rowptr.size - 1)
    for root in range(start, stop):
        size = bfs(rowptr, col, root, k, np.int64(SP_PLUS), dist, pred, queue)
        ball = distance_of[distance_ptr[root] : distance_ptr[root] + size]
        for i in range(size):
            x = queue[i]
            ball[i] = np.int64(x) * 256 + dist[x]
            dist[x] = -1
        ball.sort()


@njit(cache=True, nogil=True, inline="always")
def distance_to(distance_ptr, distance_of, direct, center, x):
    """Distance of `x` to `center`, which must be within `k`."""
    if direct:
        return distance_of[distance_ptr[center] + x]
    return distance_of[_search(distance_ptr, distance_of, center, x)] & 255


@njit(cache=True, nogil=True)
def _search(distance_ptr, distance_of, center, x):
    low, high = distance_ptr[center], distance_ptr[center + 1]
    wanted = np.int64(x) * 256 + 255
    while high - low > 1:
        middle = (low + high) >> 1
        if distance_of[middle] <= wanted:
            low = middle
        else:
            high = middle
    return low


BLOCK = 1 << 15  # tokens that are listed at once: they stay in the cache, and loops over them are long


@njit(cache=True, nogil=True)
def walk_token_tries(
    rowptr, col, row, distance_ptr, distance_of, direct, k, start, stop, most,
    starts, child_starts, vertex, parent, edge, distance,
):  # fmt: skip
    """Write the tries whose roots are the given range of far ends; returns the number of entries `[l, t]`.

    `most[v, l - 1]` bounds the number of paths of length `l` from `v`.
    """
    # one path after the other, length + 1 values each, in reading order
    vertices = np.empty(0, np.int32)
    rows = np.empty(0, np.int32)
    distances = np.empty(0, np.uint8)
    entry = np.empty(0, np.int32)
    spares = vertices, rows, distances, np.empty(k + 3, np.uint64)
    line_start = np.zeros(k + 2, np.int64)
    number = np.zeros(k + 1, np.int64)
    count = np.zeros((k + 1, k + 1), np.int64)
    first = start
    while first < stop:
        last = first
        tokens = 0
        while last < stop and (last == first or tokens < BLOCK):
            for length in range(1, k + 1):
                tokens += np.int64(most[last, length - 1]) * (length + 1)
            last += 1
        widest = 0
        for length in range(1, k + 1):
            paths = np.int64(0)
            for v in range(first, last):
                paths += np.int64(most[v, length - 1])
            if paths > widest:
                widest = paths
            line_start[length + 1] = line_start[length] + paths * (length + 1)
        if line_start[k + 1] > vertices.size:
            room = line_start[k + 1] * 5 // 4
            vertices, rows, distances = (
                np.empty(room, np.int32),
                np.empty(room, np.int32),
                np.empty(room, np.uint8),
            )
            spares = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint8), spares[3]
        if widest > entry.size:
            entry = np.empty(widest * 5 // 4 + 1, np.int32)
        _list_tokens(
            rowptr,
            col,
            row,
            distance_ptr,
            distance_of,
            direct,
            k,
            first,
            last,
            line_start,
            number,
            vertices,
            rows,
            distances,
        )
        for length in range(1, k + 1):
            _write_tries(
                number[length], length, line_start[length], vertices, rows, distances, entry, spares, count,
                starts, child_starts, vertex, parent, edge, distance,
            )  # fmt: skip
        first = last
    return count


@njit(cache=True, nogil=True)
def _list_tokens(
    rowptr, col, row, distance_ptr, distance_of, direct, k, first, last, line_start, number, vertices, rows, distances
):
    """List the paths of each length between a far end of the range and any source, each from a shorter one."""
    one = np.uint64(1)
    at = np.uint64(line_start[1])
    for root in range(first, last):
        for slot in range(np.uint64(rowptr[root]), np.uint64(rowptr[root + 1])):
            vertices[at], vertices[at + one] = root, col[slot]
            rows[at + one] = row[slot]
            distances[at], distances[at + one] = 1, 0
            at += np.uint64(2)
    number[1] = (np.int64(at) - line_start[1]) // 2
    for length in range(2, k + 1):
        size = np.uint64(length)
        at = np.uint64(line_start[length])
        line = np.uint64(line_start[length - 1])
        for _ in range(number[length - 1]):
            v = np.uint64(vertices[line + size - one])
            for slot in range(np.uint64(rowptr[v]), np.uint64(rowptr[v + one])):
                x = col[slot]
                fresh = True
                for j in range(size - one):
                    fresh &= vertices[line + j] != x
                if fresh:
                    for j in range(size):
                        vertices[at + j] = vertices[line + j]
                        rows[at + j] = rows[line + j]
                    for j in range(size - one):
                        distances[at + j] = distance_to(distance_ptr, distance_of, direct, x, vertices[line + j])
                    vertices[at + size] = x
                    rows[at + size] = row[slot]
                    distances[at + size - one], distances[at + size] = 1, 0
                    at += size + one
            line += size
        number[length] = (np.int64(at) - line_start[length]) // (length + 1)


@njit(cache=True, nogil=True)
def _write_tries(
    n, length, first_line, vertices, rows, distances, entry, spares,
    count, starts, child_starts, vertex, parent, edge, distance,
):  # fmt: skip
    """Turn `n` listed paths of one length into entries."""
    width = np.uint64(length + 1)
    n = np.uint64(n)
    for i in range(n):
        entry[i] = 0
    before = np.int32(0)
    for t in range(length + 1):
        if t < length - 1:  # the last two tokens are always 1 and 0 from the source
            _sort_by_distance(n, width, np.uint64(t), np.uint64(first_line), vertices, rows, distances, entry, spares)
        token = np.uint64(first_line + t)
        first, place, child = (
            np.uint64(count[length, t]),
            np.uint64(starts[length, t]),
            np.uint64(child_starts[length, t]),
        )
        at = first - np.uint64(1)
        above, last_x, last_d = np.int32(-1), np.int32(-1), np.uint8(255)
        for i in range(n):
            # the same entry is written once per path through it: cheaper than a branch that nobody can predict
            x, d, mine = vertices[token], distances[token], entry[i]
            at += np.uint64((mine != above) | (x != last_x) | (d != last_d))
            above, last_x, last_d = mine, x, d
            vertex[place + at] = x
            distance[place + at] = d
            if t > 0:
                parent[child + at] = before + mine
                edge[child + at] = rows[token]
            entry[i] = np.int32(at - first)
            token += width
        before = np.int32(first)
        count[length, t] = np.int64(at + np.uint64(1))


@njit(cache=True, nogil=True)
def _sort_by_distance(n, width, t, first_line, vertices, rows, distances, entry, spares):
    """Sort the paths that agree in parent and vertex by the distance of token `t`, where they are not yet sorted."""
    one = np.uint64(1)
    i = one
    while i < n:
        here = first_line + i * width + t
        before = here - width
        together = (entry[i] == entry[i - one]) & (vertices[here] == vertices[before])
        if together & (distances[here] < distances[before]):
            start, stop = i - one, i + one
            while start > 0 and entry[start - one] == entry[i] and vertices[before - width] == vertices[here]:
                start -= one
                before -= width
            after = here + width
            while stop < n and entry[stop] == entry[i] and vertices[after] == vertices[here]:
                stop += one
                after += width
            first, last = first_line + start * width, first_line + stop * width
            _counting_sort(first, last, width, t, vertices, rows, distances, spares)
            i = stop
        else:
            i += one


@njit(cache=True, nogil=True)
def _counting_sort(start, stop, width, t, vertices, rows, distances, spares):
    """Stable sort of the paths written from `start` to `stop` by the distance of token `t`."""
    spare_vertices, spare_rows, spare_distances, place = spares
    for d in range(width + np.uint64(2)):
        place[d] = 0
    for line in range(start, stop, width):
        place[np.uint64(distances[line + t]) + np.uint64(1)] += width
    for d in range(width + np.uint64(1)):
        place[d + np.uint64(1)] += place[d]
    for line in range(start, stop, width):
        d = distances[line + t]
        to = place[d]
        place[d] += width
        for j in range(width):
            spare_vertices[to + j] = vertices[line + j]
            spare_rows[to + j] = rows[line + j]
            spare_distances[to + j] = distances[line + j]
    for j in range(stop - start):
        vertices[start + j] = spare_vertices[j]
        rows[start + j] = spare_rows[j]
        distances[start + j] = spare_distances[j]
