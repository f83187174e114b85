"""What a caller may ask for: path lengths, options, and not too many paths."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.byte_size import size_text
from pathnn.collection import Collection, check_k
from pathnn.paths.walks import SATURATED

MAX_K = 255
DEFAULT_MAX_PATHS = 50_000_000
SAMPLE_FROM = 200_000_000  # paths that a sample goes through at the most


class PathExplosionError(ValueError):
    """A graph has more paths than the caller allowed; nothing was allocated."""


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


def check_flag(name: str, value: object) -> bool:
    """Yes or no, or an error: the text "no" would mean yes.

    >>> check_flag("extend", "no")
    Traceback (most recent call last):
    ...
    ValueError: extend='no': expected True or False.
    """
    if not (isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and value in (0, 1))):
        raise ValueError(f"{name}={value!r}: expected True or False.")
    return bool(value)


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


def check_batch(batch: Any, num_nodes: int) -> None:
    """Raise `ValueError` unless `batch` is None or assigns every vertex to a graph."""
    if batch is None:
        return
    if not isinstance(batch, Tensor):
        raise ValueError(f"batch is a {type(batch).__name__}: expected a tensor of one graph id per vertex, or None.")
    if batch.shape != (num_nodes,) or batch.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"batch is {batch.dtype} of shape {list(batch.shape)}: "
            f"expected one graph id per vertex, torch.int64 of shape [{num_nodes}]."
        )
    if num_nodes and int(batch.min()) < 0:
        raise ValueError(f"batch holds graph {int(batch.min())}: expected ids from 0.")


def sum_per_graph(counts: Tensor, batch: Tensor | None) -> Tensor:
    """Sum per-vertex counts `[num_nodes, k]` per graph; sums stop growing at 2^61."""
    graphs = 1 if batch is None else int(batch.max()) + 1 if batch.numel() else 0
    at = torch.zeros_like(counts[:, 0]) if batch is None else batch.to(counts.device).long()
    exact = counts.new_zeros(graphs, counts.size(1)).index_add_(0, at, counts)
    rough = exact.new_zeros(exact.shape, dtype=torch.float64).index_add_(0, at, counts.double())
    return torch.where(rough > SATURATED, SATURATED, exact)


def refuse_explosion(
    counts: Tensor,
    complete: bool,
    collection: Collection,
    limit: int,
    batch: Tensor | None,
    *,
    sampling: bool = False,
    counting: bool = False,
    before: int = 0,
    others: bool = False,
) -> None:
    """Raise `PathExplosionError` if there are more paths than `limit`, naming the graph that has the most. `before` is
    the number of paths of graphs that were counted before; `others` says that more graphs were to follow.
    """
    graphs = sum_per_graph(counts, batch)
    total = before + sum(graphs.flatten().tolist())
    if total <= limit and complete:
        return
    graph = int(graphs.double().sum(dim=1).argmax())
    length = int(graphs[graph].argmax()) + 1
    here = sum(graphs[graph].tolist())
    words = {"sp": "single shortest paths", "sp+": "shortest paths", "ap": "simple paths"}[collection]
    least = "" if complete else "at least "
    name = f"graph {graph}" if batch is not None else "the graph"
    in_all = f"; {'at least ' if others else least}{total:,} in all" if len(graphs) > 1 or others else ""
    stopped = "" if complete else "; counting stopped there, there may be many times as many"
    raise PathExplosionError(
        f"{name} has {least}{int(graphs[graph, length - 1]):,} {words} of length {length} ({least}{here:,} of all "
        f"lengths, {least or 'about '}{size_text(estimate_bytes(here))}{in_all}{stopped}), "
        + (f"more than the {limit:,} that a sample goes through. " if sampling else f"over max_paths={limit:,}. ")
        + _ways_out(collection, sample=total <= SAMPLE_FROM and not (sampling or counting), limit=not sampling)
    )


def _ways_out(collection: Collection, *, sample: bool, limit: bool) -> str:
    """What can be done; whether the call could `sample`, or raise its `limit`, instead."""
    simpler = {"sp": "split the batch", "sp+": "use collection='sp'", "ap": "use collection='sp+'"}[collection]
    ways = ["Lower k", simpler]
    ways += ["keep a sample with max_paths_per_source"] if sample else []
    ways += ["raise max_paths"] if limit else []
    return ", ".join(ways[:-1]) + f", or {ways[-1]}."


def estimate_bytes(paths: int) -> float:
    """Roughly the bytes of a trie with so many paths: two entries a path, as prefixes are shared."""
    return 16.0 * 2.0 * paths
