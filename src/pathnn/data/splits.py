"""Split graphs: stratified folds, by scaffolds, or by a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.readers.table import Table
from pathnn.data.task import Split


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
