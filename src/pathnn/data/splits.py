"""Split graphs: at random, in folds, by scaffolds or clusters, or by a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.readers.table import Table
from pathnn.data.task import Split, Task, random_split


def stratified_folds(y: Tensor, *, folds: int, seed: int = 0) -> tuple[Split, ...]:
    """Make cross-validation splits with equal fractions of each class: fold i tests, fold i + 1 validates.

    >>> [split.test.tolist() for split in stratified_folds(torch.tensor([0, 0, 0, 1, 1, 1]), folds=3, seed=1)]
    [[1, 5], [2, 3], [0, 4]]
    """
    if folds < 3:
        raise ValueError(f"folds={folds}: expected at least 3 (one to test, one to validate, the rest to train).")
    fold = _fold_of_each(y, folds, seed)
    graphs = torch.arange(y.numel())
    splits = []
    for i in range(folds):
        test, val = fold == i, fold == (i + 1) % folds
        splits.append(Split(graphs[~test & ~val], graphs[val], graphs[test]))
    return tuple(splits)


def _fold_of_each(y: Tensor, folds: int, seed: int) -> Tensor:
    """Shuffle each class and deal it to the folds in turn, starting after the fold of the last class."""
    shuffle = torch.randperm(y.numel(), generator=torch.Generator().manual_seed(seed))
    order = shuffle[torch.sort(y[shuffle], stable=True).indices]
    fold = torch.empty_like(order)
    fold[order] = torch.arange(y.numel()) % folds
    return fold


def deal(groups: Tensor, shares: Sequence[float], *, y: Tensor | None = None, seed: int = 0) -> Tensor:
    """Deal groups of graphs to parts at random, and return the part of each graph, `[G]`.

    Graphs with the same number in `groups` stay together. Each part gets about its share of the graphs, and of each
    class of `y`: a group is dealt to the part that it fills least.

    >>> deal(torch.arange(10), (0.8, 0.2), y=torch.tensor([0] * 5 + [1] * 5)).tolist()
    [0, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    """
    names, count = groups.tolist(), groups.numel()
    classes = [0] * count if y is None else y.flatten().tolist()
    members: dict[int, list[int]] = {}
    for graph in torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist():
        members.setdefault(names[graph], []).append(graph)
    total, filled, sizes = Counter(classes), [Counter[Any]() for _ in shares], [0] * len(shares)
    part = [0] * count
    for graphs in sorted(members.values(), key=lambda graphs: (-len(graphs), classes[graphs[0]])):
        counts, size = Counter(classes[graph] for graph in graphs), len(graphs)

        def fill(i: int, counts: Counter[Any] = counts, size: int = size) -> float:
            of_class = sum(n * (filled[i][k] + n / 2) / total[k] for k, n in counts.items()) / size
            return (of_class + (sizes[i] + size / 2) / count) / shares[i]

        best = min(range(len(shares)), key=fill)
        filled[best].update(counts)
        sizes[best] += size
        for graph in graphs:
            part[graph] = best
    return torch.tensor(part)


def fold_splits(
    task: Task, *, folds: int, groups: Tensor | None = None, seed: int = 0, val: float = 0.1
) -> tuple[Split, ...]:
    """Make splits for cross-validation: fold i is for test, and a fraction `val` of the rest for validation.

    Graphs of one group stay together; the default is `task.groups`, copies of a molecule (`split_groups` has others).
    Folds and validation graphs have about equal fractions of each class.

    >>> from pathnn.data import load_dataset
    >>> fold_splits(load_dataset("csl"), folds=3)
    (Split(train=90, val=10, test=50), Split(train=90, val=10, test=50), Split(train=90, val=10, test=50))
    """
    groups = _groups(task) if groups is None else groups
    number = torch.unique(groups).numel()
    if not 2 <= folds <= number - 1:
        raise DataError(
            f"folds={folds}: expected a number from 2 to {number - 1}, as {task.name} has {number} groups of graphs "
            "that have to stay together."
        )
    y = _classes(task)
    fold = deal(groups, [1 / folds] * folds, y=y, seed=seed)
    splits = []
    for i in range(folds):
        test, rest = (fold == i).nonzero().flatten(), (fold != i).nonzero().flatten()
        part = deal(groups[rest], (1 - val, val), y=None if y is None else y[rest], seed=seed + 1 + i)
        splits.append(Split(rest[part == 0], rest[part == 1], test))
    return tuple(splits)


def random_task_split(task: Task, *, seed: int = 0) -> Split:
    """Split a task 80 / 10 / 10 at random. Copies of a user's molecule stay together, and its classes are stratified.

    >>> from pathnn.data import load_dataset
    >>> random_task_split(load_dataset("csl"))
    Split(train=120, val=15, test=15)
    """
    y = _classes(task)
    if task.groups is None or y is None:
        return random_split(len(task.graphs), seed=seed, groups=task.groups)
    part = deal(task.groups, (0.8, 0.1, 0.1), y=y, seed=seed)
    return Split(*((part == i).nonzero().flatten() for i in range(3)))


def _groups(task: Task) -> Tensor:
    return torch.arange(len(task.graphs)) if task.groups is None else task.groups


def _classes(task: Task) -> Tensor | None:
    """Return the class of each graph; None for other targets."""
    return task.graphs.y if task.target in ("class", "binary") else None


SCAFFOLD = "scaffold"
"""The value of `split_by` that is not a column."""


PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""Words for the parts of a split."""


def column_split(table: Table, column: str, rows: Sequence[int]) -> Split:
    """Split by a column with the values train, val and test; `rows` are the rows of the graphs, from 1.

    >>> table = Table("my.csv", ("smiles", "part"), (("C", "train"), ("CC", "Valid"), ("CCC", "test")))
    >>> column_split(table, "part", [1, 2, 3])
    Split(train=1, val=1, test=1)
    """
    cells = table.column(column)
    parts: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for graph, row in enumerate(rows):
        word = (cells[row - 1] or "").strip()
        part = PARTS.get(word.lower())
        if part is None:
            raise DataError(
                f"{table.source}, row {row}: {word!r} in the column {column!r} of the split: expected train, val "
                f"or test. To split by scaffolds, use {SCAFFOLD}."
            )
        parts[part].append(graph)
    for part in ("train", "val"):
        if not parts[part]:
            raise DataError(f"{table.source}: the column {column!r} has no {part}: expected at least one row.")
    return _split(parts["train"], parts["val"], parts["test"])


def scaffolds(smiles: Sequence[str]) -> list[str]:
    """Return the Bemis-Murcko scaffold of each molecule as SMILES (rings and linkers); "" without rings.

    >>> scaffolds(["CCO", "Cc1ccccc1", "OCc1ccccc1"])
    ['', 'c1ccccc1', 'c1ccccc1']
    """
    from rdkit.Chem.Scaffolds import MurckoScaffold

    scaffold: Any = MurckoScaffold.MurckoScaffoldSmiles
    return [str(scaffold(text, includeChirality=False)) for text in smiles]


def scaffold_split(groups: Sequence[str], *, seed: int | None = None, val: float = 0.1, test: float = 0.1) -> Split:
    """Split so that molecules of one scaffold stay together, with about these fractions for validation and test.

    The largest groups are for training, the rarest scaffolds for validation and test. With a `seed`, small groups come
    in random order: other seeds give other splits.

    >>> scaffold_split(["a"] * 6 + ["b", "c", "b", "d"], val=0.2, test=0.2).test.tolist()
    [7, 9]
    """
    members: dict[str, list[int]] = {}
    for graph, group in enumerate(groups):
        members.setdefault(group, []).append(graph)
    num_val, num_test = round(len(groups) * val), round(len(groups) * test)
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    room = (len(groups) - num_val - num_test, num_val, num_test)
    small = None if seed is None else max(1, min(num_val, num_test) // 2)
    for graphs in _order(list(members.values()), small, seed or 0):
        left = [most - len(part) for most, part in zip(room, parts, strict=True)]
        emptiest = max((1, 2), key=lambda i: left[i])  # of the parts to validate and test on
        if len(graphs) <= left[0] or (len(graphs) > left[emptiest] and left[0] > left[emptiest]):
            emptiest = 0
        parts[emptiest].extend(graphs)
    if not all(parts):
        largest = max(map(len, members.values()))
        raise DataError(
            f"{len(groups)} molecules with {len(members)} scaffolds (the largest has {largest}) cannot be split by "
            "scaffolds into three parts. Give more molecules, or use a random split."
        )
    return _split(*parts)


def _order(groups: list[list[int]], small: int | None, seed: int) -> list[list[int]]:
    """Sort groups from large to small, then by first member; groups of at most `small` in random order."""
    ordered = sorted(groups, key=lambda group: (-len(group), group[0]))
    if small is None:
        return ordered
    large = [group for group in ordered if len(group) > small]
    rest = ordered[len(large) :]
    shuffled = torch.randperm(len(rest), generator=torch.Generator().manual_seed(seed)).tolist()
    return large + [rest[i] for i in shuffled]


def _split(*parts: Sequence[int]) -> Split:
    train, val, test = (torch.tensor(sorted(part), dtype=torch.int64) for part in parts)
    return Split(train, val, test)
