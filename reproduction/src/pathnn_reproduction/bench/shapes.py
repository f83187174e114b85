"""Make random graph sets shaped like those of the paper, so that benchmarks need no data."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

from pathnn.data.packed import PackedGraphs

Edges = set[tuple[int, int]]


def graph_set(shape: str, graphs: int, seed: int = 0) -> PackedGraphs:
    """Return a seeded set of graphs of one of the `SHAPES`.

    >>> len(graph_set("zinc", 3))
    3
    """
    if shape not in SHAPES:
        raise ValueError(f"shape={shape!r} is unknown: expected one of {', '.join(SHAPES)}.")
    rng = np.random.default_rng(seed)
    edges, nodes = [], []
    for _ in range(graphs):
        n, found = SHAPES[shape](rng)
        edges.append(torch.tensor(sorted([*found, *((v, u) for u, v in found)])).reshape(-1, 2).t())
        nodes.append(n)
    return PackedGraphs.from_edges(edges, nodes)


def zinc_like(rng: np.random.Generator) -> tuple[int, Edges]:
    """Return about 23 vertices and 25 edges: rings of 5 and 6 in chains with short branches."""
    n = int(np.clip(rng.normal(23.2, 4.5), 9, 37))
    return _molecule(rng, n, ring=0.17, last=0.35)


def peptides_like(rng: np.random.Generator) -> tuple[int, Edges]:
    """Return about 151 vertices and 154 edges: a long chain with side chains, a few of them rings."""
    n = int(np.clip(rng.lognormal(4.85, 0.55), 8, 444))
    return _molecule(rng, n, ring=0.03, last=0.7)


def dd_like(rng: np.random.Generator) -> tuple[int, Edges]:
    """Return about 284 vertices and 716 edges: neighbouring sites of a dense packing, some of them empty."""
    n = int(np.clip(rng.lognormal(5.45, 0.62), 30, 2000))
    radius = int(np.ceil((4 * n) ** (1 / 3)))
    site = np.argwhere(np.ones((2 * radius + 1,) * 3)) - radius
    site = site[site.sum(axis=1) % 2 == 0]
    site = site[np.argsort((site**2).sum(axis=1) + rng.random(len(site)))][: int(n / 0.5)]
    site = site[np.sort(rng.permutation(len(site))[:n])]
    apart = ((site[:, None] - site[None]) ** 2).sum(axis=2)
    return n, {(int(u), int(v)) for u, v in np.argwhere(np.triu(apart == 2, 1))}


SHAPES: dict[str, Callable[[np.random.Generator], tuple[int, Edges]]] = {
    "zinc": zinc_like,
    "dd": dd_like,
    "peptides": peptides_like,
}


def _molecule(rng: np.random.Generator, n: int, ring: float, last: float) -> tuple[int, Edges]:
    """Grow a tree of vertices and rings with at most 4 bonds per vertex, mostly at the newest end."""
    edges: Edges = set()
    degree = np.zeros(n + 6, dtype=np.int64)
    size = 1
    while size < n:
        free = np.flatnonzero(degree[:size] < 3)
        at = int(free[-1]) if rng.random() < last else int(rng.choice(free))
        members = [at]
        length = int(rng.integers(5, 7)) if rng.random() < ring else 1
        fused = length > 1 and rng.random() < 0.3
        new = list(range(size, min(size + length - (1 if fused else 0), n)))
        members += new
        edges |= {(min(u, v), max(u, v)) for u, v in pairwise(members)}
        if len(new) > 2:
            end = members[0] if fused else members[1]
            edges.add((min(end, new[-1]), max(end, new[-1])))
        size += len(new)
        degree[:] = 0
        np.add.at(degree, np.array(sorted(edges)).reshape(-1), 1)
    return n, edges
