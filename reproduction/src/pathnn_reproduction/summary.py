"""The README's table: five datasets, ours with the paper's in brackets, and a sentence on where ours are worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pathnn.paths.options import COLLECTIONS
from pathnn_reproduction.cells import Compared, compare
from pathnn_reproduction.experiments.targets import TARGETS, experiment
from pathnn_reproduction.ledger import Ledger
from pathnn_reproduction.markdown import table as markdown_table
from pathnn_reproduction.published import TABLES, PublishedTable
from pathnn_reproduction.table_text import count_text, difference_text, ours_text, paper_text, row_label

LINES: tuple[tuple[str, int | None], ...] = (
    ("zinc", None), ("molhiv", None), ("peptides-func", None), ("nci1", 3), ("csl", None),
)  # fmt: skip
"""The datasets of the table, with K where the paper has several; docs/results.md has all of them."""


def summary_table(results: Path) -> str:
    """The datasets of `LINES` that have been measured, and in words where ours miss the paper's numbers."""
    found = _pathnns(results)
    lines = [_line(TABLES[dataset], k, found[dataset]) for dataset, k in LINES]
    if not any(lines):
        return "Nothing has been measured yet."
    head = ("ours (the paper's)", *(f"PathNN-{name.upper()}" for name in COLLECTIONS))
    table = markdown_table(head, [line for line in lines if line])
    return f"{table}\n\n{_misses(found)}[Results](docs/results.md) has all tables, with what is not measured yet."


def _pathnns(results: Path) -> dict[str, list[Compared]]:
    """By dataset, the cells of PathNNs as in the paper's text."""
    found = {}
    for name in TARGETS:
        for dataset, cells in compare(experiment(name), Ledger.open(results / f"{name}.jsonl")).items():
            found[dataset] = [cell for cell in cells if cell.model == "pathnn"]
    return found


def _misses(found: Mapping[str, Sequence[Compared]]) -> str:
    """A sentence on where ours are worse, on all datasets: nobody compares forty pairs of numbers."""
    missed = []
    for dataset, cells in found.items():
        table = TABLES[dataset]
        worse = [f"{row_label(cell)} {difference_text(cell, table)}" for cell in cells if is_worse(cell, table)]
        if worse:
            missed.append(f"{table.title}: {', '.join(worse)}")
    if not missed:
        return ""
    words = "Worse than the paper by more than one of its standard deviations, or at all where that is 0:\n"
    return words + ";\n".join(missed) + ".\n"


def is_worse(cell: Compared, table: PublishedTable) -> bool:
    """Whether ours, with all its seeds or folds, misses the paper's number.

    >>> from pathnn_reproduction.published import Score
    >>> from pathnn_reproduction.cells import Measured
    >>> ours = Measured(0.2, 0.01, 10, 10, "seeds", 10, 1.0, None, ("cpu",))
    >>> is_worse(Compared("zinc", "pathnn", "sp", 4, Score(0.104, 0.002), ours), TABLES["zinc"])  # less is better
    True
    """
    if cell.ours is None or cell.paper.mean is None or cell.ours.count < cell.ours.planned:
        return False
    difference = cell.difference(maximize=table.maximize)
    return difference < -1 if difference is not None else difference_text(cell, table).startswith("-")


def _line(table: PublishedTable, k: int | None, cells: Sequence[Compared]) -> list[str]:
    """A line of the table, empty where nothing has been measured."""
    chosen = [cell for cell in cells if k in (None, cell.k)]
    if all(cell.ours is None for cell in chosen):
        return []
    texts = {cell.collection: _text(cell, table) for cell in chosen}
    label = f"{table.title}, {table.metric}" + ("" if k is None else f", K = {k}")
    return [label, *(texts[name] for name in COLLECTIONS)]


def _text(cell: Compared, table: PublishedTable) -> str:
    paper = f"({paper_text(cell, table)})"
    if cell.ours is None:
        return f"— {paper}"
    part = "" if cell.ours.count == cell.ours.planned else f", {count_text(cell)}"
    return f"{ours_text(cell, table)}{part} {paper}"
