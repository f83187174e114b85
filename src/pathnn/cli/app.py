"""The commands. Their modules import torch and the rest of the library only inside functions."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from pathnn.cli.bench import bench
from pathnn.cli.datasets import datasets
from pathnn.cli.distinguish import EXAMPLE as DISTINGUISH_EXAMPLE
from pathnn.cli.distinguish import distinguish_command
from pathnn.cli.failures import Commands
from pathnn.cli.paths import EXAMPLE as PATHS_EXAMPLE
from pathnn.cli.paths import paths_command
from pathnn.cli.reproduce import reproduce

TRAINING = {
    "train": "Example: pathnn train molecules.csv --out RUN",
    "evaluate": "Example: pathnn evaluate RUN molecules.csv",
    "predict": "Example: pathnn predict RUN new.csv -o predictions.csv",
    "explain": "Example: pathnn explain RUN new.csv --row 3 -o why.html",
}


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
    for name, example in TRAINING.items():
        module = f"pathnn.cli.{name}"
        if find_spec(module) is not None:
            app.command(name, epilog=example)(vars(import_module(module))[f"{name}_command"])
    app.add_typer(reproduce, name="reproduce")
    app.add_typer(bench, name="bench")
    app.add_typer(datasets, name="datasets")
    return app


app = make_app()
