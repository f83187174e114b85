"""Graphs, unions of graphs, and tries in the form of the oracle; no hypothesis, so that the CUDA tests can use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import networkx as nx
import torch
from torch import Tensor

from path_reference import to_graph
from pathnn.paths import PathTrie

Graph = tuple[Tensor, int]
"""`edge_index` and `num_nodes`."""


def undirected(edges: Iterable[tuple[int, int]]) -> Tensor:
    """An `edge_index` with both directions of each edge."""
    rows = [pair for u, v in edges for pair in ((u, v), (v, u))]
    return torch.tensor(rows, dtype=torch.int64).view(-1, 2).t().contiguous()


def from_networkx(graph: nx.Graph) -> Graph:
    number = {vertex: i for i, vertex in enumerate(graph)}
    return undirected((number[u], number[v]) for u, v in graph.edges), len(number)


def clique(n: int) -> Graph:
    return undirected(combinations(range(n), 2)), n


def cycle(n: int) -> Graph:
    return undirected([*pairwise(range(n)), (n - 1, 0)]), n


def line(n: int) -> Graph:
    return undirected(pairwise(range(n))), n


def layered(width: int, layers: int) -> Graph:
    """Complete bipartite graphs in a row: `width ** (l - 1)` shortest paths between vertices `l` layers apart."""
    step = [(t * width + i, (t + 1) * width + j) for t in range(layers - 1) for i in range(width) for j in range(width)]
    return undirected(step), width * layers


def random_graph(seed: int, *, n: int = 30, edges: int = 45, messy: bool = True) -> Graph:
    """Some edges between `n` vertices, their rows shuffled; messy: with self-loops and repeated rows."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, n, (2, edges), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    rows = [pairs, pairs.flip(0)]
    if messy:
        rows += [pairs[:, ::3], torch.randint(0, n, (1, 3), generator=generator).expand(2, -1)]
    edge_index = torch.cat(rows, dim=1)
    return edge_index[:, torch.randperm(edge_index.size(1), generator=generator)], n


@dataclass(frozen=True)
class Union:
    """The disjoint union of graphs, as PyG batches them."""

    edge_index: Tensor
    num_nodes: int
    batch: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor

    @property
    def graph(self) -> Graph:
        return self.edge_index, self.num_nodes


def union(graphs: Sequence[Graph]) -> Union:
    sizes = torch.tensor([n for _, n in graphs], dtype=torch.int64)
    node_ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    edges = torch.tensor([e.size(1) for e, _ in graphs], dtype=torch.int64)
    shifted = [e + start for (e, _), start in zip(graphs, node_ptr.tolist(), strict=False)]
    return Union(
        torch.cat([torch.empty(2, 0, dtype=torch.int64), *shifted], dim=1),
        int(sizes.sum()),
        torch.arange(len(graphs)).repeat_interleave(sizes),
        node_ptr,
        torch.cat([edges.new_zeros(1), edges.cumsum(0)]),
    )


def levels_of(trie: PathTrie) -> list[list[list[tuple[int, tuple[int, int, int, int]]]]]:
    """A trie in the form of `reference_levels`."""
    return [[_entries(level) for level in length.levels] for length in trie.lengths()]


def _entries(level) -> list[tuple[int, tuple[int, int, int, int]]]:
    nothing = [-1] * len(level)
    parent = nothing if level.parent is None else level.parent.tolist()
    edge = nothing if level.edge is None else level.edge.tolist()
    distance = nothing if level.distance is None else level.distance.tolist()
    tokens = zip(parent, level.vertex.tolist(), edge, distance, strict=True)
    return [(p, (v if v >= 0 else ~v, int(v < 0), e, d)) for p, v, e, d in tokens]


def distances_of(graph: Graph, paths: Tensor, *, directed: bool = False, dummy: int = -1) -> list[list[int]]:
    """The distance of each vertex of the paths from its source, by networkx."""
    simple = to_graph(*graph, directed=directed)
    apart = {v: nx.single_source_shortest_path_length(simple, v) for v in set(paths[:, 0].tolist())}
    return [[apart[row[0]][v] if v >= 0 else dummy for v in row] for row in paths.tolist()]


def path_set(lengths: Sequence[Tensor]) -> set[tuple[int, ...]]:
    """The paths of all lengths; fails if one comes twice."""
    paths = [tuple(row) for rows in lengths for row in rows.tolist()]
    assert len(paths) == len(set(paths))
    return set(paths)
