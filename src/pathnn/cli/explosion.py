"""Refusing data with too many paths in time: within seconds, whatever k is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pathnn.data.packed import PackedGraphs
from pathnn.data.paths import count_per_graph
from pathnn.paths.options import Collection, PathOptions

FIRST = 4


def refuse_too_many(graphs: PackedGraphs, *, collection: Collection, k: int, max_paths: int) -> None:
    """Raise `PathExplosionError` if there are more than `max_paths` paths of length 1..k.

    Counting long paths stops at its limit, but each range of sources has a limit of its own, and many graphs take
    minutes to get there. So short lengths come first, and the next is one that should be countable.

    >>> from pathnn.theory.graphs import edges_to_index
    >>> complete = edges_to_index([(u, v) for u in range(30) for v in range(u)])
    >>> graphs = PackedGraphs.from_edges([complete], [30])
    >>> refuse_too_many(graphs, collection="ap", k=200, max_paths=10**5)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    PathExplosionError: graph 0 has too many paths
    """
    length = min(k, FIRST) if collection == "ap" else k
    while True:
        counts = count_per_graph(graphs, PathOptions(collection, length), max_paths=max_paths)
        totals = counts.sum(dim=0).tolist()
        if length == k or totals[-1] == 0:
            return
        length = min(k, length + further(totals, max_paths))


def further(totals: Sequence[int], max_paths: int) -> int:
    """How many edges longer paths may be that, growing on like this, there are at most `max_paths` of; at least 1.

    >>> further([10, 100], 100_000), further([10, 100], 200), further([10, 5], 200)
    (3, 1, 2)
    """
    growth = totals[-1] / max(totals[-2], 1)
    if growth <= 1:
        return len(totals)
    return max(1, int(math.log(max_paths / totals[-1]) / math.log(growth) + 1e-9))
