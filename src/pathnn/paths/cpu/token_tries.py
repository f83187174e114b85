"""Compiled loops that turn lists of paths into tries."""

from __future__ import annotations

import numpy as np
from numba import njit

from pathnn.paths.cpu.walks import AP, SP_PLUS, bfs, list_walks, scratch


@njit(cache=True, nogil=True)
def smallest_of_components(rowptr, col):
    """Return the smallest vertex of each vertex's component, in which edges connect both ways."""
    n = rowptr.size - 1
    label = np.arange(n)
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


BLOCK = 1 << 15  # tokens that are listed at once: they stay in the cache, and loops over them are long


@njit(cache=True, nogil=True)
def walk_tries(
    rowptr, col, row, mode, distance_ptr, distance_of, k, roots, most,
    starts, child_starts, count, vertex, parent, edge, distance,
):  # fmt: skip
    """Write the tries whose roots are the given far ends; add the number of entries `[l, t]` to `count`.

    `most[v, l - 1]` bounds the number of paths of length `l` from `v`. Without distances, `distance` is empty.
    """
    # one path after the other, length + 1 values each, in reading order
    vertices, rows, entry = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32)
    distances = np.empty(0, np.uint8)
    spares = vertices, rows, distances, np.empty(k + 3, np.uint64)
    searched = scratch(0 if mode == AP else rowptr.size - 1)
    no_ends, no_starts = np.empty(0, np.uint8), np.empty(0, np.int64)
    number, line_start = np.empty(k + 1, np.int64), np.zeros(k + 2, np.int64)
    first = 0
    while first < roots.size:
        last = first
        tokens = 0
        while last < roots.size and (last == first or tokens < BLOCK):
            for length in range(1, k + 1):
                tokens += np.int64(most[roots[last], length - 1]) * (length + 1)
            last += 1
        widest = 0
        for length in range(1, k + 1):
            paths = np.int64(0)
            for v in roots[first:last]:
                paths += np.int64(most[v, length - 1])
            widest = max(widest, paths)
            line_start[length + 1] = line_start[length] + paths * (length + 1)
        if line_start[k + 1] > vertices.size:
            room = line_start[k + 1] * 5 // 4
            vertices, rows, distances = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint8)
            distances[:] = 0  # the same for all, if there are none
            spares = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint8), spares[3]
        if widest > entry.size:
            entry = np.empty(widest * 5 // 4 + 1, np.int32)
        number[:] = 0
        list_walks(
            rowptr, col, row, mode, k, roots[first:last], searched, line_start, number, vertices, rows,
            no_starts, no_ends,
        )  # fmt: skip
        for length in range(1, k + 1):
            if distance.size > 0:
                _look_up(number[length], length, line_start[length], vertices, distance_ptr, distance_of, distances)
            _write_tries(
                number[length], length, line_start[length], vertices, rows, distances, entry, spares, count[length],
                starts[length], child_starts[length], vertex, parent, edge, distance, False,
            )  # fmt: skip
        first = last


@njit(cache=True, nogil=True)
def _look_up(n, length, first_line, vertices, distance_ptr, distance_of, distances):
    """Write the distance of every token of `n` listed paths of one length."""
    line, size = np.uint64(first_line), np.uint64(length)
    for _ in range(n):
        row = distance_ptr[np.uint64(vertices[line + size])]
        for j in range(size - np.uint64(1)):
            distances[line + j] = distance_of[np.uint64(row + vertices[line + j])]
        distances[line + size - np.uint64(1)], distances[line + size] = 1, 0
        line += size + np.uint64(1)


@njit(cache=True, nogil=True)
def _write_tries(
    n, length, first_line, vertices, rows, distances, entry, spares,
    count, starts, child_starts, vertex, parent, edge, distance, repeats,
):  # fmt: skip
    """Turn `n` listed paths of one length, sorted by their vertices, into entries; add their number to `count`.

    With `repeats`, a path that occurs several times has as many entries at the last level.
    """
    width = np.uint64(length + 1)
    entry[:n] = 0
    n = np.uint64(n)
    before = np.int32(0)
    for t in range(length + 1):
        if distance.size > 0 and t < length - 1:  # the last two tokens are always 1 and 0 from the source
            _sort_by_distance(n, width, np.uint64(t), np.uint64(first_line), vertices, rows, distances, entry, spares)
        token = np.uint64(first_line + t)
        first, place, child = np.uint64(count[t]), np.uint64(starts[t]), np.uint64(child_starts[t])
        at = first - np.uint64(1)
        apart = repeats and t == length
        above, last_x, last_d = np.int32(-1), np.int32(-1), np.uint8(255)
        for i in range(n):
            # the same entry is written once per path through it: cheaper than a branch that nobody can predict
            x, d, mine = vertices[token], distances[token], entry[i]
            at += np.uint64((mine != above) | (x != last_x) | (d != last_d) | apart)
            above, last_x, last_d = mine, x, d
            vertex[place + at] = x
            if distance.size > 0:
                distance[place + at] = d
            if t > 0:
                parent[child + at] = before + mine
                edge[child + at] = rows[token]
            entry[i] = np.int32(at - first)
            token += width
        before = np.int32(first)
        count[t] = np.int64(at + np.uint64(1))


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


@njit(cache=True, nogil=True)
def read_tokens(paths, rowptr, col, row):
    """Return vertices and rows of edges in reading order, and a step (from, to) that is no edge or an empty array.

    `paths` is `[n, length + 1]`, source first; the graph has its edges turned around.
    """
    n, width = paths.shape
    vertices, rows = np.empty((n, width), np.int32), np.full((n, width), np.int32(-1))
    wrong = np.empty(2, np.int64)
    for i in range(n):
        last = width - 1
        while paths[i, last] < 0:
            last -= 1
        for t in range(width):
            p = width - 1 - t
            vertices[i, t] = paths[i, p] if p <= last else ~paths[i, last]
            if p < last:
                x, v = paths[i, p], paths[i, p + 1]
                slot = rowptr[v] + np.searchsorted(col[rowptr[v] : rowptr[v + 1]], x)
                if slot == rowptr[v + 1] or col[slot] != x:
                    wrong[0], wrong[1] = x, v
                    return vertices, rows, wrong
                rows[i, t] = row[slot]
    return vertices, rows, wrong[:0]


@njit(cache=True, nogil=True)
def trie_of_tokens(vertices, rows, distances, repeats):
    """Return the trie of tokens `[n, length + 1]`, sorted by vertices: entries per level, arrays of `n` per level."""
    n, width = vertices.shape
    starts, count = n * np.arange(width), np.zeros(width, np.int64)
    vertex, distance = np.empty(n * width, np.int32), np.empty(n * width, np.int32)
    parent, edge = np.empty(n * (width - 1), np.int32), np.empty(n * (width - 1), np.int32)
    room = vertices.size
    place = np.empty(width + 2, np.uint64)
    spares = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint8), place
    _write_tries(
        n, width - 1, 0, vertices.ravel(), rows.ravel(), distances.ravel(), np.empty(n, np.int32), spares, count,
        starts, starts - n, vertex, parent, edge, distance, repeats,
    )  # fmt: skip
    return count, vertex, parent, edge, distance
