"""The oracle: the paper's definitions word by word, with networkx; slow and obvious. Tests compare all with it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
from torch import Tensor

from pathnn.paths.options import Collection, check_collection, check_k
from pathnn.paths.trie import DUMMY, Path

Token = tuple[int, int, int, int]
"""Owner (the vertex, or the one a dummy follows), whether it is a dummy, edge (-1: none), distance (-1: left out)."""


def to_graph(edge_index: Tensor, num_nodes: int, *, directed: bool = False) -> Any:
    """The simple graph that `edge_index` describes, of networkx; self-loops do not matter."""
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((u, v) for u, v in edge_index.t().tolist() if u != v)
    return graph


def shortest_paths(graph: Any, source: int, target: int) -> list[Path]:
    """All shortest paths between two vertices, none when there is no path."""
    try:
        return [tuple(path) for path in nx.all_shortest_paths(graph, source, target)]
    except nx.NetworkXNoPath:
        return []


def single_shortest_path(graph: Any, source: int, target: int) -> list[Path]:
    """The one shortest path that SP uses: the one that avoids large vertex ids.

    Of two shortest paths, the one whose largest vertex is smaller wins; if these are equal the second largest decides,
    and so on. The rule does not depend on the direction, and a subpath of a chosen path is itself chosen.
    """
    return sorted(shortest_paths(graph, source, target), key=lambda path: sorted(path, reverse=True))[:1]


def simple_paths(graph: Any, source: int, target: int, k: int) -> list[Path]:
    """All simple paths of at most `k` edges between two vertices."""
    return [tuple(path) for path in nx.all_simple_paths(graph, source, target, cutoff=k)]


def reference_paths(
    edge_index: Tensor, num_nodes: int, *, collection: Collection, k: int, extend: bool = False, directed: bool = False
) -> list[list[Path]]:
    """The paths of a collection: one sorted list per length 1..k."""
    check_collection(collection)
    check_k(k)
    graph = to_graph(edge_index, num_nodes, directed=directed)
    found: set[Path] = set()
    for source in graph:
        for target in graph:
            if source == target:
                continue
            if collection == "sp":
                found.update(single_shortest_path(graph, source, target))
            elif collection == "sp+":
                found.update(shortest_paths(graph, source, target))
            else:
                found.update(simple_paths(graph, source, target, k))
    found = {path for path in found if len(path) - 1 <= k}
    if extend:
        found |= extensions(found, k)
    return [sorted(path for path in found if len(path) - 1 == length) for length in range(1, k + 1)]


def reference_cycles(edge_index: Tensor, num_nodes: int, *, k: int, directed: bool = False) -> list[list[Path]]:
    """The cycles of at most `k` edges, from each of their vertices back to it, in both directions if undirected."""
    found: set[Path] = set()
    for cycle in nx.simple_cycles(to_graph(edge_index, num_nodes, directed=directed), length_bound=k):
        for vertices in (cycle,) if directed else (cycle, cycle[::-1]):
            found.update(tuple(vertices[i:] + vertices[: i + 1]) for i in range(len(vertices)))
    return [sorted(path for path in found if len(path) - 1 == length) for length in range(1, k + 1)]


def reference_walks(
    edge_index: Tensor, num_nodes: int, source: int, *, length: int, backtrack: bool, directed: bool = False
) -> dict[Path, float]:
    """The random walks of one length from a vertex, and their probabilities; those that cannot go on are left out."""
    graph = to_graph(edge_index, num_nodes, directed=directed)
    walks: dict[Path, float] = {(source,): 1.0}
    for _ in range(length):
        longer = {}
        for walk, probability in walks.items():
            steps = [v for v in graph[walk[-1]] if backtrack or len(walk) < 2 or v != walk[-2]]
            longer.update({(*walk, v): probability / len(steps) for v in steps})
        walks = longer
    return walks


def extensions(paths: set[Path], k: int) -> set[Path]:
    """Each path that no other path continues, followed by dummy tokens, for every length up to `k`."""
    continued = {path[:-1] for path in paths}
    return {path + (DUMMY,) * extra for path in paths - continued for extra in range(1, k - (len(path) - 1) + 1)}


def tokens(path: Path, first_row: dict[tuple[int, int], int], distance: dict[int, int] | None, k: int) -> list[Token]:
    """What the LSTM reads: the path from its far end to its source. `distance` is measured to the source."""
    last = max(i for i, vertex in enumerate(path) if vertex != DUMMY)
    owners = [path[min(i, last)] for i in range(len(path))]
    reading = [(owners[i], int(i > last)) for i in reversed(range(len(path)))]
    edges = [-1] + [
        -1 if dummy_before or dummy else first_row[before, vertex]
        for (before, dummy_before), (vertex, dummy) in pairwise(reading)
    ]
    return [
        (vertex, dummy, edge, -1 if distance is None else k + 1 if dummy else distance[vertex])
        for (vertex, dummy), edge in zip(reading, edges, strict=True)
    ]


def reference_levels(
    edge_index: Tensor,
    num_nodes: int,
    *,
    collection: Collection,
    k: int,
    distances: bool,
    extend: bool = False,
    directed: bool = False,
    given: list[list[Path]] | None = None,
) -> list[list[list[tuple[int, Token]]]]:
    """The trie: for each length, for each level, the sorted list of (parent's position, token).

    An entry at level t is a distinct sequence of the first t + 1 tokens; sorting the sequences sorts the entries by
    (parent, owner, dummy, edge, distance). Paths that are `given` may occur several times: the last level has each.
    """
    graph = to_graph(edge_index, num_nodes, directed=directed)
    first_row: dict[tuple[int, int], int] = {}
    for row, (u, v) in enumerate(edge_index.t().tolist()):
        first_row.setdefault((v, u) if directed else (u, v), row)  # read from the far end, against the direction
    lengths: list[list[list[tuple[int, Token]]]] = []
    if given is None:
        given = reference_paths(edge_index, num_nodes, collection=collection, k=k, extend=extend, directed=directed)
    for paths in given:
        sequences = []
        for path in paths:
            distance = nx.single_source_shortest_path_length(graph, path[0]) if distances else None
            sequences.append(tuple(tokens(path, first_row, distance, k)))
        levels: list[list[tuple[int, Token]]] = []
        position: dict[tuple[Token, ...], int] = {(): -1}
        for size in range(1, len(lengths) + 3):
            prefixes = sorted({sequence[:size] for sequence in sequences})
            if size == len(lengths) + 2:
                prefixes = sorted(sequences)
            levels.append([(position[prefix[:-1]], prefix[-1]) for prefix in prefixes])
            position = {prefix: i for i, prefix in enumerate(prefixes)}
        lengths.append(levels)
    return lengths
