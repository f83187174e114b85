"""Run `python -m pathnn_reproduction reproduce|bench` from a checkout that is not installed."""

from __future__ import annotations

import typer

from pathnn.cli.app import Commands
from pathnn_reproduction.bench.cli import bench
from pathnn_reproduction.cli import reproduce

app = typer.Typer(
    name="pathnn_reproduction",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(reproduce, name="reproduce")
app.add_typer(bench, name="bench")

if __name__ == "__main__":
    app(prog_name="python -m pathnn_reproduction")
