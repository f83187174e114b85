"""Small integers as exact names of nested structures."""

from __future__ import annotations

from collections.abc import Hashable


class ColorTable:
    """Gives equal structures equal integers and different structures different ones; it never collides.

    Colours are comparable only when they come from one table, so share it between the graphs you compare.
    A structure is written in terms of the colours of its parts, which keeps keys short however deep it is.

    >>> table = ColorTable()
    >>> leaf = table.color(())
    >>> cherry = table.color((leaf, leaf))
    >>> table.color((leaf, leaf)) == cherry, cherry == leaf, len(table)
    (True, False, 2)
    """

    def __init__(self) -> None:
        self._colors: dict[Hashable, int] = {}

    def color(self, structure: Hashable) -> int:
        """The colour of a structure, a new one if it was not seen before."""
        return self._colors.setdefault(structure, len(self._colors))

    def __len__(self) -> int:
        return len(self._colors)

    def __repr__(self) -> str:
        return f"ColorTable({len(self)} colours)"
