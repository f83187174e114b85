"""Splits where none is published: random, by folds, or stratified by class; always from a seed."""

from __future__ import annotations

import torch
from torch import Tensor

from pathnn.data.task import Split


def random_split(num_graphs: int, *, seed: int = 0, val: float = 0.1, test: float = 0.1) -> Split:
    """One split with the given shares for validation and test.

    >>> random_split(10)
    Split(train=8, val=1, test=1)
    """
    if not (0 <= val < 1 and 0 <= test < 1 and val + test < 1):
        raise ValueError(f"val={val}, test={test}: expected shares that leave something to train on.")
    order = torch.randperm(num_graphs, generator=torch.Generator().manual_seed(seed))
    num_val, num_test = round(num_graphs * val), round(num_graphs * test)
    parts = torch.split(order, [num_graphs - num_val - num_test, num_val, num_test])
    return Split(*(part.sort().values for part in parts))


def stratified_folds(y: Tensor, *, folds: int, seed: int = 0) -> tuple[Split, ...]:
    """Cross-validation with equal shares of each class: fold i tests, fold i + 1 validates.

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
    """Shuffle each class and deal it to the folds like cards, going on where the last class ended."""
    shuffle = torch.randperm(y.numel(), generator=torch.Generator().manual_seed(seed))
    order = shuffle[torch.sort(y[shuffle], stable=True).indices]
    fold = torch.empty_like(order)
    fold[order] = torch.arange(y.numel()) % folds
    return fold
