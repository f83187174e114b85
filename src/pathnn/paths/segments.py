"""Room for output whose size is only bounded: kernels write into segments, and `close_gaps` moves them together.

Memory that is reserved but never touched costs nothing, so one pass that writes replaces a pass that counts and one
that fills.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def close_gaps(values, starts, sizes):
    """Move segments `values[starts[i]:starts[i] + sizes[i]]` to the front, one after the other; returns their end."""
    at = 0
    for i in range(starts.size):
        if at != starts[i]:
            for j in range(sizes[i]):  # to the front and from the front, so the two may overlap
                values[at + j] = values[starts[i] + j]
        at += sizes[i]
    return at


@njit(cache=True, nogil=True)
def close_gaps_shifted(values, starts, sizes, shifts):
    """The same, adding `shifts[i]` to every value of segment `i`."""
    at = 0
    for i in range(starts.size):
        shift = np.int32(shifts[i])
        for j in range(sizes[i]):
            values[at + j] = values[starts[i] + j] + shift
        at += sizes[i]
    return at
