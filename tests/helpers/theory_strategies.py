"""Random small graphs for the tests of this folder."""

from __future__ import annotations

from functools import cache

import networkx as nx
from hypothesis import settings, strategies as st

from pathnn.theory.graphs import Graph, edges_to_index

relaxed = settings(max_examples=60, deadline=None)


def from_networkx(graph: nx.Graph) -> Graph:
    number = {vertex: i for i, vertex in enumerate(graph)}
    return edges_to_index([(number[u], number[v]) for u, v in graph.edges]), len(number)


@cache
def atlas(largest: int) -> list[Graph]:
    """All graphs with 1 to `largest` vertices, up to isomorphism."""
    return [from_networkx(graph) for graph in nx.graph_atlas_g() if 1 <= len(graph) <= largest]


@st.composite
def graphs(draw: st.DrawFn, largest: int = 7) -> Graph:
    n = draw(st.integers(1, largest))
    pairs = [(u, v) for u in range(n) for v in range(u)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return edges_to_index(chosen), n


@st.composite
def relabelled(draw: st.DrawFn, largest: int = 7) -> tuple[Graph, Graph, list[int]]:
    """A graph, the same graph with other numbers, and the new number of each vertex."""
    edge_index, n = draw(graphs(largest))
    new = draw(st.permutations(range(n)))
    edges = [(new[u], new[v]) for u, v in edge_index.t().tolist() if u < v]
    return (edge_index, n), (edges_to_index(draw(st.permutations(edges))), n), list(new)
