"""Split graphs: at random, in folds, by scaffolds or clusters, or by a column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pathnn.data.errors import DataError
from pathnn.data.readers.molecules import Clean, clean_smiles, morgan
from pathnn.data.readers.table import Table, read_table
from pathnn.data.task import Split, Task, random_split
from pathnn.files import write_csv

RANDOM, SCAFFOLD, BUTINA = "random", "scaffold", "butina"  # the values of `split_by` that are not columns


def split_task(
    task: Task,
    table: Table,
    split_by: str | None,
    seed: int | None = None,
    *,
    splits: str | Path | None = None,
    clean: Clean | None = None,
) -> Task:
    """Split the task of a table as in `load_data`."""
    if splits is not None:
        split, notes = read_split(Path(splits), task), f"the split of {splits}"
    elif split_by in (None, RANDOM):
        split = random_task_split(task, seed=seed or 0)
        notes = f"one random split of 80 / 10 / 10 from seed {seed or 0}"
    elif split_by in (SCAFFOLD, BUTINA):
        split, notes = group_split(split_groups(task, split_by, clean), seed=seed), f"one split by {split_by}"
    else:
        split, notes = column_split(table, split_by, task, seed=seed), f"the split of the column {split_by!r}"
    return replace(task, splits=(split,), notes=notes).validate()


def stratified_folds(y: Tensor, *, folds: int, seed: int = 0) -> tuple[Split, ...]:
    """Make cross-validation splits with equal fractions of each class: fold i tests, fold i + 1 validates.

    >>> [split.test.tolist() for split in stratified_folds(torch.tensor([0, 0, 0, 1, 1, 1]), folds=3, seed=1)]
    [[1, 5], [2, 3], [0, 4]]
    """
    if folds < 3:
        raise ValueError(f"folds={folds}: expected at least 3 (one to test, one to validate, the rest to train).")
    shuffle = torch.randperm(y.numel(), generator=torch.Generator().manual_seed(seed))
    order = shuffle[torch.sort(y[shuffle], stable=True).indices]
    fold = torch.empty_like(order)
    fold[order] = torch.arange(y.numel()) % folds  # each class in turn, starting after the fold of the last class
    return tuple(Split.of((fold == (i + 1) % folds) + 2 * (fold == i)) for i in range(folds))


def deal(groups: Tensor, shares: Sequence[float], *, y: Tensor | None = None, seed: int = 0) -> Tensor:
    """Deal groups of graphs to parts at random, and return the part of each graph, `[G]`.

    Each part gets about its share of the graphs and of each class of `y`: a group goes to the part that it fills least.
    """
    names, count = groups.tolist(), groups.numel()
    classes = [0] * count if y is None else y.flatten().tolist()
    members: dict[int, list[int]] = {}
    for graph in torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist():
        members.setdefault(names[graph], []).append(graph)
    total, filled, sizes = Counter(classes), [Counter[Any]() for _ in shares], [0] * len(shares)
    part = [0] * count
    for graphs in sorted(members.values(), key=lambda graphs: (-len(graphs), classes[graphs[0]])):
        counts, size, fills = Counter(classes[graph] for graph in graphs), len(graphs), []
        for i, share in enumerate(shares):
            of_class = sum(n * (filled[i][k] + n / 2) / total[k] for k, n in counts.items()) / size
            fills.append((of_class + (sizes[i] + size / 2) / count) / share)
        best = fills.index(min(fills))
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
        expected = f"a number from 2 to {number - 1}" if number > 2 else "more data, at least 3 groups"
        raise DataError(
            f"folds={folds}: expected {expected}: {task.name} has graphs of {number:,} groups, and a group (copies of "
            "a molecule, or the molecules of a scaffold or cluster) stays in one fold."
        )
    y = _classes(task)
    fold = deal(groups, [1 / folds] * folds, y=y, seed=seed)
    splits = []
    for i in range(folds):
        part, rest = torch.full_like(fold, 2), fold != i
        part[rest] = deal(groups[rest], (1 - val, val), y=None if y is None else y[rest], seed=seed + 1 + i)
        splits.append(Split.of(part))
    return tuple(splits)


def random_task_split(task: Task, *, seed: int = 0) -> Split:
    """Split a task 80 / 10 / 10 at random. Copies of a molecule stay together, and a user's classes are stratified."""
    y = _classes(task)
    if task.groups is None or y is None:
        return random_split(len(task.graphs), seed=seed, groups=task.groups)
    return Split.of(deal(task.groups, (0.8, 0.1, 0.1), y=y, seed=seed))


