"""Join the tries of all lengths: a path shares the states of its prefixes, which are the shorter paths themselves."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pathnn.paths.trie import LengthTrie, PathTrie

JOINED = ("sp+", "ap")
"""The collections that contain the prefixes of their paths."""


def is_joined(trie: PathTrie) -> bool:
    """Return whether a trie is a result of `join_lengths`: only its last length has entries."""
    return trie.k > 1 and not sum(trie.sizes[0]) and bool(sum(trie.sizes[-1]))


def join_lengths(trie: PathTrie) -> PathTrie:
    """Return a trie in which each entry is the end of a path, read from its far end, with distances to the far end.

    Level t of its last length has the paths of t edges, and its other lengths are empty: read it by `prefixes_of`.
    """
    if trie.collection not in JOINED or trie.distance is not None or trie.extended or trie.sampled or trie.directed:
        raise ValueError(
            f"{trie}: expected all paths of a collection in {JOINED}, without distances and dummy tokens "
            "(distances=False), since a path is read together with its prefixes."
        )
    roots = trie.length(1).levels[0].vertex
    parents: list[Tensor] = []
    vertices, edges = [roots], list[Tensor]()
    order, keys = list[Tensor](), list[Tensor]()  # of the levels of the result, to find prefixes
    for one in trie.lengths():
        place = torch.searchsorted(roots, one.levels[0].vertex)
        for t, level in enumerate(one.levels[1:]):
            assert level.parent is not None
            assert level.edge is not None
            above = place[level.parent.long()]
            key = above * max(trie.num_edges, 1) + level.edge
            if t < len(keys):
                place = order[t][torch.searchsorted(keys[t], key)]
            else:
                parents.append(above)
                vertices.append(level.vertex)
                edges.append(level.edge)
                sorted_key, rows = key.sort()
                keys.append(sorted_key)
                order.append(rows)
    sizes = (*((0,) * (length + 1) for length in range(1, trie.k)), tuple(level.numel() for level in vertices))
    distance = _distances(vertices, parents, trie.num_nodes)
    vertex, parent, edge = torch.cat(vertices), torch.cat(parents).to(trie.parent.dtype), torch.cat(edges)
    return replace(trie, vertex=vertex, parent=parent, edge=edge, distance=distance, sizes=sizes, plans=None)


def _distances(vertices: list[Tensor], parents: list[Tensor], num_nodes: int) -> Tensor:
    """Return the distance of each entry to its root: the edges of the shortest path between the two."""
    root = torch.arange(vertices[0].numel(), device=vertices[0].device)
    pairs, levels = [], []
    for t, vertex in enumerate(vertices):
        root = root[parents[t - 1]] if t else root
        pairs.append(root * num_nodes + vertex)
        levels.append(torch.full_like(vertex, t))
    different, pair = torch.unique(torch.cat(pairs), return_inverse=True)
    level = torch.cat(levels)
    least = torch.full_like(different, len(vertices), dtype=level.dtype)
    return least.scatter_reduce_(0, pair, level, "amin")[pair]


def prefixes_of(joined: PathTrie) -> LengthTrie:
    """Return the levels of a result of `join_lengths`."""
    return replace(joined.length(joined.k), prefixes=True)
