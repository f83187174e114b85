"""The folders data comes from: the cache (`PATHNN_DATA`) and the mirror (`PATHNN_MIRROR`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """Where data is kept: `PATHNN_DATA`, by default `pathnn` in the user's cache folder."""
    chosen = os.environ.get("PATHNN_DATA")
    return Path(chosen).expanduser() if chosen else _user_cache() / "pathnn"


def mirror_dir() -> Path | None:
    """A folder that is searched before the network is (`PATHNN_MIRROR`), or None."""
    chosen = os.environ.get("PATHNN_MIRROR")
    return Path(chosen).expanduser() if chosen else None


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
