"""Find molecules that occur several times, and copies whose targets differ."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from pathnn.data.packed import PackedGraphs
from pathnn.data.task import Split, Task


def first_copies(graphs: PackedGraphs) -> Tensor:
    """Return for each graph the first graph with equal vertices and edges in the same order, `[G]`.

    Molecules with "cip" features are in the order of their canonical SMILES, so their copies are found.

    >>> graphs = PackedGraphs.from_edges([torch.tensor([[0, 1], [1, 0]])] * 3, [2, 3, 2])
    >>> first_copies(graphs).tolist()
    [0, 1, 0]
    """
    on_nodes, on_edges = [graphs.x], [graphs.edge_index.t(), graphs.edge_attr]
    tables = [
        (values.contiguous().cpu().numpy(), ptr.tolist())
        for part, ptr in ((on_nodes, graphs.node_ptr), (on_edges, graphs.edge_ptr))
        for values in part
        if values is not None
    ]
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
    values = y.double().view(len(groups), -1)
    shape, at = (len(names), values.size(1)), index[:, None].expand_as(values)
    low = torch.full(shape, torch.inf, dtype=torch.float64).scatter_reduce(0, at, values.nan_to_num(torch.inf), "amin")
    high = -torch.full(shape, torch.inf, dtype=torch.float64).scatter_reduce(
        0, at, -values.nan_to_num(-torch.inf), "amin"
    )
    spread = (high - low).nan_to_num(0.0).clamp(min=0.0).amax(dim=1)  # unknown targets are in no conflict
    largest, where = (value.item() for value in spread.max(dim=0))
    example = task.graphs.names[int(names[int(where)])] if task.graphs.names and largest > 0 else ""
    number = largest if task.target == "regression" and largest > 0 else None
    return Copies(several, len(groups) - len(names), int((spread > 0).sum()), number, example)


def copies_across(task: Task, split: Split) -> int:
    """Return how many graphs for validation and test are copies of a molecule for training.

    The splits that pathnn makes have none; a column of the user's may.
    """
    if task.groups is None:
        return 0
    return int(torch.isin(task.groups[torch.cat([split.val, split.test])], task.groups[split.train]).sum())
