"""Compiled loops over the paths from a vertex.

Tries read paths from their far end, so their walks go over the edges turned around; in an undirected graph these are
the same, and a path and its reverse are both in a collection. From a root, the walk at depth `t` may step to a
neighbour when

    AP   it is not on the path yet,
    SP+  its distance from the root is t + 1,
    SP   the tree of chosen shortest paths from the root goes there.

`into` and `sources` are `rowptr` and `col` of the graph with its edges turned around.

Kernels take a range of roots, release the GIL and share nothing, so Python threads run them in parallel: no OpenMP, so
that a `DataLoader` may fork. They write each length to its own place and return how many paths it has; the caller
knows an upper bound and joins what is filled.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

AP, SP_PLUS, SP = 0, 1, 2

SATURATED = 2**61  # counts stop growing here, so that a sum of two does not wrap around

kernel = njit(cache=True, nogil=True, no_cfunc_wrapper=True)
inner = njit(inline="always")  # called at one place: compiled with its caller


@register_jitable
def scratch(n):
    """Return distances (-1: not reached), predecessors and a queue, for `bfs`."""
    return np.full(n, -1, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)


@kernel
def bfs(rowptr, col, root, k, mode, dist, pred, queue):
    """Fill `dist` (-1 before) and `pred` for vertices within `k` of `root`; returns how many are in `queue`."""
    dist[root] = 0
    queue[0] = root
    one = np.uint64(1)
    head, tail = np.uint64(0), one
    while head < tail:
        v = np.uint64(queue[head])
        head += one
        d = dist[v]
        if d == k:
            break
        for slot in range(np.uint64(rowptr[v]), np.uint64(rowptr[v + one])):
            x = np.uint64(col[slot])
            if dist[x] < 0:
                dist[x] = d + 1
                pred[x] = v
                queue[tail] = x
                tail += one
            elif mode == SP and dist[x] == d + 1 and _avoids_larger(pred, v, np.uint64(pred[x])):
                pred[x] = v
    return np.int64(tail)


@inner
def _avoids_larger(pred, a, b):
    """Of two vertices of one depth: does the chosen path to `a` avoid the largest vertex in which the two differ?

    Chosen paths form a tree, so the two differ exactly in what lies between them and the vertex where they meet.
    """
    largest_a, largest_b = a, b
    while pred[a] != pred[b]:
        a, b = np.uint64(pred[a]), np.uint64(pred[b])
        largest_a = a if a > largest_a else largest_a
        largest_b = b if b > largest_b else largest_b
    return largest_a < largest_b


@njit(inline="always")
def may_step(mode, x, v, path, depth, dist, pred):
    """Return whether the walk that is at `v` = `path[depth]` may continue to its neighbour `x`."""
    if mode == AP:
        for i in range(depth):
            if path[i] == x:
                return False
        return True
    return dist[np.uint64(x)] == depth + 1 and (mode == SP_PLUS or pred[np.uint64(x)] == v)


@kernel
def bound_walks(rowptr, col, reverse, k, bounds, cumulated, onward, longer):
    """Add to `bounds` `[n, k]` the walks per root and length that never turn straight back: at least the paths.

    Writes to `cumulated` `[k, slots]`, unless it is empty, per length and slot the walks that begin with the step of
    this slot or of one before it in its row. `onward`, ones before, and `longer` are for walks that begin with a slot.
    """
    n = rowptr.size - 1
    for length in range(1, k + 1):
        for v in range(n):
            for slot in range(rowptr[v], rowptr[v + 1]):
                bounds[v, length - 1] += onward[slot]
                if cumulated.size > 0:
                    cumulated[length - 1, slot] = bounds[v, length - 1]
        if length < k:
            for slot in range(col.size):
                longer[slot] = bounds[col[slot], length - 1]
                if reverse[slot] >= 0:
                    longer[slot] -= onward[reverse[slot]]
            onward, longer = longer, onward


@kernel
def count_walks(rowptr, col, into, sources, mode, k, roots, limit, counts):
    """Add to `counts[v, l - 1]` the number of paths of length `l` from each root `v`, until there are over `limit`.

    Returns the number of roots that were counted completely.
    """
    dist, pred, queue = scratch(0 if mode == AP else rowptr.size - 1)
    ways = np.zeros(dist.size, np.int64)
    path = np.empty(k + 1, np.int32)
    slots = np.empty(k + 1, np.int64)
    total = 0
    for done in range(roots.size):
        root = roots[done]
        if mode == AP:
            depth = 0
            path[0] = root
            slots[0] = rowptr[root]
            while depth >= 0:
                v = path[depth]
                if slots[depth] == rowptr[v + 1]:
                    depth -= 1
                    if total > limit:
                        return done
                    continue
                x = col[slots[depth]]
                slots[depth] += 1
                if may_step(mode, x, v, path, depth, dist, pred):
                    counts[root, depth] += 1
                    total += 1
                    if depth + 1 < k:
                        depth += 1
                        path[depth] = x
                        slots[depth] = rowptr[x]
        else:
            size = bfs(rowptr, col, root, k, mode, dist, pred, queue)
            ways[root] = 1
            for i in range(1, size):
                x = queue[i]
                ways[x] = 1
                if mode == SP_PLUS:
                    ways[x] = 0
                    for slot in range(into[x], into[x + 1]):
                        if dist[sources[slot]] == dist[x] - 1:
                            ways[x] = min(ways[x] + ways[sources[slot]], SATURATED)
                counts[root, dist[x] - 1] = min(counts[root, dist[x] - 1] + ways[x], SATURATED)
                total = min(total + ways[x], SATURATED)
            for i in range(size):
                dist[queue[i]] = -1
            if total > limit:
                return done + 1
    return roots.size


@kernel
def list_walks(
    rowptr, col, row, mode, k, roots, limit, dist, pred, queue, starts, count, paths, rows, end_starts, ended,
):  # fmt: skip
    """Write the paths from the given roots, length by length, each from a shorter one; adds their number to `count`.

    Stops after a root when it has written `limit` tokens or more; returns how many roots it has gone through.

    Path number `i` of length `l` is `paths[starts[l] + i * (l + 1):][:l + 1]`. `rows` has the edge that leads to each
    of its vertices but the first, and `ended[end_starts[l] + i]` says that no path continues it, unless they are empty.
    """
    one = np.uint64(1)
    with_rows, with_ends = rows.size > 0, ended.size > 0
    written = 0
    for done in range(roots.size):
        root = roots[done]
        reached = bfs(rowptr, col, root, k, mode, dist, pred, queue) if mode != AP else 0
        at = np.uint64(starts[1] + count[1] * 2)
        for slot in range(np.uint64(rowptr[root]), np.uint64(rowptr[root + 1])):
            paths[at], paths[at + one] = root, col[slot]
            if with_rows:
                rows[at + one] = row[slot]
            at += np.uint64(2)
        first = count[1]
        last = first + rowptr[root + 1] - rowptr[root]
        count[1] = last
        written += 2 * (last - first)
        for length in range(2, k + 1):
            size = np.uint64(length)
            at = np.uint64(starts[length] + count[length] * (length + 1))
            line = np.uint64(starts[length - 1] + first * length)
            begin = at
            for i in range(first, last):
                v = paths[line + size - one]
                before = at
                for slot in range(np.uint64(rowptr[np.uint64(v)]), np.uint64(rowptr[np.uint64(v) + one])):
                    x = col[slot]
                    if mode == AP:
                        fresh = True
                        for j in range(size - one):
                            fresh &= paths[line + j] != x
                    else:
                        fresh = may_step(mode, x, v, paths, length - 1, dist, pred)
                    if fresh:
                        for j in range(size):
                            paths[at + j] = paths[line + j]
                        paths[at + size] = x
                        if with_rows:
                            for j in range(size):
                                rows[at + j] = rows[line + j]
                            rows[at + size] = row[slot]
                        at += size + one
                if with_ends:
                    ended[np.uint64(end_starts[length - 1] + i)] = at == before
                line += size
            first = count[length]
            last = first + np.int64(at - begin) // (length + 1)
            count[length] = last
            written += (last - first) * (length + 1)
        if with_ends:
            for i in range(first, last):
                ended[end_starts[k] + i] = True
        for i in range(reached):
            dist[queue[i]] = -1
        if written >= limit:
            return done + 1
    return roots.size
