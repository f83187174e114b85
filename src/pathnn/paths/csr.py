"""Compress a checked graph into rows of neighbours, from which every extraction starts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathnn.checks import check_count

Ints = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Csr:
    """Hold a simple graph in main memory: edges lead from `v` to `col[rowptr[v]:rowptr[v + 1]]`, in ascending order."""

    rowptr: Tensor  # [num_nodes + 1], int64
    col: Tensor  # [slots], int32
    edge: Tensor  # [slots], int32: the first row of edge_index for the edge of the slot (self-loops are left out)
    reverse: Tensor  # [slots], int64: the slot of the same edge in the other direction; -1 if there is none
    num_nodes: int
    num_edges: int  # rows of the edge_index it was made from
    directed: bool = False  # whether edges may lack their reverse
    parallel: bool = False  # whether an edge had several rows

    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """Return `rowptr`, `col` and `edge`."""
        return self.rowptr.numpy(), self.col.numpy(), self.edge.numpy()

    def sources(self) -> Tensor:
        """The vertex that each slot leads from, int64."""
        return torch.arange(self.num_nodes).repeat_interleave(self.rowptr.diff())

    def flip(self) -> Csr:
        """Return the graph with its edges turned around, which keep their ids; itself if it is undirected."""
        if not self.directed:
            return self
        flipped = to_csr(torch.stack([self.col.long(), self.sources()]), self.num_nodes, directed=True)
        return replace(flipped, edge=self.edge[flipped.edge], num_edges=self.num_edges)


def to_csr(edge_index: Tensor, num_nodes: int, *, directed: bool = False) -> Csr:
    """Check a PyG `edge_index` and compress it; raise `ValueError` for one-way edges unless it is `directed`."""
    check_edge_index(edge_index, num_nodes)
    num_nodes = int(num_nodes)
    source, target = edge_index.as_subclass(Tensor).cpu().long().numpy()
    kept = np.flatnonzero(source != target)
    slots, first = np.unique(source[kept] * num_nodes + target[kept], return_index=True)
    row = kept[first]
    start, col = source[row], target[row]
    rowptr = np.append(0, np.bincount(start, minlength=num_nodes).cumsum())
    turned = col * num_nodes + start
    reverse = np.searchsorted(slots, turned)
    one_way = slots[np.minimum(reverse, slots.size - 1)] != turned
    if one_way.any() and not directed:
        u, v = int(start[one_way][0]), int(col[one_way][0])
        raise ValueError(
            f"edge_index has the edge {u} -> {v} but not {v} -> {u}: expected an undirected graph with both directions "
            "of each edge. torch_geometric.utils.to_undirected(edge_index) adds the missing ones; give it "
            "edge_attr as well, if there is some. directed=True takes paths that follow the direction of edges."
        )
    reverse[one_way] = -1
    arrays = rowptr, col.astype(np.int32), row.astype(np.int32), reverse
    starts, targets, rows, back = map(torch.from_numpy, arrays)
    return Csr(starts, targets, rows, back, num_nodes, edge_index.size(1), directed, parallel=row.size < kept.size)


def check_edge_index(edge_index: Any, num_nodes: Any) -> None:
    """Raise `ValueError` unless both describe a graph."""
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        came = "a sparse tensor" if isinstance(edge_index, Tensor) else f"a {type(edge_index).__name__}"
        raise ValueError(f"edge_index is {came}: expected a tensor of shape [2, num_edges]. {_way_out(edge_index)}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index has shape {list(edge_index.shape)}: expected [2, num_edges].")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"edge_index has dtype {edge_index.dtype}: expected torch.int64.")
    if max(check_count("num_nodes", num_nodes, 0), edge_index.size(1)) >= 2**31:
        raise ValueError(f"{num_nodes:,} vertices, {edge_index.size(1):,} edges: expected fewer than 2^31 of each.")
    if edge_index.numel():
        low, high = (int(x) for x in torch.stack(edge_index.aminmax()).tolist())
        if low < 0 or high >= num_nodes:
            wrong = low if low < 0 else high
            expected = f"ids from 0 to {num_nodes - 1}" if num_nodes else "no edges"
            raise ValueError(f"edge_index holds vertex {wrong}, but num_nodes={num_nodes}: expected {expected}.")


def warn_parallel_edges(edge_index: Tensor, edge_attr: Any) -> None:
    """Warn if an edge has several rows that differ in `edge_attr`: tokens read the features of the first."""
    if not isinstance(edge_attr, Tensor) or edge_attr.shape[:1] != edge_index.shape[1:]:
        return
    pairs, which = torch.unique(edge_index, dim=1, return_inverse=True)
    if pairs.size(1) == edge_index.size(1):
        return
    rows = torch.arange(which.numel(), device=which.device)
    first = torch.full_like(rows[: pairs.size(1)], which.numel()).scatter_reduce(0, which, rows, "amin")[which]
    differs = (edge_attr != edge_attr[first]).view(which.numel(), -1).any(dim=1) & (edge_index[0] != edge_index[1])
    if bool(differs.any()):
        u, v = edge_index[:, int(differs.nonzero()[0])].tolist()
        warnings.warn(
            f"the edge {u} -> {v} has several rows with different edge_attr: paths read the first. Merge them with "
            "torch_geometric.utils.coalesce(edge_index, edge_attr, reduce=...).",
            stacklevel=3,
        )


def check_batch(batch: Any, num_nodes: int) -> None:
    """Raise `ValueError` unless `batch` is None or assigns every vertex to a graph."""
    if batch is None:
        return
    if not isinstance(batch, Tensor):
        raise ValueError(f"batch is a {type(batch).__name__}: expected a tensor of one graph id per vertex, or None.")
    if batch.shape != (num_nodes,) or batch.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"batch is {batch.dtype} of shape {list(batch.shape)}: "
            f"expected one graph id per vertex, torch.int64 of shape [{num_nodes}]."
        )
    if num_nodes and int(batch.min()) < 0:
        raise ValueError(f"batch holds graph {int(batch.min())}: expected ids from 0.")


def check_sources(sources: Any, csr: Csr) -> Tensor:
    """Return `sources` on the CPU; raise `ValueError` unless they are different vertices of the graph."""
    if not isinstance(sources, Tensor) or sources.dim() != 1 or sources.dtype not in (torch.int64, torch.int32):
        came = f"{sources.dtype} {list(sources.shape)}" if isinstance(sources, Tensor) else type(sources).__name__
        raise ValueError(f"sources is {came}: expected a flat torch.int64 tensor of vertices, or None for all.")
    if sources.numel() and not 0 <= int(sources.min()) <= int(sources.max()) < csr.num_nodes:
        raise ValueError(f"sources has a vertex outside 0..{csr.num_nodes - 1}: expected vertices of the graph.")
    if int(torch.bincount(sources).max() if sources.numel() else 0) > 1:
        raise ValueError("sources has a vertex twice: expected each once, as sources.unique() gives them.")
    return sources.to("cpu", torch.int64)


def _way_out(came: Any) -> str:
    """Say how to get an `edge_index` from another object."""
    if isinstance(came, Tensor) or type(came).__name__ == "SparseTensor":
        return "Of an adj_t, take torch_geometric.utils.to_edge_index(adj_t)[0]."
    if type(came).__name__ == "PathTrie":
        return "Give a trie by name: model(x, trie=trie)."
    return "Of a HeteroData, take to_homogeneous() first."
