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


def check_edges(trie: PathTrie, edge_index: Tensor, *, rows: bool) -> None:
    """Raise `ValueError` if paths of length 1 are no edges of the graph.

    With `rows`, they must be the rows of `edge_index` that the trie names. Does nothing on a GPU, to wait for nothing.
    """
    if edge_index.device.type != "cpu" or trie.device.type != "cpu" or trie.k < 1:
        return
    starts, ends = trie.length(1).levels
    assert ends.edge is not None
    assert ends.parent is not None
    steps = torch.stack([starts.vertex[ends.parent.long()], ends.vertex]).long()
    real = steps[0] >= 0  # dummy tokens have no edge
    steps, row = steps[:, real].flip(0) if trie.directed else steps[:, real], ends.edge[real].long()
    if not rows:
        weights = torch.tensor([[trie.num_nodes], [1]])
        if not bool(torch.isin((steps * weights).sum(dim=0), (edge_index * weights).sum(dim=0)).all()):
            raise ValueError(
                "the trie's paths go through edges that the graph does not have: edges were left out, or vertices "
                f"renumbered, since. {WAY_OUT}"
            )
        return
    if row.numel() and int(row.max()) >= edge_index.size(1):
        check_sizes(trie, edges=edge_index.size(1))
    wrong = (edge_index[:, row] != steps).any(dim=0).nonzero()
    if wrong.numel():
        i = int(wrong[0])
        (u, v), there, at = steps[:, i].tolist(), edge_index[:, row[i]].tolist(), int(row[i])
        raise ValueError(
            f"the trie's paths go through the edge from vertex {u} to {v} as row {at} of edge_index, where now "
            f"the edge from {there[0]} to {there[1]} is: edges were sorted or changed since. {WAY_OUT}"
        )


WAY_OUT = "Extract the paths after all that changes edges: AddPaths is the last transform."
