"""The README's table: what has been measured of the paper's PathNNs, one line a dataset, the paper's in brackets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pathnn.bench.report import table as markdown_table
from pathnn.collection import COLLECTIONS
from pathnn.experiments.cells import Compared, compare
from pathnn.experiments.ledger import Ledger
from pathnn.experiments.published import TABLES, PublishedTable
from pathnn.experiments.table_text import count_text, ours_text, paper_text
from pathnn.experiments.targets import TARGETS, experiment


def summary_table(results: Path) -> str:
    """A line for every dataset, and every K where there are several, of which anything has been measured."""
    lines = []
    for name in TARGETS:
        for dataset, cells in compare(experiment(name), Ledger.open(results / f"{name}.jsonl")).items():
            ours = [cell for cell in cells if cell.model == "pathnn"]
            lines += [_line(TABLES[dataset], k, group) for k, group in _groups(ours)]
    if not any(lines):
        return "Nothing has been measured yet."
    head = ("ours (the paper's)", *(f"PathNN-{name.upper()}" for name in COLLECTIONS))
    return markdown_table(head, [line for line in lines if line])


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
