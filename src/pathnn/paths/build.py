"""From explicit paths to a trie, with torch operations on any device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pathnn.checks import check_flag
from pathnn.paths.cpu.extract import path_distances
from pathnn.paths.csr import Csr, to_csr
from pathnn.paths.options import Collection, PathOptions
from pathnn.paths.trie import PathTrie


@dataclass(frozen=True, eq=False)
class Tokens:
    """The token sequences of all paths of one length, a row each, in reading order (far end first).

    `vertex` `[n, length + 1]`, `edge` `[n, length]` (of the tokens but the first), `distance` as `vertex`, or None.
    """

    vertex: Tensor
    edge: Tensor
    distance: Tensor | None

    def __getitem__(self, rows: Tensor) -> Tokens:
        distance = None if self.distance is None else self.distance[rows]
        return Tokens(self.vertex[rows], self.edge[rows], distance)

    def sort_key(self, column: int, k: int) -> Tensor:
        """What sorts level `column`: (owner, dummy or not, distance). The edge follows from the vertices."""
        vertex = self.vertex[:, column].long()
        key = torch.where(vertex < 0, ~vertex * 2 + 1, vertex * 2)
        return key if self.distance is None else key * (k + 2) + self.distance[:, column]


def trie_from_tokens(
    tokens: Iterable[Tokens],
    csr: Csr,
    options: PathOptions,
    *,
    sorted_columns: int | None = None,
) -> PathTrie:
    """Build the trie of token sequences, one `Tokens` per length.

    With `sorted_columns` = c, rows are already in the order of their last c columns wherever the others agree.
    """
    k = options.k
    parts: list[list[Tensor]] = [[], [], [], []]
    sizes = []
    for rows in tokens:
        rows = _sort(rows, k, rows.vertex.size(1) - (sorted_columns or 0))
        levels = _levels(rows, k)
        sizes.append(tuple(vertex.numel() for vertex, *_ in levels))
        for t, (vertex, parent, edge, distance) in enumerate(levels):
            parts[0].append(vertex)
            if t:
                parts[1].append(parent)
                parts[2].append(edge)
            if distance is not None:
                parts[3].append(distance)
    vertex, parent, edge = (torch.cat(part) for part in parts[:3])
    distance = torch.cat(parts[3]) if parts[3] else None
    return PathTrie(
        vertex,
        parent,
        edge,
        distance,
        tuple(sizes),
        options.collection,
        csr.num_nodes,
        csr.num_edges,
        options.extend,
        options.max_paths_per_source,
        csr.directed,
    )


def _sort(rows: Tokens, k: int, columns: int) -> Tokens:
    """Sort rows lexicographically by their first `columns` keys, the last of them first and each time stably."""
    for column in reversed(range(columns)):
        rows = rows[torch.sort(rows.sort_key(column, k), stable=True)[1]]
    return rows


def _levels(rows: Tokens, k: int) -> list[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
    """Per level vertex, parent, edge and distance: an entry begins where a sorted row departs from the row before."""
    n, width = rows.vertex.shape
    begins = torch.zeros(n, dtype=torch.bool, device=rows.vertex.device)
    begins[:1] = True
    above = begins.int()
    levels = []
    for t in range(width):
        key = rows.sort_key(t, k)
        begins = begins.clone()
        begins[1:] |= key[1:] != key[:-1]
        at = begins.nonzero().view(-1)
        levels.append(
            (
                rows.vertex[at, t].int(),
                above[at] - 1,
                rows.edge[at, t - 1].int() if t else above[:0],
                None if rows.distance is None else rows.distance[at, t].int(),
            )
        )
        above = begins.cumsum(0, dtype=torch.int32)
    if n and levels[-1][0].numel() != n:
        raise ValueError(f"paths of length {width - 1}: a path appears more than once; expected each path once.")
    return levels


def trie_from_paths(
    paths: Sequence[Tensor],
    edge_index: Tensor,
    num_nodes: int,
    *,
    collection: Collection,
    distances: bool | None = None,
    extended: bool | None = None,
    directed: bool = False,
) -> PathTrie:
    """See `PathTrie.from_paths`."""
    options = PathOptions(collection, len(paths), distances, directed=directed)
    csr = to_csr(edge_index, num_nodes, directed=options.directed)
    for length, rows in enumerate(paths, start=1):
        _check_paths(rows, length, num_nodes)
    dummies = any(bool((rows < 0).any()) for rows in paths)
    if extended is False and dummies:
        raise ValueError("extended=False, but there are dummy tokens (-1): leave extended out, or these paths.")
    extended = dummies if extended is None else check_flag("extended", extended)
    return trie_of_paths([rows.to(csr.col.device) for rows in paths], csr, replace(options, extend=extended))


def trie_of_paths(paths: Sequence[Tensor], csr: Csr, options: PathOptions) -> PathTrie:
    """Build the trie of checked paths, `[n, length + 1]` per length; distances are computed on the CPU."""
    known: list[Tensor] | list[None] = [None] * len(paths)
    if options.distances and options.k:
        known = [x.to(csr.col.device) for x in path_distances(csr.cpu(), [rows.cpu() for rows in paths])]
    tokens = (tokens_from_paths(rows, csr, distance) for rows, distance in zip(paths, known, strict=True))
    return trie_from_tokens(tokens, csr, options)


def tokens_from_paths(paths: Tensor, csr: Csr, distance: Tensor | None) -> Tokens:
    """Token sequences of paths `[n, length + 1]`, source first, -1 for dummy tokens at their ends."""
    reading = paths.flip(1)
    dummy = reading < 0
    last = (~dummy).int().argmax(dim=1, keepdim=True)
    vertex = torch.where(dummy, ~reading.gather(1, last), reading)
    before, after = reading[:, :-1], reading[:, 1:]
    real = (before >= 0) & (after >= 0)
    ends = (after, before) if csr.directed else (before, after)
    edge = torch.where(real, csr.find(*ends), -1)
    wrong = real & (edge < 0)
    if bool(wrong.any()):
        row, at = wrong.nonzero()[0].tolist()
        u, v = int(before[row, at]), int(after[row, at])
        raise ValueError(f"a path of length {paths.size(1) - 1} steps from {v} to {u}, which is no edge of the graph.")
    return Tokens(vertex, edge, None if distance is None else distance.flip(1))


def _check_paths(rows: object, length: int, num_nodes: int) -> None:
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
    repeated = torch.where(dummy, torch.arange(-1, -2 - length, -1, device=rows.device), rows).sort(dim=1)[0]
    if bool((repeated[:, 1:] == repeated[:, :-1]).any()):
        raise ValueError(f"{name} has a path that visits a vertex twice: expected simple paths.")
