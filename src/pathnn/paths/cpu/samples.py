"""Compiled loops that draw paths from each source, at a cost that follows from how many are kept.

SP and SP+ search once from the source, count the shortest paths to every vertex, and draw by these counts. AP draws
walks that never turn straight back, uniformly by their numbers, and rejects those that meet themselves. A source with
few walks has its paths enumerated. Every source and length has random numbers of its own.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pathnn.paths.cpu.walks import AP, SP, bfs, scratch

ENUMERATE = 16  # times the number to keep: as many walks are enumerated faster than paths are drawn
TRIALS = 32  # times the number to keep: draws before another way is taken
VISITS = 1 << 16  # vertices that an enumeration goes through at the most, after drawing found too few

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_A, MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S27, S30, S31, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)


@njit(cache=True, nogil=True)
def mix(x):
    """One round of a 64-bit finaliser."""
    x = (x ^ (x >> S30)) * MIX_A
    x = (x ^ (x >> S27)) * MIX_B
    return x ^ (x >> S31)


@njit(cache=True, nogil=True)
def uniform(state):
    """Draw a number from [0, 1)."""
    state[0] += GOLDEN
    return np.float64(mix(state[0]) >> S11) * 2.0**-53


@njit(cache=True, nogil=True)
def _draw_walk(rowptr, col, reverse, cumulated, length, state, path):
    """Write a walk from `path[0]` on, all walks that never turn back being as likely; return whether it is a path."""
    back = np.int64(-1)
    for t in range(length):
        walks = cumulated[length - 1 - t]
        first, last = rowptr[path[t]], rowptr[path[t] + 1] - 1
        if last < first:
            return False
        before = walks[back - 1] if back > first else 0.0
        turning = walks[back] - before if back >= 0 else 0.0
        at = uniform(state) * (walks[last] - turning)
        if back >= 0 and at >= before:
            at += turning
        if at >= walks[last]:  # nowhere to go, up to rounding
            return False
        slot = first + np.searchsorted(walks[first:last], at, side="right")
        x = col[slot]
        for i in range(t + 1):
            if path[i] == x:
                return False
        path[t + 1] = x
        back = reverse[slot]
    return True


@njit(cache=True, nogil=True)
def _grow_path(rowptr, col, length, state, path):
    """Write a path by steps to any free neighbour, which is not uniform over all paths; return whether it is whole."""
    for t in range(length):
        v, free = path[t], 0
        for slot in range(rowptr[v], rowptr[v + 1]):
            fresh = True
            for i in range(t):
                fresh &= path[i] != col[slot]
            free += fresh
            if fresh and uniform(state) * free < 1:
                path[t + 1] = col[slot]
        if free == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _keep(path, length, rows, at, most, seen, state):
    """Offer the next path of an enumeration to the sample, which stays uniform: reservoir sampling."""
    line = seen
    if seen >= most:
        line = np.int64(uniform(state) * (seen + 1))
    if line < most:
        for j in range(length + 1):
            rows[at + line * (length + 1) + j] = path[j]


@njit(cache=True, nogil=True)
def _enumerate_simple(rowptr, col, length, most, visits, path, slots, rows, at, state):
    """Keep a sample of all simple paths of one length; returns how many, -1 after more than `visits` steps."""
    seen, depth = 0, 0
    slots[0] = rowptr[path[0]]
    while depth >= 0:
        v = path[depth]
        if slots[depth] == rowptr[v + 1]:
            depth -= 1
            continue
        x = col[slots[depth]]
        slots[depth] += 1
        fresh = True
        for i in range(depth):
            fresh &= path[i] != x
        if not fresh:
            continue
        visits -= 1
        if visits < 0:
            return -1
        path[depth + 1] = x
        if depth + 1 == length:
            _keep(path, length, rows, at, most, seen, state)
            seen += 1
        else:
            depth += 1
            slots[depth] = rowptr[x]
    return min(seen, most)


@njit(cache=True, nogil=True)
def _add(path, length, rows, at, kept, table):
    """Write a path behind the `kept` ones unless it is among them, as `table` says; returns how many there are then."""
    hashed = np.uint64(0)
    for j in range(1, length + 1):
        hashed = mix(hashed + GOLDEN + np.uint64(path[j]))
    mask = np.uint64(table.size - 1)
    place = hashed & mask
    while table[place] >= 0:
        line = at + table[place] * (length + 1)
        same = True
        for j in range(1, length + 1):
            same &= rows[line + j] == path[j]
        if same:
            return kept
        place = (place + np.uint64(1)) & mask
    table[place] = kept
    for j in range(length + 1):
        rows[at + kept * (length + 1) + j] = path[j]
    return kept + 1


@njit(cache=True, nogil=True)
def _new_table(most):
    size = 4
    while size < 2 * most:
        size *= 2
    return np.full(size, -1, np.int64)


@njit(cache=True, nogil=True)
def _sample_simple(rowptr, col, reverse, cumulated, bounds, length, most, path, slots, rows, at, state):
    """Write at most `most` simple paths of one length from `path[0]`; returns how many."""
    walks = 0.0
    for shorter in range(length):
        walks += bounds[shorter]
    if walks <= ENUMERATE * (most + 4):
        return _enumerate_simple(rowptr, col, length, most, np.int64(walks), path, slots, rows, at, state)
    for simple in (False, True):
        kept, table = 0, _new_table(most)
        for _ in range(TRIALS * (most + 2)):
            if simple:
                found = _grow_path(rowptr, col, length, state, path)
            else:
                found = _draw_walk(rowptr, col, reverse, cumulated, length, state, path)
            if found:
                kept = _add(path, length, rows, at, kept, table)
                if kept == most:
                    return kept
        if not simple:
            visits = VISITS + TRIALS * most
            all_kept = _enumerate_simple(rowptr, col, length, most, visits, path, slots, rows, at, state)
            if all_kept >= 0:
                return all_kept
    return kept


@njit(cache=True, nogil=True)
def _sample_shortest(
    into, sources, mode, first, last, length, most, dist, pred, queue, ways, sums, path, slots, rows, at, state
):
    """Write at most `most` shortest paths to `queue[first:last]`, all `length` away; `ways` has numbers of paths."""
    total = 0.0
    for i in range(first, last):
        total += ways[queue[i]]
        sums[i] = total
    if total <= 4.0 * most:
        seen = 0
        for i in range(first, last):
            depth = length
            path[depth] = queue[i]
            slots[depth] = into[queue[i]]
            while depth <= length:
                x = path[depth]
                if depth == 0:
                    _keep(path, length, rows, at, most, seen, state)
                    seen += 1
                    depth += 1
                elif slots[depth] == into[x + 1]:
                    depth += 1
                else:
                    v = sources[slots[depth]]
                    slots[depth] += 1
                    if dist[v] == depth - 1 and (mode != SP or pred[x] == v):
                        depth -= 1
                        path[depth] = v
                        slots[depth] = into[v]
        return min(seen, most)
    kept, table = 0, _new_table(most)
    while kept < most:
        wanted = uniform(state) * total
        x = queue[first + np.searchsorted(sums[first : last - 1], wanted, side="right")]
        for depth in range(length, 0, -1):
            path[depth] = x
            chosen = pred[x]
            if mode != SP:
                rest = uniform(state) * ways[x]
                for slot in range(into[x], into[x + 1]):
                    v = sources[slot]
                    if dist[v] == depth - 1 and rest >= 0:
                        chosen = v
                        rest -= ways[v]
            x = chosen
        kept = _add(path, length, rows, at, kept, table)
    return kept


@njit(cache=True, nogil=True)
def draw_walks(rowptr, col, backtrack, k, most, seed, smallest, roots, starts, rows):
    """Write `most` random walks of each length from each of `roots`, as `sample_walks` writes paths.

    Each step goes to any neighbour, unless `backtrack` not straight back; a walk that cannot go on is left out.
    """
    state = np.empty(1, np.uint64)
    count = np.zeros(k + 1, np.int64)
    for root in roots:
        for length in range(1, k + 1):
            state[0] = mix(mix(np.uint64(seed) + np.uint64(root - smallest[root]) * GOLDEN) + np.uint64(length))
            for _ in range(most):
                at = starts[length] + count[length] * (length + 1)
                v, before, whole = root, np.int64(-1), True
                rows[at] = root
                for t in range(length):
                    first, degree = rowptr[v], rowptr[v + 1] - rowptr[v]
                    if degree == 0 or (degree == 1 and col[first] == before):
                        whole = False
                        break
                    x = col[first + np.int64(uniform(state) * degree)]
                    while x == before:
                        x = col[first + np.int64(uniform(state) * degree)]
                    rows[at + t + 1] = x
                    before = np.int64(-1) if backtrack else np.int64(v)
                    v = np.int64(x)
                count[length] += whole
    return count


@njit(cache=True, nogil=True)
def sample_walks(
    rowptr, col, reverse, into, sources, cumulated, bounds, mode, k, most, seed, smallest, roots, starts, rows,
):  # fmt: skip
    """Write a sample of the paths from each of `roots`; return how many of each length.

    Path number `i` of length `l` is `rows[starts[l] + i * (l + 1):][:l + 1]`.
    """
    shortest = mode != AP
    dist, pred, queue = scratch(rowptr.size - 1 if shortest else 0)
    ways, sums = np.empty(dist.size, np.float64), np.empty(dist.size, np.float64)
    path, slots = np.empty(k + 1, np.int64), np.empty(k + 1, np.int64)
    state = np.empty(1, np.uint64)
    count = np.zeros(k + 1, np.int64)
    for root in roots:
        size, first = 0, 1
        if shortest:
            size = bfs(rowptr, col, root, k, mode, dist, pred, queue)
            for j in range(size):
                ways[queue[j]] = 1.0 if mode == SP or j == 0 else 0.0
            if mode != SP:
                for j in range(size):
                    v = queue[j]
                    if dist[v] == k:
                        break
                    for slot in range(rowptr[v], rowptr[v + 1]):
                        if dist[col[slot]] == dist[v] + 1:
                            ways[col[slot]] += ways[v]
        for length in range(1, k + 1):
            state[0] = mix(mix(np.uint64(seed) + np.uint64(root - smallest[root]) * GOLDEN) + np.uint64(length))
            at = starts[length] + count[length] * (length + 1)
            path[0] = root
            if shortest:
                last = first
                while last < size and dist[queue[last]] == length:
                    last += 1
                count[length] += _sample_shortest(
                    into, sources, mode, first, last, length, most, dist, pred, queue, ways, sums, path, slots,
                    rows, at, state,
                )  # fmt: skip
                first = last
            else:
                count[length] += _sample_simple(
                    rowptr, col, reverse, cumulated, bounds[root], length, most, path, slots, rows, at, state
                )
        for j in range(size):
            dist[queue[j]] = -1
    return count
