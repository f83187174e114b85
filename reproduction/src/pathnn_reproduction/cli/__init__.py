"""`pathnn reproduce TARGET`: a table or figure of the paper with ours beside it, one module for each target."""

from __future__ import annotations

import typer

from pathnn_reproduction.cli.brec import EXAMPLE as BREC_EXAMPLE
from pathnn_reproduction.cli.brec import brec_command
from pathnn_reproduction.cli.counts import counts_command
from pathnn_reproduction.cli.figures import EXAMPLE as FIGURES_EXAMPLE
from pathnn_reproduction.cli.figures import figures_command
from pathnn_reproduction.cli.runtime import EXAMPLE as RUNTIME_EXAMPLE
from pathnn_reproduction.cli.runtime import runtime_command
from pathnn_reproduction.cli.sr import EXAMPLE as SR_EXAMPLE
from pathnn_reproduction.cli.sr import sr_command
from pathnn_reproduction.cli.table_runs import TARGETS, table_command
from pathnn_reproduction.cli.theory import EXAMPLE as THEORY_EXAMPLE
from pathnn_reproduction.cli.theory import theory_command

reproduce = typer.Typer(
    no_args_is_help=True,
    help="Repeat a table of the paper, and print it with ours beside it.",
    epilog="Example: pathnn reproduce counts",
)


@reproduce.callback()
def root() -> None:
    """Repeat a table of the paper, and print it with ours beside it."""


reproduce.command("counts", epilog="Example: pathnn reproduce counts --json")(counts_command)
reproduce.command("runtime", epilog=RUNTIME_EXAMPLE)(runtime_command)
reproduce.command("theory", epilog=THEORY_EXAMPLE)(theory_command)
reproduce.command("figures", epilog=FIGURES_EXAMPLE)(figures_command)
for target, title in TARGETS.items():
    reproduce.command(target, epilog=f"Example: pathnn reproduce {target} --jobs 2")(table_command(target, title))
reproduce.command("sr", epilog=SR_EXAMPLE)(sr_command)
reproduce.command("brec", epilog=BREC_EXAMPLE)(brec_command)
