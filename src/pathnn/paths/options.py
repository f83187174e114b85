"""What a path is: the collections, and the options of an extraction."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, get_args

from pathnn.checks import check_flag

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


MAX_K = 255


DEFAULT_MAX_PATHS = 50_000_000


def check_length(k: int) -> int:
    """Return `k` if a trie can have paths of that length, raise `ValueError` otherwise.

    >>> check_length(300)
    Traceback (most recent call last):
    ...
    ValueError: k=300 is too large: expected at most 255 ...
    """
    k = check_k(k)
    if k > MAX_K:
        raise ValueError(
            f"k={k} is too large: expected at most {MAX_K} "
            "(distances are stored in a byte, tries have k (k + 3) / 2 levels)."
        )
    return k


def check_options(
    extend: Any, max_paths: Any, max_paths_per_source: Any, seed: Any
) -> tuple[bool, int | None, int | None, int]:
    """These options of `extract_paths` as plain values, or `ValueError` unless they can be given together.

    >>> check_options(False, None, 10, seed=0)
    (False, None, 10, 0)
    """
    extend = check_flag("extend", extend)
    for name, value in (("max_paths", max_paths), ("max_paths_per_source", max_paths_per_source)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise ValueError(f"{name}={value!r}: expected an integer of at least 1, or None for no limit.")
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not -(2**63) <= int(seed) < 2**63:
        raise ValueError(f"seed={seed!r}: expected an integer of at most 64 bits.")
    if extend and max_paths_per_source is not None:
        raise ValueError(
            "extend=True with max_paths_per_source: a sample does not say where a path ends. Use one of the two."
        )
    most, kept = (None if value is None else int(value) for value in (max_paths, max_paths_per_source))
    return extend, most, kept, int(seed)
