"""Exact names of structures, whole arrays at a time: equal structures get equal integers, different ones different.

What `ColorTable` does one structure after the other, for millions of them. Nothing is hashed: names come from sorting.
They mean something only within the array that one call returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def name_pairs(first: Ints, second: Ints) -> Ints:
    """Names of the pairs `(first[i], second[i])`; both hold integers of at least 0.

    >>> name_pairs(np.array([0, 0, 1, 0]), np.array([5, 5, 5, 6]))
    array([0, 0, 2, 1])
    """
    if not len(first):
        return np.zeros(0, dtype=np.int64)
    base = int(second.max()) + 1
    if (int(first.max()) + 1) * base >= 2**63:  # names are dense, so this takes more structures than memory holds
        raise OverflowError("the names are too large to be paired: rename them first.")
    return _dense(first.astype(np.int64) * base + second)


def name_rows(rows: NDArray[Any]) -> Ints:
    """Names of the rows of a matrix of integers of at least 0.

    >>> name_rows(np.array([[1, 2, 3], [1, 2, 4], [1, 2, 3]]))
    array([0, 1, 0])
    """
    names = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        names = name_pairs(names, column)
    return names


def name_multisets(owner: NDArray[Any], members: Ints, num_owners: int) -> Ints:
    """Names of the multisets `{members[i] : owner[i] == o}` of all owners o; an owner without members has one too.

    The sorted members are read one by one, and what was read so far is named after each.

    >>> name_multisets(np.array([0, 0, 1, 2, 2]), np.array([7, 8, 7, 8, 7]), 4)
    array([2, 1, 2, 0])
    """
    base = int(members.max(initial=0)) + 1
    members = np.sort(owner.astype(np.int64) * base + members) % base
    sizes = np.bincount(owner, minlength=num_owners)
    begin = np.cumsum(sizes) - sizes
    names = np.zeros(num_owners, dtype=np.int64)
    reading, used, position = np.flatnonzero(sizes), 1, 0
    while len(reading):
        # Names of this position begin after all earlier ones: a multiset never gets the name of a shorter one.
        names[reading] = used + name_pairs(names[reading], members[begin[reading] + position])
        used = int(names[reading].max()) + 1
        position += 1
        reading = reading[sizes[reading] > position]
    return _dense(names)


def _dense(keys: Ints) -> Ints:
    """The ranks of the keys: counted where the keys are dense enough, else by sorting."""
    span = int(keys.max(initial=0)) + 1
    if span > 4 * len(keys) + 1000:
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)
    present = np.zeros(span, dtype=np.int64)
    present[keys] = 1
    return (np.cumsum(present) - 1)[keys]
