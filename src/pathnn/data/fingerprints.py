"""Compare graphs and data: fingerprints of graphs and of the data of a run, and copies of molecules."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs, widen
from pathnn.data.task import Split, Task

ROUNDS = 4

FIRST, SECOND, THIRD = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def graph_fingerprints(graphs: PackedGraphs) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Hash vertices, edges and features of each graph, `[G]`: `ROUNDS` rounds of the Weisfeiler-Leman colouring."""
    source, target = graphs.union().cpu().numpy()
    order = np.argsort(target, kind="stable")
    ends = np.searchsorted(target[order], np.arange(graphs.num_nodes + 1))
    source, edges = source[order], _rows(graphs.edge_attr, graphs.num_edges)[order]
    colors = _rows(graphs.x, graphs.num_nodes)
    for _ in range(ROUNDS):
        around = _mixed(colors[source] * FIRST + edges)
        colors = _mixed(colors * SECOND + _sums(around, ends))
    return _mixed(_sums(colors, graphs.node_ptr.numpy()) + graphs.node_ptr.diff().numpy().astype(np.uint64) * FIRST)


def _rows(values: Tensor | None, number: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Compute a number for each row from the bits of its values."""
    found = np.full(number, FIRST)
    if values is None or not number:
        return found
    table = widen(values.detach().cpu()).reshape(number, -1)
    numbers = (table.double() + 0.0).numpy() if table.is_floating_point() else table.long().numpy()  # -0.0 is 0.0
    for column in np.ascontiguousarray(numbers).view(np.uint64).T:
        found = _mixed(found * SECOND + column)
    return found


def _sums(values: np.ndarray[Any, np.dtype[np.uint64]], ends: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Sum the values between consecutive `ends`, modulo 2**64."""
    return np.diff(np.append(np.uint64(0), np.cumsum(values, dtype=np.uint64))[ends])


def _mixed(values: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Mix the bits of each number (the last steps of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * SECOND
    values = (values ^ (values >> np.uint64(27))) * THIRD
    return values ^ (values >> np.uint64(31))


CHUNK = 2**20  # numbers that are hashed at once
OTHER_SPLIT = "the split is another"


@dataclass(frozen=True)
class DataFingerprint:
    """The number of graphs, and fingerprints of the graphs, of their targets, and of the split."""

    num_graphs: int
    graphs: str
    targets: str
    split: str

    @staticmethod
    def of(task: Task, split: Split | None) -> DataFingerprint:
        """Compute the fingerprint of a task and one of its splits, if it has any."""
        tensors = task.graphs.tensors()
        targets = {"y": tensors.pop("y")} if "y" in tensors else {}
        if task.descriptors is not None and task.descriptors.kind != "columns":
            del tensors["graph_attr"]  # computed from the graphs, with rounding that depends on the machine
        parts = (tensors, targets, vars(split) if split else {})
        return DataFingerprint(len(task.graphs), *map(tensors_digest, parts))

    def difference(self, now: DataFingerprint) -> str | None:
        """Describe the first difference, or return None."""
        if now.num_graphs != self.num_graphs:
            return f"it had {self.num_graphs} graphs, and has {now.num_graphs} now"
        if now.graphs != self.graphs:
            return "its graphs are others"
        if now.targets != self.targets:
            return "its targets are others"
        return None if now.split == self.split else OTHER_SPLIT

    @classmethod
    def from_dict(cls, values: Mapping[str, Any] | None) -> DataFingerprint | None:
        """Invert `asdict`; return None if there are no values."""
        return cls(**values) if values else None


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the first characters of the SHA-256 of names, shapes and widened numbers."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        digest.update(f"{name} {tuple(tensor.shape)};".encode())
        flat = tensor.flatten()
        for start in range(0, flat.numel(), CHUNK):
            part = widen(flat[start : start + CHUNK].cpu())
            digest.update(part.contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def first_copies(graphs: PackedGraphs) -> Tensor:
    """Return for each graph the first graph with equal vertices and edges in the same order, `[G]`."""
    nodes, edges = graphs.node_ptr.tolist(), graphs.edge_ptr.tolist()
    parts = ((graphs.x, nodes), (graphs.edge_index.t(), edges), (graphs.edge_attr, edges))
    tables = [(values.contiguous().cpu().numpy(), ends) for values, ends in parts if values is not None]
    seen: dict[bytes, int] = {}
    first = []
    for graph, size in enumerate(graphs.node_ptr.diff().tolist()):
        digest = hashlib.blake2b(str(size).encode(), digest_size=16)
        for values, ends in tables:
            digest.update(values[ends[graph] : ends[graph + 1]].data)
        first.append(seen.setdefault(digest.digest(), graph))
    return torch.tensor(first)


@dataclass(frozen=True)
class Copies:
    """How often molecules occur several times.

    Attributes:
        molecules: the number of molecules that occur several times.
        rows: the number of their copies, without the first of each.
        conflicts: the number of these molecules whose copies have different targets.
        largest: the largest difference between the targets of copies; None unless they are numbers.
        example: the name of the molecule with the largest difference, or of the first with a conflict.
    """

    molecules: int = 0
    rows: int = 0
    conflicts: int = 0
    largest: float | None = None
    example: str = ""


def count_copies(task: Task) -> Copies:
    """Count the copies of molecules in a task, and those with different targets.

    ```python
    copies = count_copies(load_data("molecules.csv", targets="logS"))
    print(copies.rows, copies.conflicts, copies.largest)
    ```
    """
    groups = task.groups
    if groups is None:
        return Copies()
    names, index, sizes = torch.unique(groups, return_inverse=True, return_counts=True)
    several = int((sizes > 1).sum())
    y = task.graphs.y
    if y is None or not several:
        return Copies(several, len(groups) - len(names))
    values = y.double().cpu().view(len(groups), -1)
    shape, at = (len(names), values.size(1)), index[:, None].expand_as(values)
    most = torch.full(shape, torch.inf, dtype=torch.float64)
    low = most.scatter_reduce(0, at, values.nan_to_num(torch.inf), "amin")
    high = -most.scatter_reduce(0, at, -values.nan_to_num(-torch.inf), "amin")
    spread = (high - low).nan_to_num(0.0).clamp(min=0.0).amax(dim=1)  # unknown targets are in no conflict
    largest, where = (value.item() for value in spread.max(dim=0))
    example = task.graphs.names[int(names[int(where)])] if task.graphs.names and largest > 0 else ""
    number = largest if task.target == "regression" and largest > 0 else None
    return Copies(several, len(groups) - len(names), int((spread > 0).sum()), number, example)


def copies_across(task: Task, split: Split) -> int:
    """Return how many graphs for validation and test are copies of a molecule for training."""
    if task.groups is None:
        return 0
    return int(torch.isin(task.groups[torch.cat([split.val, split.test])], task.groups[split.train]).sum())
