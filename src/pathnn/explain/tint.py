"""Scores as colours: orange adds to the prediction, blue takes away."""

from __future__ import annotations

Color = tuple[float, float, float]
"""Red, green and blue, from 0 to 1."""

MORE, LESS = (0.902, 0.624, 0.0), (0.337, 0.706, 0.914)
"""Okabe and Ito's orange and sky blue, which colour-blind readers tell apart too."""


def tint(score: float, most: float) -> Color:
    """White for 0, the full colour for a score of the size `most`.

    >>> tint(0.0, 2.0), tint(2.0, 2.0), hex_color(tint(-2.0, 2.0))
    ((1.0, 1.0, 1.0), (0.902, 0.624, 0.0), '#56b4e9')
    """
    part = min(abs(score) / most, 1.0) if most > 0 else 0.0
    red, green, blue = (1.0 - part * (1.0 - channel) for channel in (MORE if score > 0 else LESS))
    return (red, green, blue)


def hex_color(color: Color) -> str:
    """A colour as web pages and matplotlib write it."""
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in color)
