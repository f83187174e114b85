"""Pieces of pages: a table, and a block between two marks."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "|" + "|".join(line) + "|" if line[0] == "---" else "| " + " | ".join(line) + " |" for line in lines
    )


def between(text: str, begin: str, end: str, block: str) -> str:
    """A text with what lies between two marks replaced.

    >>> between("a <b> old <e> c", "<b>", "<e>", "new")
    'a <b>\\n\\nnew\\n\\n<e> c'
    >>> between("no marks", "<b>", "<e>", "new")
    Traceback (most recent call last):
    ...
    ValueError: the marks <b> and <e> are missing: put them around the place of the table.
    """
    before, first, rest = text.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"the marks {begin} and {end} are missing: put them around the place of the table.")
    return f"{before}{begin}\n\n{block}\n\n{end}{after}"
