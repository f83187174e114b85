"""Run `python -m pathnn_reproduction reproduce|bench` from a checkout that is not installed."""

from __future__ import annotations

from typing import Any

import typer

from pathnn.cli.app import Commands
from pathnn_reproduction.bench.cli import bench
from pathnn_reproduction.cli import reproduce


class LocalCommands(Commands):
    """The two commands of this package, without entry points."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command."""
        return self.commands.get(cmd_name)


app = typer.Typer(
    name="pathnn_reproduction",
    cls=LocalCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(reproduce, name="reproduce")
app.add_typer(bench, name="bench")

if __name__ == "__main__":
    app(prog_name="python -m pathnn_reproduction")
