"""Compute fingerprints of annotated path sets, with numba kernels that store no path.

A multiset of sequences is a polynomial: one variable per (position, token), one monomial per sequence, its coefficient
its number of occurrences. The fingerprint of the multiset is the value of the polynomial at a random point of the field
of the integers modulo 2^61 - 1: the sum over all sequences of the product of a random element for each token. Two
different polynomials of degree d have equal values with a probability of at most d / (2^61 - 1) (Schwartz and Zippel).
Two points ("lanes") make this probability small enough.

The annotation of a vertex at level l is the fingerprint of its paths of length l. Unlike a sum of hashes, it can be
factored:

    AP        the search omits the last step of a path: `rest[v]` is the sum of the elements of the neighbours of v
              that are not on the path, updated at each step; the step before it is a plain loop
    SP, SP+   no path is enumerated: sums move outward through the graph of shortest paths
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from pathnn.paths.cpu.samples import GOLDEN, mix as finalize
from pathnn.paths.cpu.walks import AP, SP_PLUS, bfs, may_step, scratch

PRIME = np.uint64(2**61 - 1)
_BITS, _REST = np.uint64(61), np.uint64(3)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _mul_high(typingctx, a, b):
    """Return the upper 64 bits of the product of two uint64, for which numba has no function."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@njit(cache=True, nogil=True, inline="always")
def multiply(a, b):
    """Return the product of two elements."""
    low = a * b
    folded = (low & PRIME) + ((low >> _BITS) | (_mul_high(a, b) << _REST))
    return folded - PRIME if folded >= PRIME else folded


@njit(cache=True, nogil=True, inline="always")
def add(a, b):
    """Return the sum of two elements."""
    total = a + b
    return total - PRIME if total >= PRIME else total


@njit(cache=True, nogil=True, inline="always")
def negate(a):
    """Return the element that gives 0 when added to `a`."""
    return PRIME - a if a else a


@njit(cache=True, nogil=True, inline="always")
def mix(x):
    """Map a 64-bit integer one to one to a pseudorandom integer (SplitMix64)."""
    return finalize(x + GOLDEN)


@njit(cache=True, nogil=True, inline="always")
def mix_pair(lane, kind, first, second, extra):
    """Return 64 random bits for a key of two 64-bit integers and two small ones, independent for lanes 0 and 1."""
    x = mix(np.uint64(kind) * np.uint64(2) + np.uint64(lane))
    x = mix(x ^ first)
    x = mix(x + GOLDEN * second)
    return mix(x ^ np.uint64(extra))


@njit(cache=True, nogil=True, inline="always")
def element(lane, kind, first, second, extra):
    """Return the bits of `mix_pair` as an element of the field."""
    x = mix_pair(lane, kind, first, second, extra) & PRIME
    return np.uint64(0) if x == PRIME else x


TOKEN, DUMMY, ANNOTATION, PATHS, GRAPH = 1, 2, 3, 4, 5  # kinds of keys, so that keys of different kinds differ
ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def annotate(rowptr, col, mode, k, residual, extend, distances, limit, levels, sums):
    """Fill `levels[l, lane, v]` for l = 1..k from the labels in level 0; return the steps, or -1 if over `limit`.

    `sums[lane, v]` becomes the sum over the paths of length k. The search ends at the first length without paths.
    """
    n = rowptr.size - 1
    total = 0
    continues = True
    for length in range(1, k + 1):
        before = levels[length - 1]
        if continues:
            steps = sum_paths(rowptr, col, mode, length, extend, distances, before, limit - total, sums)
            if steps < 0:
                return -1
            continues = np.any(sums)
            total += steps
        for v in range(n):
            for lane in range(2):
                own = mix_pair(lane, ANNOTATION, before[0, v], before[1, v], length) if residual else ZERO
                levels[length, lane, v] = mix_pair(lane, PATHS, sums[0, v], sums[1, v], mix(own + np.uint64(length)))
    return total


@njit(cache=True, nogil=True)
def multiset(kind, first, second, extra):
    """Return the number of values plus the sum of an element for each value, in both lanes: `[2]`."""
    out = np.empty(2, np.uint64)
    for lane in range(2):
        total = np.uint64(first.size)
        for i in range(first.size):
            total = add(total, element(lane, kind, first[i], second[i], extra))
        out[lane] = total
    return out


