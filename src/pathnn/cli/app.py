"""The commands. Their modules import torch and the rest of the library only inside functions."""

from __future__ import annotations

from typing import Annotated

import typer

from pathnn.cli.datasets import datasets
from pathnn.cli.distinguish import EXAMPLE as DISTINGUISH_EXAMPLE
from pathnn.cli.distinguish import distinguish_command
from pathnn.cli.evaluate import evaluate_command
from pathnn.cli.explain import explain_command
from pathnn.cli.failures import Commands
from pathnn.cli.paths import EXAMPLE as PATHS_EXAMPLE
from pathnn.cli.paths import paths_command
from pathnn.cli.predict import predict_command
from pathnn.cli.train import train_command


def _version(asked: bool) -> None:
    if asked:
        from pathnn import __version__

        print(f"pathnn {__version__}")
        raise typer.Exit


def make_app() -> typer.Typer:
    """The command line with all its commands."""
    app = typer.Typer(
        name="pathnn",
        cls=Commands,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Example: pathnn paths zinc --collection ap --k 4",
    )

    @app.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
        ] = False,
    ) -> None:
        """Path neural networks: extract paths, train, and repeat the paper."""

    app.command("paths", epilog=PATHS_EXAMPLE)(paths_command)
    app.command("distinguish", epilog=DISTINGUISH_EXAMPLE)(distinguish_command)
    app.command("train", epilog="Example: pathnn train molecules.csv --out RUN")(train_command)
    app.command("evaluate", epilog="Example: pathnn evaluate RUN molecules.csv")(evaluate_command)
    app.command("predict", epilog="Example: pathnn predict RUN new.csv -o predictions.csv")(predict_command)
    app.command("explain", epilog="Example: pathnn explain RUN new.csv --row 3 -o why.html")(explain_command)
    app.add_typer(datasets, name="datasets")
    return app


app = make_app()
