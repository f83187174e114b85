"""Compiled loops that turn lists of paths into tries."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathnn.paths.cpu.walks import SP_PLUS, bfs, inner, kernel
from pathnn.paths.csr import Ints


def smallest_of_components(rowptr: Ints, col: Ints) -> Ints:
    """Return the smallest vertex of each vertex's component, in which edges connect both ways."""
    label = np.arange(rowptr.size - 1)
    _join_components(rowptr, col, label)
    return label


@kernel
def _join_components(rowptr, col, label):
    for v in range(label.size):
        for slot in range(rowptr[v], rowptr[v + 1]):
            a, b = v, np.int64(col[slot])
            while label[a] != a:
                label[a] = label[label[a]]
                a = label[a]
            while label[b] != b:
                label[b] = label[label[b]]
                b = label[b]
            if a < b:
                label[b] = a
            else:
                label[a] = b
    for v in range(label.size):
        label[v] = label[label[v]]


@kernel
def fill_table(rowptr, col, k, start, stop, distance_ptr, distance_of, dist, pred, queue):
    """Write the distance of `x` to `v` to `distance_of[distance_ptr[v] + x]`: a range of `v`, all `x` within `k`."""
    for root in range(start, stop):
        size = bfs(rowptr, col, root, k, np.int64(SP_PLUS), dist, pred, queue)
        for i in range(size):
            x = queue[i]
            distance_of[distance_ptr[root] + x] = dist[x]
            dist[x] = -1


@kernel
def write_tries(
    number, line_start, vertices, rows, distances, entry, spare_vertices, spare_rows, spare_distances, place,
    distance_ptr, distance_of, count, starts, child_starts, vertex, parent, edge, distance, repeats,
):  # fmt: skip
    """Turn `number[l]` listed paths of length `l` into entries, and add the number of entries `[l, t]` to `count`.

    The paths of length `l` begin at `line_start[l]`, one after the other, length + 1 values each, in reading order,
    sorted by their vertices. Distances are looked up unless `distance_of` is empty; without any, `distance` is empty.
    With `repeats`, a path that occurs several times has as many entries at the last level.
    """
    for length in range(1, number.size):
        if distance_of.size > 0:
            _look_up(number[length], length, line_start[length], vertices, distance_ptr, distance_of, distances)
        _write_length(
            number[length], length, line_start[length], vertices, rows, distances, entry,
            spare_vertices, spare_rows, spare_distances, place,
            count, starts, child_starts, vertex, parent, edge, distance, repeats,
        )  # fmt: skip


@inner
def _look_up(n, length, first_line, vertices, distance_ptr, distance_of, distances):
    """Write the distance of every token of `n` listed paths of one length."""
    line, size = np.uint64(first_line), np.uint64(length)
    for _ in range(n):
        row = distance_ptr[np.uint64(vertices[line + size])]
        for j in range(size - np.uint64(1)):
            distances[line + j] = distance_of[np.uint64(row + vertices[line + j])]
        distances[line + size - np.uint64(1)], distances[line + size] = 1, 0
        line += size + np.uint64(1)


@inner
def _write_length(
    n, length, first_line, vertices, rows, distances, entry, spare_vertices, spare_rows, spare_distances, place,
    count, starts, child_starts, vertex, parent, edge, distance, repeats,
):  # fmt: skip
    width = np.uint64(length + 1)
    entry[:n] = 0
    n = np.uint64(n)
    before = np.int32(0)
    for t in range(length + 1):
        if distance.size > 0 and t < length - 1:  # the last two tokens are always 1 and 0 from the source
            _sort_by_distance(
                n, width, np.uint64(t), np.uint64(first_line), vertices, rows, distances, entry,
                spare_vertices, spare_rows, spare_distances, place,
            )  # fmt: skip
        token = np.uint64(first_line + t)
        first, start = np.uint64(count[length, t]), np.uint64(starts[length, t])
        child = np.uint64(child_starts[length, t])
        at = first - np.uint64(1)
        apart = repeats and t == length
        above, last_x, last_d = np.int32(-1), np.int32(-1), np.uint8(255)
        for i in range(n):
            # the same entry is written once per path through it: cheaper than a branch that nobody can predict
            x, d, mine = vertices[token], distances[token], entry[i]
            at += np.uint64((mine != above) | (x != last_x) | (d != last_d) | apart)
            above, last_x, last_d = mine, x, d
            vertex[start + at] = x
            if distance.size > 0:
                distance[start + at] = d
            if t > 0:
                parent[child + at] = before + mine
                edge[child + at] = rows[token]
            entry[i] = np.int32(at - first)
            token += width
        before = np.int32(first)
        count[length, t] = np.int64(at + np.uint64(1))


@inner
def _sort_by_distance(
    n, width, t, first_line, vertices, rows, distances, entry, spare_vertices, spare_rows, spare_distances, place,
):  # fmt: skip
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
            _counting_sort(
                first, last, width, t, vertices, rows, distances, spare_vertices, spare_rows, spare_distances, place
            )
            i = stop
        else:
            i += one


@inner
def _counting_sort(
    start, stop, width, t, vertices, rows, distances, spare_vertices, spare_rows, spare_distances, place,
):  # fmt: skip
    """Stable sort of the paths written from `start` to `stop` by the distance of token `t`."""
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


def spare_memory(tokens: int, k: int) -> tuple[Ints, ...]:
    """Return the arguments `entry` to `place` of `write_tries`, for so many tokens, and paths of length up to `k`."""
    entry, vertices, rows = np.empty((3, tokens), np.int32)
    return entry, vertices, rows, np.empty(tokens, np.uint8), np.empty(k + 3, np.uint64)


@kernel
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


def trie_of_tokens(vertices: Ints, rows: Ints, distances: Ints, repeats: bool) -> Any:
    """Return the trie of tokens `[n, length + 1]`, sorted by vertices: entries per level, arrays of `n` per level."""
    n, width = vertices.shape
    number, line_start = np.zeros((2, width), np.int64)
    number[-1] = n
    starts, count = np.tile(n * np.arange(width), (width, 1)), np.zeros((width, width), np.int64)
    vertex, distance = np.empty((2, n * width), np.int32)
    parent, edge = np.empty((2, n * (width - 1)), np.int32)
    write_tries(
        number, line_start, vertices.ravel(), rows.ravel(), distances.ravel(), *spare_memory(n * width, width),
        np.empty(0, np.int64), np.empty(0, np.uint8), count, starts, starts - n,
        vertex, parent, edge, distance, repeats,
    )  # fmt: skip
    return count[-1], vertex, parent, edge, distance
