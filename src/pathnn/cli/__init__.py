"""The command line: parse, call, print. `main` is the console script `pathnn`."""

from typing import TYPE_CHECKING

from pathnn._lazy import exports

if TYPE_CHECKING:
    from pathnn.cli.app import main as main

__all__, __getattr__, __dir__ = exports(__name__)
