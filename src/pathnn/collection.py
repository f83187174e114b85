"""The three path collections of the paper, and what a user may pass for one."""

from numbers import Integral
from typing import Any, Literal, get_args

Collection = Literal["sp", "sp+", "ap"]
"""`"sp"`: one shortest path per pair; `"sp+"`: all shortest paths; `"ap"`: all simple paths."""

COLLECTIONS: tuple[Collection, ...] = get_args(Collection)


def check_collection(collection: str) -> Collection:
    """Return `collection` if it names one, raise `ValueError` otherwise.

    >>> check_collection("sp+")
    'sp+'
    """
    for known in COLLECTIONS:
        if collection == known:
            return known
    raise ValueError(f"collection={collection!r} is unknown: expected one of 'sp', 'sp+' or 'ap'.")


def check_k(k: Any) -> int:
    """Return `k` if it is a path length in edges (an integer of at least 1), raise `ValueError` otherwise.

    >>> check_k(4)
    4
    """
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k={k!r} is no path length: expected an integer of at least 1 (edges, not vertices).")
    return int(k)
