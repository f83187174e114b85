"""Figures as files that change only when the picture does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pathnn.data.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGING = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
"""By format, what matplotlib writes into a file that is another one each day or with each version."""


def save_picture(figure: Figure, path: Path, *, dpi: int) -> None:
    """Write a figure in the format that the file's name says, without dates and versions in it."""
    metadata = {CHANGING[path.suffix[1:]]: None}
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=dpi, metadata=metadata)
