"""Write the tables of options in docs/cli.md from the commands: `python tools/cli_tables.py`.

Each table replaces the lines between `<!-- options of COMMAND -->` and `<!-- end of options -->`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from pathnn.cli.app import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
MARKS = re.compile(r"(<!-- options of ([a-z ]+) -->\n).*?(<!-- end of options -->)", re.S)


def option_table(name: str) -> str:
    """Return the options of a command as a table in Markdown.

    >>> print(option_table("predict").splitlines()[2])
    | `--out`, `-o` `FILE` | The .csv or .csv.gz to write; by default standard output. |
    """
    command: Any = typer.main.get_command(app)
    for part in name.split():
        command = command.get_command(None, part)
    options = [param for param in command.params if param.opts[0].startswith("-")]
    return "".join(["| option | meaning |\n|---|---|\n", *map(_row, options)])


def _row(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    values = f" `{option.metavar}`" if option.metavar else ""
    given = option.show_default and not isinstance(option.default, bool | None)
    default = f" Default: {option.default}." if given else ""
    cells = (f"{names}{values}", f"{option.help}{default}")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def fill_tables(page: str) -> str:
    """Return a page with all its tables of options up to date."""
    return MARKS.sub(lambda found: found[1] + option_table(found[2]) + found[3], page)


if __name__ == "__main__":
    PAGE.write_text(fill_tables(PAGE.read_text()))
