"""Describe the code that computed a result: its commit, and the versions of packages."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "pathnn", "torch", "torch_geometric", "lightning", "lightning_fabric", "torchmetrics", "numba", "numpy", "igraph",
    "triton",
)  # fmt: skip
"""Packages that results depend on."""


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that results depend on; None for a missing package."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit (or `PATHNN_COMMIT`), with a `+` if code, not only results or docs, has changed since."""
    if "PATHNN_COMMIT" in os.environ:
        return os.environ["PATHNN_COMMIT"]
    try:
        if Path(_git("rev-parse", "--show-toplevel").stdout.strip()).resolve() != ROOT.resolve():
            return None  # installed into a folder of another repository
        head = _git("rev-parse", "--short=12", "HEAD").stdout.strip()
        changed = _git("diff", "--name-only", "HEAD", "--", *CODE).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed else head


ROOT = Path(__file__).parents[2]

CODE = ("src", "reproduction/src", "benchmarks/*.py", "examples", "pyproject.toml")


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
