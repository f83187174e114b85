"""What can go wrong, in one or two sentences on standard error; never a traceback for bad input."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

EXTRAS = {"rdkit": "mol", "matplotlib": "plot", "igraph": "bench"}

TRACEBACK = "PATHNN_TRACEBACK"
"""The environment variable that, set to anything, shows where an error came from."""


class Commands(TyperGroup):
    """The root of the command line: errors that a user can mend become a message and exit code 1."""

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
