"""What a command says: its result on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import PurePath
from typing import Any


def print_json(document: Any) -> None:
    """Write the one JSON document of a command to standard output; see `plain` for what it may hold."""
    print(json.dumps(plain(document), indent=1, allow_nan=False), flush=True)


def plain(value: Any) -> Any:
    """The same as what JSON knows: numbers are not rounded; NaN and infinity, which it does not know, are null.

    >>> plain({1: float("nan"), "path": PurePath("a"), "pair": (1, 2.5)})
    {'1': None, 'path': 'a', 'pair': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):  # tensors, arrays and their scalars
        return plain(value.tolist())
    raise TypeError(f"a {type(value).__name__} has no form in JSON: expected numbers, text, lists or mappings.")


@contextmanager
def result_only(as_json: bool) -> Iterator[None]:
    """Under `--json`, keep standard output free for the document: what a library prints goes to standard error.

    The document itself is written with `print_json` after the block.
    """
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None, left: int = 1
) -> None:
    """A table on standard output; the first `left` columns hold words, the others numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < left else "right")
    for row in rows:
        table.add_row(*row)
    # A pipe or a file has no width: nothing is to be cut there.
    Console(width=None if sys.stdout.isatty() else 240, markup=False, highlight=False).print(table)
    sys.stdout.flush()


def say(message: str) -> None:
    """A line of the result on standard output."""
    print(message, flush=True)


def note(message: str) -> None:
    """A line beside the result, on standard error."""
    print(message, file=sys.stderr, flush=True)


def number_text(number: int, thing: str) -> str:
    """A number of things.

    >>> number_text(1, "graph"), number_text(12000, "graph")
    ('1 graph', '12,000 graphs')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
