"""Check that a trie belongs to a graph: after edges were sorted or removed, paths would read wrong features."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.paths.trie import PathTrie


def check_sizes(trie: PathTrie, *, nodes: int | None = None, edges: int | None = None) -> None:
    """Raise `ValueError` if the trie was extracted from another number of vertices or edges, where they are given."""
    for name, came, expected in (("vertices", nodes, trie.num_nodes), ("edges", edges, trie.num_edges)):
        if came is not None and came != expected:
            raise ValueError(
                f"the graph has {came} {name}, but the trie was extracted from {expected}: expected as many. {WAY_OUT}"
            )


def check_edge_rows(trie: PathTrie, edge_index: Tensor) -> None:
    """Raise `ValueError` if rows of `edge_index` that the trie names are not the edges that it takes them for.

    Only on the CPU: looking at them would wait for a GPU.

    >>> import torch
    >>> from pathnn import extract_paths
    >>> edge_index = torch.tensor([[1, 0, 2, 1], [0, 1, 1, 2]])
    >>> check_edge_rows(extract_paths(edge_index, 3, collection="sp", k=2), edge_index.sort(dim=1).values)
    Traceback (most recent call last):
    ...
    ValueError: the trie's paths go through the edge from vertex 0 to 1 as row 1 of edge_index, where now ...
    """
    if edge_index.device.type != "cpu" or trie.device.type != "cpu" or trie.k < 1:
        return
    starts, ends = trie.length(1).levels
    assert ends.edge is not None
    assert ends.parent is not None
    rows, before, after = ends.edge.long(), starts.vertex[ends.parent.long()], ends.vertex
    if trie.extended:  # dummy tokens have no edge
        rows, before, after = rows[before >= 0], before[before >= 0], after[before >= 0]
    if not rows.numel():
        return
    if int(rows.max()) >= edge_index.size(1):
        check_sizes(trie, edges=edge_index.size(1))
    source, target = edge_index.flip(0) if trie.directed else edge_index
    wrong = ((source[rows] != before) | (target[rows] != after)).nonzero()
    if wrong.numel():
        i = int(wrong[0])
        row, there = int(rows[i]), [int(end) for end in edge_index[:, int(rows[i])]]
        before, after = (after, before) if trie.directed else (before, after)
        raise ValueError(
            f"the trie's paths go through the edge from vertex {int(before[i])} to {int(after[i])} as row {row} of "
            f"edge_index, where now the edge from {there[0]} to {there[1]} is: edges were sorted or changed since. "
            f"{WAY_OUT}"
        )


def check_edges_exist(trie: PathTrie, edge_index: Tensor) -> None:
    """Raise `ValueError` if a path of length 1 is no edge of the graph, whatever the order of its edges. CPU only."""
    if edge_index.device.type != "cpu" or trie.device.type != "cpu" or trie.k < 1 or trie.sampled is not None:
        return
    starts, ends = trie.length(1).levels
    assert ends.parent is not None
    before = starts.vertex[ends.parent.long()].long()
    mine = (before * trie.num_nodes + ends.vertex)[before >= 0].sort()[0]
    source, target = edge_index.flip(0).long() if trie.directed else edge_index.long()
    theirs = (source * trie.num_nodes + target)[source != target].unique()
    if not bool(torch.isin(mine, theirs).all()):
        raise ValueError(
            "the trie's paths go through edges that the graph does not have: edges were left out, or vertices "
            f"renumbered, since. {WAY_OUT}"
        )


WAY_OUT = "Extract the paths after all that changes edges: AddPaths is the last transform."
