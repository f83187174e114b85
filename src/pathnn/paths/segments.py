"""Room for output whose size is only bounded: kernels write into segments, and `close_gaps` moves them together.

Memory that is reserved but never touched costs nothing, so one pass that writes replaces a pass that counts and one
that fills. (Offsets are unsigned in the loops: signed ones might be negative, so they would be checked each time, and
the loops not vectorised. The other kernels do the same.)
"""

import numpy as np
from numba import njit


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