def _groups(task: Task) -> Tensor:
    return torch.arange(len(task.graphs)) if task.groups is None else task.groups


def _classes(task: Task) -> Tensor | None:
    """Return the class of each graph; None for other targets."""
    return task.graphs.y if task.target in ("class", "binary") else None


PARTS = {"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2, "testing": 2}
"""Words for the parts of a split, numbered as in `Split.of`."""


def column_split(table: Table, column: str, task: Task, *, seed: int | None = None) -> Split:
    """Split a table by a column with the words train, val and test, or train and test, or with dates.

    Without val, a random tenth of train is for it. Of dates, the newest tenth is for test, the tenth before for val.
    """
    values, rows = table.column(column), task.rows()
    words = [(values[row - 1] or "").strip() for row in rows]
    dates = [_date(word) for word in words]
    for word, date, row in zip(words, dates, rows, strict=True):
        if word.lower() not in PARTS and date is None:
            raise DataError(
                f"{table.source}, row {row}: {word!r} in the column {column!r} of the split: expected train, val "
                f"or test, or a date such as 2024-05-31. To split in another way, use {RANDOM}, {SCAFFOLD} or {BUTINA}."
            )
    part = torch.tensor([PARTS.get(word.lower(), -1) for word in words])
    drawn = set(part.tolist()) == {0, 2}
    if seed is not None and not drawn:
        raise DataError(f"the column {column!r} determines the split: leave out split_seed={seed} (--split-seed).")
    if any(dates):
        return _date_split(dates, f"{table.source}: the column {column!r}")
    if drawn:
        train, y = part == 0, _classes(task)
        part[train] = deal(_groups(task)[train], (0.9, 0.1), y=None if y is None else y[train], seed=seed or 0)
    for i, name in enumerate(("train", "val")):
        if not (part == i).any():
            raise DataError(f"{table.source}: the column {column!r} has no {name}: expected at least one row.")
    return Split.of(part)


def _date(text: str) -> datetime | None:
    """Return a date in ISO format, a month or a year; None for other text."""
    rest = "-01-01" if re.fullmatch(r"\d{4}", text) else "-01" if re.fullmatch(r"\d{4}-\d\d", text) else ""
    try:
        return datetime.fromisoformat(text + rest).replace(tzinfo=None)
    except ValueError:
        return None


def _date_split(dates: Sequence[datetime | None], column: str) -> Split:
    known = [date for date in dates if date is not None]
    if len(known) < len(dates):
        raise DataError(f"{column} has both dates and words for parts: expected one of them.")
    order, tenth = sorted(range(len(known)), key=known.__getitem__), round(len(known) / 10)
    if tenth == 0 or known[order[0]] == known[order[-1]]:
        raise DataError(f"{column} has {len(known)} dates, which cannot be split into old and new ones.")
    part = torch.zeros(len(known), dtype=torch.long)
    part[order[-2 * tenth :]] = torch.tensor([1, 2]).repeat_interleave(tenth)
    return Split.of(part)


COLUMNS = ("row", "smiles", "split")  # of a file with a split


def write_split(path: Path, task: Task, split: Split) -> None:
    """Write a split as a CSV: the row of each molecule in the user's table, its SMILES, and train, val or test.

    ```python
    task = load_data("molecules.csv", targets="logS")
    write_split(Path("split.csv"), task, task.splits[0])
    ```
    """
    words = {graph: part for part, index in vars(split).items() for graph in index.tolist()}
    rows, names = task.rows(), task.graphs.names or [""] * len(task.graphs)
    write_csv(path, COLUMNS, ((row, names[i], words.get(i, "")) for i, row in enumerate(rows)))


def read_split(path: Path, task: Task) -> Split:
    """Read a split that `write_split` or another program wrote; raise `DataError` if its molecules are others."""
    table = read_table(path)
    rows, smiles, words = (table.column(name) for name in COLUMNS)
    found = {row: (text, word) for row, text, word in zip(rows, smiles, words, strict=True)}
    parts = []
    for row, name in zip(task.rows(), task.graphs.names or (), strict=True):
        text, word = found.pop(str(row), (None, None))
        if text is None or text.strip() != name.strip():
            raise DataError(
                f"{path} is the split of other data: row {row} of {task.name} is {name!r}, and {text!r} there. Give "
                "another file name (--splits) to write a new one."
            )
        part = PARTS.get((word or "").strip().lower())
        if part is None:
            raise DataError(f"{path}: the split of row {row} is {word!r}: expected train, val or test.")
        parts.append(part)
    if found:
        raise DataError(
            f"{path} is the split of other data: it has {len(found)} rows that {task.name} does not have, or that were "
            f"skipped, the first is {next(iter(found))}. Give another file name (--splits) to write a new one."
        )
    return Split.of(torch.tensor(parts))


def split_groups(task: Task, split_by: str | None, clean: Clean | None = None) -> Tensor:
    """Return the group of each molecule, `[G]`: its copies, scaffold or cluster; the task was cleaned by `clean`."""
    groups = _groups(task)
    if split_by in (None, RANDOM):
        return groups
    first, index = torch.unique(groups, return_inverse=True)
    names = task.graphs.names
    assert names is not None
    smiles = [clean_smiles(names[graph], clean) or "" for graph in first.tolist()]
    if split_by == BUTINA:
        return butina_clusters(smiles)[index]
    numbers: dict[str, int] = {}
    return torch.tensor([numbers.setdefault(text, len(numbers)) for text in scaffolds(smiles)])[index]


def scaffolds(smiles: Sequence[str]) -> list[str]:
    """Return the Bemis-Murcko scaffold of each molecule as SMILES (rings and linkers); "" without rings."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    scaffold: Any = MurckoScaffold.MurckoScaffoldSmiles
    return [str(scaffold(text, includeChirality=False)) for text in smiles]


MOST_CLUSTERED = 20_000  # molecules: all pairs are compared
CUTOFF = 0.4  # the largest Tanimoto distance between a molecule and the centre of its cluster


def butina_clusters(smiles: Sequence[str]) -> Tensor:
    """Return the cluster of each molecule, `[molecules]`, by the algorithm of Taylor and Butina.

    The molecule with most neighbours (Tanimoto distance at most `CUTOFF`) takes them, then the next one that is left.
    """
    if len(smiles) > MOST_CLUSTERED:
        raise DataError(
            f"{len(smiles):,} different molecules are too many to compare all pairs: expected at most "
            f"{MOST_CLUSTERED:,}. Split by {SCAFFOLD} instead."
        )
    bits = torch.from_numpy(morgan(smiles) > 0).float()
    size = bits.sum(dim=1)
    near: list[list[int]] = []
    for start in range(0, len(bits), 1000):
        part = slice(start, start + 1000)
        common = bits[part] @ bits.t()
        close = common >= (1 - CUTOFF - 1e-6) * (size[part, None] + size - common)
        near += [row.nonzero().flatten().tolist() for row in close]
    cluster, number = [-1] * len(smiles), 0
    for centre in sorted(range(len(smiles)), key=lambda i: (len(near[i]), i), reverse=True):
        if cluster[centre] < 0:
            for other in near[centre]:
                cluster[other] = number if cluster[other] < 0 else cluster[other]
            number += 1
    return torch.tensor(cluster)


def group_split(groups: Tensor, *, seed: int | None = None) -> Split:
    """Split about 80 / 10 / 10 with groups kept together: the largest for training, the smallest for val and test.

    With a `seed`, small groups come in random order: other seeds give other splits.
    """
    members: dict[int, list[int]] = {}
    for graph, group in enumerate(groups.tolist()):
        members.setdefault(group, []).append(graph)
    tenth = round(len(groups) * 0.1)
    left = [len(groups) - 2 * tenth, tenth, tenth]
    ordered = sorted(members.values(), key=lambda graphs: (-len(graphs), graphs[0]))
    if seed is not None:
        rest = [graphs for graphs in ordered if len(graphs) <= max(1, tenth // 2)]
        shuffled = torch.randperm(len(rest), generator=torch.Generator().manual_seed(seed)).tolist()
        ordered[len(ordered) - len(rest) :] = [rest[i] for i in shuffled]
    part = torch.zeros(len(groups), dtype=torch.long)
    for graphs in ordered:
        emptiest = max((1, 2), key=left.__getitem__)  # of the parts to validate and test on
        if len(graphs) <= left[0] or (len(graphs) > left[emptiest] and left[0] > left[emptiest]):
            emptiest = 0
        part[graphs] = emptiest
        left[emptiest] -= len(graphs)
    if len(torch.unique(part)) < 3:
        largest = max(map(len, members.values()))
        raise DataError(
            f"{len(groups)} molecules in {len(members)} groups that stay together (the largest has {largest}) cannot "
            "be split into three parts. Give more molecules, or use a random split."
        )
    return Split.of(part)
