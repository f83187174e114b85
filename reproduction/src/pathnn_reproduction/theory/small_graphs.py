"""Give equal structures equal integers and different ones different integers, whole arrays at a time.

Nothing is hashed: names come from sorting. They mean something only within the array that one call returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]


def name_pairs(first: Ints, second: Ints) -> Ints:
    """Return names of the pairs `(first[i], second[i])`; both hold integers of at least 0.

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
    """Return names of the rows of a matrix of integers of at least 0.

    >>> name_rows(np.array([[1, 2, 3], [1, 2, 4], [1, 2, 3]]))
    array([0, 1, 0])
    """
    names = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        names = name_pairs(names, column)
    return names


def name_multisets(owner: NDArray[Any], members: Ints, num_owners: int) -> Ints:
    """Return names of the multisets `{members[i] : owner[i] == o}` of all owners o, which may be empty.

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
    """Return the ranks of the keys, by counting if they are dense enough, else by sorting."""
    span = int(keys.max(initial=0)) + 1
    if span > 4 * len(keys) + 1000:
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)
    present = np.zeros(span, dtype=np.int64)
    present[keys] = 1
    return (np.cumsum(present) - 1)[keys]


LARGEST = 7
"""Vertices of the largest graphs of networkx's atlas."""


@dataclass(frozen=True, repr=False)
class Universe:
    """Many graphs as one; a graph may occur in several numberings."""

    edge_index: Tensor  # both directions of every edge, vertices counted through all graphs
    graph: Ints  # [vertices]: the graph of each vertex
    first: Ints  # [graphs]: the first vertex of each
    sizes: Ints  # [graphs]: number of vertices
    edges: Ints  # [graphs]: number of edges
    connected: NDArray[np.bool_]  # [graphs]
    kind: Ints  # [graphs]: equal exactly for isomorphic graphs
    orbit: Ints  # [vertices]: equal exactly for isomorphic vertices: some isomorphism takes one to the other

    @property
    def num_nodes(self) -> int:
        """The number of vertices of all graphs."""
        return len(self.graph)

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"Universe({len(self)} graphs, {self.num_nodes} vertices)"

    def edge_list(self, graph: int) -> list[tuple[int, int]]:
        """Return the edges of one graph, with vertices counted from 0."""
        begin = int(self.first[graph])
        inside = (self.edge_index >= begin) & (self.edge_index < begin + int(self.sizes[graph]))
        pairs = (self.edge_index[:, inside[0]] - begin).t().tolist()
        return sorted((u, v) for u, v in pairs if u < v)


def small_graphs(max_vertices: int = LARGEST, *, all_up_to: int = 0, copies: int = 0, seed: int = 0) -> Universe:
    """Return all graphs with 1 to `max_vertices` vertices, up to isomorphism, in the order of networkx's atlas.

    Graphs of at most `all_up_to` vertices come in all their numberings (each labelled graph once), larger ones
    in the atlas's and `copies` random others.

    >>> small_graphs(4), small_graphs(4, all_up_to=4), small_graphs(4, all_up_to=3, copies=1)
    (Universe(18 graphs, 61 vertices), Universe(75 graphs, 285 vertices), Universe(33 graphs, 117 vertices))
    """
    if not 1 <= max_vertices <= LARGEST:
        raise ValueError(f"max_vertices={max_vertices!r}: expected 1 to {LARGEST}, the sizes of networkx's atlas.")
    from networkx import is_connected
    from networkx.generators.atlas import graph_atlas_g

    rng = np.random.default_rng(seed)
    every = [np.array(list(permutations(range(n))), dtype=np.int64) for n in range(max_vertices + 1)]
    graphs = [graph for graph in graph_atlas_g() if 1 <= len(graph) <= max_vertices]
    ends = [np.array(sorted(graph.edges), dtype=np.int64).reshape(-1, 2) for graph in graphs]
    numberings, orbits = [], []  # [copies, vertices], the new number of each vertex; [vertices]
    for graph, pairs in zip(graphs, ends, strict=True):
        new = every[len(graph)]
        u, v = np.sort(new[:, pairs], axis=-1).transpose(2, 0, 1)
        labelled = (np.int64(1) << (u * len(graph) + v)).sum(axis=1)  # each numbering as the bits of an integer
        # An automorphism is a numbering that changes nothing; its images of v are v's orbit.
        orbits.append(new[labelled == labelled[0]].min(axis=0))
        if len(graph) <= all_up_to:
            numberings.append(new[np.sort(np.unique(labelled, return_index=True)[1])])
        else:
            numberings.append(np.stack([new[0], *(rng.permutation(len(graph)) for _ in range(copies))]))
    return _union(ends, numberings, orbits, np.array([is_connected(graph) for graph in graphs]))


def _union(ends: list[Ints], numberings: list[Ints], orbits: list[Ints], connected: NDArray[np.bool_]) -> Universe:
    copies, vertices = np.array([new.shape for new in numberings]).T
    kind = np.repeat(np.arange(len(ends)), copies)
    sizes = vertices[kind]
    first = np.cumsum(sizes) - sizes
    starts = np.split(first, np.cumsum(copies)[:-1])
    edges = [
        (new[:, pairs] + start[:, None, None]).reshape(-1, 2)
        for new, pairs, start in zip(numberings, ends, starts, strict=True)
    ]
    base = np.cumsum(vertices) - vertices
    pairs = np.concatenate(edges)
    both = np.concatenate([pairs, pairs[:, ::-1]]).T
    return Universe(
        edge_index=torch.from_numpy(np.ascontiguousarray(both)),
        graph=np.repeat(np.arange(len(sizes)), sizes),
        first=first,
        sizes=sizes,
        edges=np.array([len(pairs) for pairs in ends])[kind],
        connected=connected[kind],
        kind=kind,
        orbit=np.concatenate(
            [(base[i] + orbits[i][np.argsort(new, axis=1)]).ravel() for i, new in enumerate(numberings)]
        ),
    )


def distance_table(universe: Universe) -> NDArray[Any]:
    """`[vertices, LARGEST]`: the distance of a vertex to each vertex of its graph, counted from the graph's first.

    Where there is no path the distance is `LARGEST`, more than any other.

    >>> distance_table(small_graphs(2)).tolist()[-2:]
    [[0, 1, 7, 7, 7, 7, 7], [1, 0, 7, 7, 7, 7, 7]]
    """
    local = np.arange(universe.num_nodes) - universe.first[universe.graph]
    table = np.full((len(universe), LARGEST, LARGEST), LARGEST, dtype=np.int64)
    source, target = universe.edge_index.numpy()
    table[universe.graph[source], local[source], local[target]] = 1
    table[universe.graph, local, local] = 0
    for middle in range(LARGEST):  # Floyd and Warshall
        table = np.minimum(table, table[:, :, middle, None] + table[:, None, middle, :])
    return np.minimum(table, LARGEST)[universe.graph, local]
