"""The README's table: what has been measured of the paper's PathNNs, one line a dataset, the paper's in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pathnn.collection import COLLECTIONS
from pathnn.experiments.cells import Compared, compare
from pathnn.experiments.ledger import Ledger
from pathnn.experiments.published import TABLES, PublishedTable
from pathnn.experiments.table_text import count_text, difference_text, ours_text, paper_text, row_label
from pathnn.experiments.targets import TARGETS, experiment
from pathnn.markdown import table as markdown_table


def summary_table(results: Path) -> str:
    """A line for every dataset, and every K where there are several, of which anything has been measured."""
    found = _pathnns(results)
    lines = [_line(TABLES[dataset], k, group) for dataset, cells in found.items() for k, group in _groups(cells)]
    if not any(lines):
        return "Nothing has been measured yet."
    head = ("ours (the paper's)", *(f"PathNN-{name.upper()}" for name in COLLECTIONS))
    table = markdown_table(head, [line for line in lines if line])
    return "\n\n".join(filter(None, (table, _misses(found), _missing(found))))


def _pathnns(results: Path) -> dict[str, list[Compared]]:
    """By dataset, the cells of PathNNs as in the paper's text."""
    found = {}
    for name in TARGETS:
        for dataset, cells in compare(experiment(name), Ledger.open(results / f"{name}.jsonl")).items():
            found[dataset] = [cell for cell in cells if cell.model == "pathnn"]
    return found


def _misses(found: Mapping[str, Sequence[Compared]]) -> str:
    """Where ours are worse, said in words: nobody compares forty pairs of numbers."""
    missed = []
    for dataset, cells in found.items():
        table = TABLES[dataset]
        worse = [f"{row_label(cell)} {difference_text(cell, table)}" for cell in cells if is_worse(cell, table)]
        if worse:
            missed.append(f"{table.title}: {', '.join(worse)}")
    if not missed:
        return ""
    return (
        "Worse than the paper by more than one of its standard deviations, or at all where it has a deviation of 0:\n"
        f"{'; '.join(missed)}.\n[Results](docs/results.md) says what was looked into."
    )


def is_worse(cell: Compared, table: PublishedTable) -> bool:
    """Whether ours, with all its seeds or folds, misses the paper's number.

    >>> from pathnn.experiments.published import Score
    >>> from pathnn.experiments.cells import Measured
    >>> ours = Measured(0.2, 0.01, 10, 10, "seeds", 10, 1.0, None, ("cpu",))
    >>> is_worse(Compared("zinc", "pathnn", "sp", 4, Score(0.104, 0.002), ours), TABLES["zinc"])  # less is better
    True
    """
    if cell.ours is None or cell.paper.mean is None or cell.ours.count < cell.ours.planned:
        return False
    difference = cell.difference(maximize=table.maximize)
    return difference < -1 if difference is not None else difference_text(cell, table).startswith("-")


def _missing(found: Mapping[str, Sequence[Compared]]) -> str:
    """Datasets of which nothing has been measured."""
    none = [TABLES[dataset].title for dataset, cells in found.items() if all(cell.ours is None for cell in cells)]
    return f"Nothing has been measured yet on {', '.join(none)}." if none else ""


def _groups(cells: Sequence[Compared]) -> list[tuple[int | None, list[Compared]]]:
    """The cells of each K; of all of them together (None) where no collection has several."""
    if len(cells) == len({cell.collection for cell in cells}):
        return [(None, list(cells))]
    return [(k, [cell for cell in cells if cell.k == k]) for k in sorted({cell.k for cell in cells if cell.k})]


def _line(table: PublishedTable, k: int | None, cells: Sequence[Compared]) -> list[str]:
    """A line of the table, empty where nothing has been measured."""
    if all(cell.ours is None for cell in cells):
        return []
    texts = {cell.collection: _text(cell, table) for cell in cells}
    label = f"{table.title}, {table.metric}" + ("" if k is None else f", K = {k}")
    return [label, *(texts.get(name, "as SP" if k == 1 else "") for name in COLLECTIONS)]


def _text(cell: Compared, table: PublishedTable) -> str:
    paper = f"({paper_text(cell, table)})"
    if cell.ours is None:
        return f"— {paper}"
    part = "" if cell.ours.count == cell.ours.planned else f", {count_text(cell)}"
    return f"{ours_text(cell, table)}{part} {paper}"