@njit(cache=True, nogil=True)
def total_fingerprint(before, sums):
    """Return the fingerprint of the multiset of annotations at level k - 1 and of the total of all sums: `[2]`."""
    out, total = multiset(GRAPH, before[0], before[1], 0), np.zeros(2, np.uint64)
    for lane in range(2):
        for v in range(sums.shape[1]):
            total[lane] = add(total[lane], sums[lane, v])
    for lane in range(2):
        out[lane] = mix_pair(lane, GRAPH, total[0], total[1], out[lane])
    return out


@njit(cache=True, nogil=True)
def dummy_tails(length):
    """Return the product of the elements of dummy tokens from a position to the end: `[lane, position]`."""
    tails = np.ones((2, length + 2), np.uint64)
    for lane in range(2):
        for position in range(length, 0, -1):
            dummy = element(lane, DUMMY, ZERO, ZERO, position)
            tails[lane, position] = multiply(dummy, tails[lane, position + 1])
    return tails


@njit(cache=True, nogil=True)
def sum_paths(rowptr, col, mode, length, extend, distances, before, limit, sums):
    """Sum over the paths of one length from each vertex; return the steps, or -1 if those of AP are over `limit`.

    `weight[lane, position, v]` is the element of the token of `v` at a position.
    """
    n = rowptr.size - 1
    dist, pred, queue = scratch(n)
    weight, tails = np.empty((2, length + 1, n), np.uint64), dummy_tails(length)
    ways, rest, inner = np.zeros((2, n), np.uint64), np.zeros((2, n), np.uint64), np.zeros((2, n), np.uint64)
    continued, free = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    steps = 0
    for root in range(n):
        near = queue[: bfs(rowptr, col, root, length, mode, dist, pred, queue)]
        for v in near:
            far = dist[v] + 1 if distances else 0
            for position in range(length + 1):
                for lane in range(2):
                    key = position * 65536 + far
                    weight[lane, position, v] = element(lane, TOKEN, before[0, v], before[1, v], key)
        if mode == AP:
            most = limit - steps
            taken = _sum_simple(
                rowptr, col, length, root, near, dist, extend, weight, rest, inner, free, tails, most, sums
            )
            if taken < 0:
                return -1
        else:
            taken = _sum_shortest(
                rowptr, col, mode, length, root, near, dist, pred, extend, weight, ways, continued, tails, sums
            )
        steps += taken
        for v in near:
            dist[v] = -1
    return steps


@njit(cache=True, nogil=True)
def _sum_shortest(rowptr, col, mode, length, root, near, dist, pred, extend, weight, ways, continued, tails, sums):
    """Sum over the paths of SP or SP+ from `root` without enumerating them; return the number of steps."""
    steps = 0
    ways[0, root], ways[1, root] = weight[0, 0, root], weight[1, 0, root]
    for x in near:
        steps += rowptr[x + 1] - rowptr[x]
        continued[x] = False
    for x in near[1:]:
        first, second = ZERO, ZERO
        for slot in range(rowptr[x], rowptr[x + 1]):
            y = col[slot]
            if dist[y] == dist[x] - 1 and (mode == SP_PLUS or pred[x] == y):
                first, second = add(first, ways[0, y]), add(second, ways[1, y])
                continued[y] = True
        ways[0, x] = multiply(first, weight[0, dist[x], x])
        ways[1, x] = multiply(second, weight[1, dist[x], x])
    for lane in range(2):
        total = ZERO
        for x in near[1:]:
            if dist[x] == length:
                total = add(total, ways[lane, x])
            elif extend and not continued[x]:
                total = add(total, multiply(ways[lane, x], tails[lane, dist[x] + 1]))
        sums[lane, root] = total
    return steps


@njit(cache=True, nogil=True, inline="always")
def _visit(rowptr, col, v, length, entering, weight, rest, inner, free):
    """Add a vertex to the path, or remove it."""
    first, second = weight[0, length, v], weight[1, length, v]
    inner[0, v], inner[1, v] = weight[0, length - 1, v], weight[1, length - 1, v]
    if entering:
        first, second = negate(first), negate(second)
        inner[0, v], inner[1, v] = ZERO, ZERO
    for slot in range(np.uint64(rowptr[v]), np.uint64(rowptr[v + 1])):
        x = np.uint64(col[slot])
        rest[0, x] = add(rest[0, x], first)
        rest[1, x] = add(rest[1, x], second)
        free[x] += -1 if entering else 1


