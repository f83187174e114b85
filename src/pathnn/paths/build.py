"""From explicit paths to a trie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from pathnn.checks import check_flag
from pathnn.paths.cpu.extract import join, path_distances
from pathnn.paths.cpu.token_tries import read_tokens, trie_of_tokens
from pathnn.paths.csr import Csr, to_csr
from pathnn.paths.options import PathOptions
from pathnn.paths.trie import PathTrie


def trie_from_paths(
    paths: Sequence[Tensor], edge_index: Tensor, num_nodes: int, options: PathOptions, extended: bool | None
) -> PathTrie:
    """See `PathTrie.from_paths`."""
    csr = to_csr(edge_index, num_nodes, directed=options.directed)
    for length, rows in enumerate(paths, start=1):
        check_paths(rows, length, num_nodes, simple=options.definition.simple)
    dummies = any(bool((rows < 0).any()) for rows in paths)
    if extended is False and dummies:
        raise ValueError("extended=False, but there are dummy tokens (-1): leave extended out, or these paths.")
    extended = dummies if extended is None else check_flag("extended", extended)
    trie = trie_of_paths([rows.int().cpu().contiguous() for rows in paths], csr, replace(options, extend=extended))
    return trie.to(edge_index.device)


def trie_of_paths(paths: Sequence[Tensor], csr: Csr, options: PathOptions) -> PathTrie:
    """Build the trie of checked paths, `[n, length + 1]` int32 per length, source first, -1 for dummy tokens."""
    arrays = csr.flip().arrays()
    distances = path_distances(csr, paths) if options.distances else [torch.zeros_like(rows) for rows in paths]
    sizes, parts = [], []
    for rows, distance in zip(paths, distances, strict=True):
        vertices, edges, wrong = read_tokens(rows.numpy(), *arrays)
        if wrong.size:
            v, u = wrong
            raise ValueError(
                f"a path of length {rows.size(1) - 1} steps from {v} to {u}, which is no edge of the graph."
            )
        order = np.lexsort(np.where(vertices < 0, 2 * ~vertices + 1, 2 * vertices).T[::-1])
        tokens = vertices[order], edges[order], distance.flip(1).numpy().astype(np.uint8)[order]
        count, vertex, *inner, far = trie_of_tokens(*tokens, not options.definition.simple)
        if count[-1] != len(rows):
            raise ValueError(
                f"paths of length {len(count) - 1}: a path appears more than once; expected each path once."
            )
        sizes.append(tuple(count.tolist()))
        starts = len(rows) * np.arange(rows.size(1))
        flat = (vertex, count), (far, count), *((x, count[1:]) for x in inner)
        parts.append([join([x], [starts[: len(size)]], [size]) for x, size in flat])
    vertex, distance, parent, edge = (torch.cat(part) for part in zip(*parts, strict=True))
    return PathTrie(
        vertex, parent, edge, distance.masked_fill(vertex < 0, options.k + 1) if options.distances else None,
        tuple(sizes), options.collection, csr.num_nodes, csr.num_edges, options.extend, options.max_paths_per_source,
        csr.directed,
    )  # fmt: skip


def check_paths(rows: object, length: int, num_nodes: int, *, simple: bool) -> None:
    """Raise `ValueError` unless `rows` are paths of one length."""
    name = f"paths[{length - 1}]"
    if not isinstance(rows, Tensor):
        raise ValueError(f"{name} is a {type(rows).__name__}: expected a tensor of shape [n, {length + 1}].")
    if rows.dim() != 2 or rows.size(1) != length + 1:
        raise ValueError(f"{name} has shape {list(rows.shape)}: expected [n, {length + 1}], paths of {length} edges.")
    if rows.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name} has dtype {rows.dtype}: expected torch.int64.")
    if not rows.numel():
        return
    if int(rows.min()) < -1 or int(rows.max()) >= num_nodes:
        raise ValueError(f"{name} holds a vertex outside 0..{num_nodes - 1} (-1 is a dummy token).")
    dummy = rows < 0
    if bool(dummy[:, 0].any()) or bool((dummy[:, :-1] & ~dummy[:, 1:]).any()):
        raise ValueError(f"{name} has a dummy token (-1) before a vertex: expected them only at a path's end.")
    if not simple:
        return
    repeated = torch.where(dummy, torch.arange(-1, -2 - length, -1, device=rows.device), rows).sort(dim=1)[0]
    if bool((repeated[:, 1:] == repeated[:, :-1]).any()):
        raise ValueError(f"{name} has a path that visits a vertex twice: expected simple paths.")
