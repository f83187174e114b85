"""`pathnn reproduce TARGET`: a table or figure of the paper with ours beside it, one module for each target."""

from __future__ import annotations

import typer

from pathnn.cli.reproduce.brec import EXAMPLE as BREC_EXAMPLE
from pathnn.cli.reproduce.brec import brec_command
from pathnn.cli.reproduce.counts import counts_command
from pathnn.cli.reproduce.sr import EXAMPLE as SR_EXAMPLE
from pathnn.cli.reproduce.sr import sr_command

reproduce = typer.Typer(
    no_args_is_help=True,
    help="Repeat a table of the paper, and print it with ours beside it.",
    epilog="Example: pathnn reproduce counts",
)


@reproduce.callback()
def root() -> None:
    """Repeat a table of the paper, and print it with ours beside it."""


reproduce.command("counts", epilog="Example: pathnn reproduce counts --json")(counts_command)
reproduce.command("sr", epilog=SR_EXAMPLE)(sr_command)
reproduce.command("brec", epilog=BREC_EXAMPLE)(brec_command)
