"""Numbers of bytes for people."""

from __future__ import annotations


def size_text(size: float) -> str:
    """A number of bytes as a person reads it.

    >>> size_text(3 * 2**20)
    '3.0 MiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
