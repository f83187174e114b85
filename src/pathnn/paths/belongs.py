"""Whether a trie is that of a graph: edges that were sorted or left out since would get each other's features."""

from __future__ import annotations

from torch import Tensor

from pathnn.paths.trie import PathTrie


def check_belongs(trie: PathTrie, edge_index: Tensor, num_nodes: int | None = None) -> PathTrie:
    """Return `trie`, or raise `ValueError` if it was extracted from other edges than these.

    On a GPU only the numbers of vertices and edges are compared: looking at the edges would wait for it.

    >>> import torch
    >>> from pathnn import extract_paths
    >>> edge_index = torch.tensor([[1, 0, 2, 1], [0, 1, 1, 2]])
    >>> trie = extract_paths(edge_index, 3, collection="sp", k=2)
    >>> check_belongs(trie, edge_index.sort(dim=1).values)
    Traceback (most recent call last):
    ...
    ValueError: the trie's paths go through the edge from vertex 0 to 1 as row 1 of edge_index, where now ...
    """
    for name, came, expected in (
        ("vertices", num_nodes, trie.num_nodes),
        ("edges", edge_index.size(1), trie.num_edges),
    ):
        if came is not None and came != expected:
            raise ValueError(
                f"the graph has {came} {name}, but the trie was extracted from {expected}: expected as many. {WAY_OUT}"
            )
    if edge_index.device.type != "cpu" or trie.device.type != "cpu" or trie.k < 1:
        return trie
    starts, ends = trie.length(1).levels
    assert ends.edge is not None
    assert ends.parent is not None
    rows, before, after = ends.edge.long(), starts.vertex[ends.parent.long()], ends.vertex
    if trie.extended:  # dummy tokens have no edge
        rows, before, after = rows[before >= 0], before[before >= 0], after[before >= 0]
    source, target = edge_index
    wrong = ((source[rows] != before) | (target[rows] != after)).nonzero()
    if wrong.numel():
        i = int(wrong[0])
        row, there = int(rows[i]), [int(end) for end in edge_index[:, int(rows[i])]]
        raise ValueError(
            f"the trie's paths go through the edge from vertex {int(before[i])} to {int(after[i])} as row {row} of "
            f"edge_index, where now the edge from {there[0]} to {there[1]} is: edges were sorted or changed since. "
            f"{WAY_OUT}"
        )
    return trie


WAY_OUT = "Extract the paths after all that changes edges: AddPaths is the last transform."
