"""What every result file carries: where, when and with what it was made."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch


def provenance(device: str = "cpu") -> dict[str, Any]:
    """Commit, time, device and versions of work that was done on a device ("auto": on a GPU if there is one).

    >>> provenance()["device"] == f"{platform.machine()}, {os.cpu_count()} cores"
    True
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    gpu = torch.device(device).type == "cuda"
    return {
        "commit": commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(device) if gpu else f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), **{name: installed_version(name) for name in PACKAGES}},
    }


PACKAGES = ("pathnn", "torch", "torch_geometric", "numba", "numpy", "igraph", "triton")


def commit() -> str | None:
    """The commit of the checkout, with a `+` if code differs from it; `PATHNN_COMMIT` where there is no git.

    Only what is run counts: results and docs change while results are being made.
    """
    if "PATHNN_COMMIT" in os.environ:
        return os.environ["PATHNN_COMMIT"]
    try:
        if Path(_git("rev-parse", "--show-toplevel").stdout.strip()).resolve() != ROOT.resolve():
            return None  # installed into a folder of someone else's repository
        head = _git("rev-parse", "--short=12", "HEAD").stdout.strip()
        changed = _git("diff", "--name-only", "HEAD", "--", *CODE).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed else head


ROOT = Path(__file__).parents[2]

CODE = ("src", "reproduction/src", "benchmarks/*.py", "examples", "pyproject.toml")


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)


def installed_version(name: str) -> str | None:
    """The version of a package, None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
