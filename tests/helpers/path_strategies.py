"""Random graphs for hypothesis, and all graphs of networkx's atlas."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise

import networkx as nx
import torch
from hypothesis import settings, strategies as st

from path_checks import Graph, from_networkx

COLLECTIONS = ("sp", "sp+", "ap")

quick = settings(max_examples=60, deadline=None)
thorough = settings(max_examples=150, deadline=None)

collections = st.sampled_from(COLLECTIONS)
lengths = st.integers(1, 6)


@cache
def atlas() -> tuple[Graph, ...]:
    """All 1253 graphs with at most seven vertices, up to isomorphism; the first has no vertex."""
    return tuple(from_networkx(graph) for graph in nx.graph_atlas_g())


@st.composite
def edge_sets(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    """The edges of a simple graph of at most nine vertices (dense ones have fewer), and its number of vertices."""
    kind = draw(st.sampled_from(["any", "tree", "sparse", "cycle", "clique", "several"]))
    if kind == "tree":
        n = draw(st.integers(1, 9))
        return [(draw(st.integers(0, v - 1)), v) for v in range(1, n)], n
    if kind == "cycle":
        n = draw(st.integers(3, 9))
        return [*pairwise(range(n)), (n - 1, 0)], n
    if kind == "clique":
        n = draw(st.integers(0, 5))
        return list(combinations(range(n), 2)), n
    if kind == "several":
        (left, n), (right, m) = draw(edge_sets_of(4)), draw(edge_sets_of(5))
        return left + [(u + n, v + n) for u, v in right], n + m
    n = draw(st.integers(0, 9 if kind == "sparse" else 6))
    return draw(edge_sets_of(n, n + 2 if kind == "sparse" else None, exactly=True))


@st.composite
def edge_sets_of(
    draw: st.DrawFn, n: int, most: int | None = None, exactly: bool = False
) -> tuple[list[tuple[int, int]], int]:
    n = n if exactly else draw(st.integers(0, n))
    pairs = list(combinations(range(n), 2))
    return draw(st.lists(st.sampled_from(pairs), unique=True, max_size=most)) if pairs else [], n


@st.composite
def graphs(draw: st.DrawFn, messy: bool = True) -> Graph:
    """Connected or not, vertices in any order, rows in any order; messy: with self-loops and repeated rows."""
    edges, n = draw(edge_sets())
    number = draw(st.permutations(range(n)))
    rows = [pair for u, v in edges for pair in ((number[u], number[v]), (number[v], number[u]))]
    if messy and rows and draw(st.booleans()):
        rows += draw(st.lists(st.sampled_from(rows), max_size=4))
    if messy and n and draw(st.booleans()):
        rows += [(v, v) for v in draw(st.lists(st.integers(0, n - 1), max_size=3))]
    rows = draw(st.permutations(rows))
    return torch.tensor(rows, dtype=torch.int64).view(-1, 2).t().contiguous(), n


@st.composite
def relabelled(draw: st.DrawFn) -> tuple[Graph, Graph, list[int]]:
    """A graph, the same graph with other vertex numbers and other rows, and the new number of each vertex."""
    edge_index, n = draw(graphs(messy=False))
    number = draw(st.permutations(range(n)))
    rows = draw(st.permutations([(number[u], number[v]) for u, v in edge_index.t().tolist()]))
    return (edge_index, n), (torch.tensor(rows, dtype=torch.int64).view(-1, 2).t().contiguous(), n), list(number)


graph_lists = st.lists(graphs(), min_size=1, max_size=4)
