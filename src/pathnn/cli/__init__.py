"""The command line: parse, call, print. `main` is the console script `pathnn`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line on `sys.argv` and leave with its exit code."""
    try:
        from pathnn.cli.app import app

        app(prog_name="pathnn")
    except KeyboardInterrupt:
        sys.exit(130)


__all__ = ["main"]
