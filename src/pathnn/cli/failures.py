"""What can go wrong, in one or two sentences on standard error; never a traceback for bad input."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

EXTRAS = {"rdkit": "mol", "matplotlib": "plot", "igraph": "bench"}

TRACEBACK = "PATHNN_TRACEBACK"
"""The environment variable that, set to anything, shows where an error came from."""


PLUGINS = {
    "reproduce": "Repeat a table of the paper, and print it with ours beside it.",
    "bench": "Measure this machine: ours against the usual way, as ratios from one run.",
}
"""The commands of the package `pathnn_reproduction`, which registers them as entry points."""


class Commands(TyperGroup):
    """The root of the command line: its plug-ins, and errors that a user can fix as a message and exit code 1."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Name the commands of the library and of its plug-ins."""
        return [*super().list_commands(ctx), *PLUGINS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; a plug-in is imported when it is asked for."""
        return plugin(cmd_name) if cmd_name in PLUGINS else super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise  # typer ends quietly: the reader of a pipe has seen enough
        except Exception as error:
            message = explain(error)
            if message is None or os.environ.get(TRACEBACK):
                raise
            print(f"Error: {message}", file=sys.stderr)
            raise typer.Exit(1) from error


def plugin(name: str) -> Any:
    """Load a plug-in's command; without its package, return a command that says how to get it."""
    found = next(iter(entry_points(group="pathnn.commands", name=name)), None)
    if found is not None:
        return typer.main.get_command(found.load())

    def missing() -> None:
        raise ValueError(
            f"pathnn {name} is in the package pathnn-reproduction, which is not installed: in a clone, run "
            "make install, or pip install ./reproduction."
        )

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return TyperCommand(name, help=PLUGINS[name], callback=missing, context_settings=settings)


def explain(error: Exception) -> str | None:
    """What to tell the user, or None where the error is a fault of ours.

    >>> explain(ValueError("k=0 is no path length."))
    'k=0 is no path length.'
    >>> explain(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'a.csv: No such file or directory.'
    >>> explain(ModuleNotFoundError("No module named 'rdkit'", name="rdkit"))
    "this needs rdkit, which is not installed: pip install 'pathnn[mol]'."
    >>> explain(KeyError("x")) is None
    True
    """
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").split(".")[0]
        if package not in EXTRAS:
            return None
        return f"this needs {package}, which is not installed: pip install 'pathnn[{EXTRAS[package]}]'."
    if isinstance(error, OSError) and error.strerror:
        return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror}."
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "the memory is full. Lower k or the size of a batch, or use collection sp+ or sp."
    if isinstance(error, ValueError | OSError):
        return " ".join(str(error).split()) or f"{type(error).__name__}."
    return None
