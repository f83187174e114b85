"""docs/cli.md and docs/from-chemprop.md are true: each command line in them is one that the
program takes, and each command is in docs/cli.md."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest
import typer

from pathnn.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text()
PAGES = (PAGE, (ROOT / "docs" / "from-chemprop.md").read_text())
LINES = [
    line for page in PAGES for block in re.findall(r"```console\n(.*?)```", page, re.S) for line in block.splitlines()
]


@pytest.mark.parametrize("line", LINES)
def test_each_line_parses(line: str) -> None:
    program, *arguments = shlex.split(line)
    assert program == "pathnn"
    group = typer.main.get_command(app)
    context = group.make_context("pathnn", list(arguments))
    while rest := [*context._protected_args, *context.args] if hasattr(context, "_protected_args") else context.args:
        name, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "resolve_command"):
            return


def test_each_option_named_for_users_of_chemprop_exists() -> None:
    ours = [row.split("|")[2] for row in PAGES[1].splitlines() if row.startswith("| `--") or row.startswith("| `-")]
    known = {flag for p in typer.main.get_command(app).commands["train"].params for flag in p.opts}
    named = {flag for cell in ours for flag in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", cell)}
    assert len(named) > 10
    assert named <= known


def test_each_command_is_documented() -> None:
    for name in typer.main.get_command(app).commands:
        assert f"pathnn {name}" in PAGE or re.search(rf"pathnn train.*{name}", PAGE)


def test_the_tables_of_options_are_those_of_the_commands() -> None:
    tables = runpy.run_path(str(ROOT / "tools" / "cli_tables.py"))
    assert tables["fill_tables"](PAGE) == PAGE, "run python tools/cli_tables.py"
    assert set(re.findall(r"<!-- options of (.*?) -->", PAGE)) >= {
        "paths", "distinguish", "train", "evaluate", "predict", "embed", "explain",
    }  # fmt: skip
