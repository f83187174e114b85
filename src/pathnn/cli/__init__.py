"""The command line: parse, call, print. `main` is the console script `pathnn`."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line on `sys.argv` and exit with its code. Output that is not for a terminal is UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8")
    if "OMP_WAIT_POLICY" not in os.environ:  # torch reads it on import: threads that wait soon sleep (NOTES 33)
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        from pathnn.cli.app import app

        app(prog_name="pathnn")
    except KeyboardInterrupt:
        sys.exit(130)


__all__ = ["main"]