@njit(cache=True, nogil=True)
def _sum_simple(rowptr, col, length, root, near, dist, extend, weight, rest, inner, free, tails, limit, sums):
    """Sum over the paths of AP from `root` by a depth-first search without the last step; return the steps, or -1.

    `inner` is the element of a vertex at the last position but one, or 0 while the vertex is on the path. `free` is the
    number of its neighbours that are not on the path.
    """
    for v in near:
        free[v] = rowptr[v + 1] - rowptr[v]
        for lane in range(2):
            inner[lane, v] = weight[lane, length - 1, v]
            total = ZERO
            if dist[v] < length:  # other vertices have neighbours without weights, and only end paths
                for slot in range(rowptr[v], rowptr[v + 1]):
                    total = add(total, weight[lane, length, col[slot]])
            rest[lane, v] = total
    if length == 1:
        sums[0, root] = multiply(weight[0, 0, root], rest[0, root])
        sums[1, root] = multiply(weight[1, 0, root], rest[1, root])
        return rowptr[root + 1] - rowptr[root]
    path, slots = np.empty(length, np.int64), np.empty(length, np.int64)
    product = np.empty((2, length), np.uint64)
    on_path = np.zeros(rowptr.size - 1, np.bool_)
    first, second = ZERO, ZERO
    steps = depth = 0
    path[0], slots[0] = root, rowptr[root]
    product[0, 0], product[1, 0] = weight[0, 0, root], weight[1, 0, root]
    on_path[root] = True
    _visit(rowptr, col, root, length, True, weight, rest, inner, free)
    while depth >= 0:
        v = path[depth]
        if depth < length - 2 and slots[depth] < rowptr[v + 1]:
            x = col[slots[depth]]
            slots[depth] += 1
            if not on_path[x]:
                depth += 1
                path[depth], slots[depth] = x, rowptr[x]
                product[0, depth] = multiply(product[0, depth - 1], weight[0, depth, x])
                product[1, depth] = multiply(product[1, depth - 1], weight[1, depth, x])
                on_path[x] = True
                steps += 1  # also if the search never reaches the end: a path that is too short costs as much
                _visit(rowptr, col, x, length, True, weight, rest, inner, free)
            continue
        if depth == length - 2:
            steps += rowptr[v + 1] - rowptr[v]
            a, b = ZERO, ZERO
            for slot in range(np.uint64(rowptr[v]), np.uint64(rowptr[v + 1])):
                x = np.uint64(col[slot])
                a = add(a, multiply(inner[0, x], rest[0, x]))
                b = add(b, multiply(inner[1, x], rest[1, x]))
                if extend and free[x] == 0:
                    a = add(a, multiply(inner[0, x], tails[0, length]))
                    b = add(b, multiply(inner[1, x], tails[1, length]))
            first = add(first, multiply(product[0, depth], a))
            second = add(second, multiply(product[1, depth], b))
        if extend and depth > 0 and free[v] == 0:
            first = add(first, multiply(product[0, depth], tails[0, depth + 1]))
            second = add(second, multiply(product[1, depth], tails[1, depth + 1]))
        if steps > limit:
            return -1
        _visit(rowptr, col, v, length, False, weight, rest, inner, free)
        on_path[v] = False
        depth -= 1
    sums[0, root], sums[1, root] = first, second
    return steps


@njit(cache=True, nogil=True)
def list_sequences(rowptr, col, mode, length, root, token, base, extend, dist, pred):
    """Return the token sequence of each path of one length, a number of digits `token[v]`, or `base - 1` (dummy)."""
    path, slots = np.empty(length + 1, np.int32), np.empty(length + 1, np.int64)
    code, ends = np.empty(length + 1, np.int64), np.empty(length + 1, np.bool_)
    out, found, depth = np.empty(1024, np.int64), 0, 0
    path[0], slots[0], code[0], ends[0] = root, rowptr[root], token[root], True
    while depth >= 0:
        v = path[depth]
        if depth < length and slots[depth] < rowptr[v + 1]:
            x = col[slots[depth]]
            slots[depth] += 1
            if may_step(mode, x, v, path, depth, dist, pred):
                ends[depth] = False
                depth += 1
                path[depth], slots[depth], ends[depth] = x, rowptr[x], True
                code[depth] = code[depth - 1] * base + token[x]
            continue
        if depth == length or (extend and depth > 0 and ends[depth]):
            sequence = code[depth]
            for _ in range(length - depth):
                sequence = sequence * base + base - 1
            if found == out.size:
                out = np.concatenate((out, np.empty_like(out)))
            out[found] = sequence
            found += 1
        depth -= 1
    return out[:found]
