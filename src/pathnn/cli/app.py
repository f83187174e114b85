"""The commands, plug-ins of other packages, and errors as one or two sentences, never as a traceback."""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pathnn.cli.compare import compare_command
from pathnn.cli.console import watch_compiler
from pathnn.cli.datasets import datasets
from pathnn.cli.distinguish import EXAMPLE as DISTINGUISH_EXAMPLE, distinguish_command
from pathnn.cli.embed import embed_command
from pathnn.cli.evaluate import evaluate_command
from pathnn.cli.explain import explain_command
from pathnn.cli.paths import EXAMPLE as PATHS_EXAMPLE, paths_command
from pathnn.cli.predict import predict_command
from pathnn.cli.train import train_command
from pathnn.cli.tune import tune_command

EXTRAS = {
    "rdkit": "pathnn[mol]", "matplotlib": "pathnn[plot]", "igraph": "pathnn-reproduction[bench]",
    "sklearn": "pathnn[chem]", "lightgbm": "pathnn[chem]", "pyarrow": "pathnn[chem]", "scipy": "pathnn[plot]",
    "optuna": "pathnn[tune]",
}  # fmt: skip
"""The extra of pathnn that installs a package."""

TRACEBACK = "PATHNN_TRACEBACK"
"""Set this environment variable to anything to see the traceback of an error."""

PLUGINS = {
    "reproduce": "Repeat a table of the paper, and print it with ours next to it.",
    "bench": "Measure this machine: ours against the usual way, as ratios from one run.",
}
"""The commands of the package `pathnn_reproduction`, which registers them as entry points."""


def _refuse(context: typer.Context) -> None:
    raise ValueError(
        f"pathnn {context.info_name} is in the package pathnn-reproduction, which is not installed: in a clone, run "
        "make install, or pip install ./reproduction."
    )


class Commands(TyperGroup):
    """The root of the command line: commands, plug-ins, and errors that a user can fix as messages with exit code 1."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to call; a plug-in is imported if it is installed."""
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, TyperCommand) and name in PLUGINS:
            for found in entry_points(group="pathnn.commands", name=name):
                command = typer.main.get_command(found.load())
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise  # typer exits quietly: the reader of a pipe has closed it
        except Exception as error:
            message = explain(error)
            if message is None or os.environ.get(TRACEBACK):
                raise
            print(f"Error: {message}", file=sys.stderr)
            raise typer.Exit(1) from error


def explain(error: Exception) -> str | None:
    """Return the message for an error that the user can fix, or None for a defect of pathnn."""
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").split(".")[0]
        if package not in EXTRAS:
            return None
        return f"this needs {package}, which is not installed: pip install '{EXTRAS[package]}'."
    if isinstance(error, OSError) and error.strerror:
        return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror}."
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "the memory is full. Lower k or the size of a batch, or use collection sp+ or sp."
    if isinstance(error, ValueError | OSError):
        return " ".join(str(error).split()) or f"{type(error).__name__}."
    return None


def _version(asked: bool) -> None:
    if asked:
        from pathnn import __version__

        print(f"pathnn {__version__}")
        raise typer.Exit


def make_app() -> typer.Typer:
    """Return the command line with all its commands."""
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
    app.command("tune", epilog="Example: pathnn tune molecules.csv --epochs 30 --trials 30 --out SEARCH")(tune_command)
    app.command("evaluate", epilog="Example: pathnn evaluate RUN molecules.csv")(evaluate_command)
    app.command("compare", epilog="Example: pathnn compare RUN OTHER -o compared.svg")(compare_command)
    app.command("predict", epilog="Example: pathnn predict RUN new.csv -o predictions.csv")(predict_command)
    app.command("embed", epilog="Example: pathnn embed RUN new.csv -o embeddings.parquet")(embed_command)
    app.command("explain", epilog="Example: pathnn explain RUN new.csv --row 3 -o why.html")(explain_command)
    app.add_typer(datasets, name="datasets")
    any_arguments = {"ignore_unknown_options": True, "allow_extra_args": True}
    for name, text in PLUGINS.items():
        app.command(name, help=text, context_settings=any_arguments)(_refuse)
    return app


app = make_app()


def main() -> None:
    """Run the command line on `sys.argv` and exit with its code. Output that is not for a terminal is UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8")
    if "OMP_WAIT_POLICY" not in os.environ:  # torch reads it on import: threads that wait soon sleep (NOTES 33)
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # torch asks for huge pages: fewer page faults
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # of oneDNN and of torch's part of it
        os.environ.setdefault(name, "64")  # kernels of 1,024 shapes would fill hundreds of MiB
    if sys.stderr.isatty():
        watch_compiler()
    try:
        app(prog_name="pathnn")
    except KeyboardInterrupt:
        sys.exit(130)
