"""Lay out a page of panels with captions, measured in inches, and draw discs and labels."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import cycle
from string import ascii_lowercase
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, which colour-blind readers can distinguish, without yellow, which is too pale for lines.
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
INK = "#333333"
EDGE = "#C4C4C4"
PLAIN = "#FFFFFF"
REACHED = "#DCEAF4"
FADED = "#EDEDED"

WARM = "#D55E00"
COOL = "#009E73"

RADIUS = 0.16
MARGIN = 0.12
GAP = 0.42
CAPTION_SIZE = 9
LINE_HEIGHT = 0.17
CHARACTER = 0.076


def make_page(
    sizes: Sequence[tuple[float, float]], captions: Sequence[str], *, middle: bool = False
) -> tuple[Figure, list[Any]]:
    """Make a figure with a panel for each (width, height); sizes and axes are in inches.

    The origin of a panel is its upper left corner. Upper edges are aligned, or centres with `middle=True`.
    """
    from matplotlib.figure import Figure

    # A panel has room for the longest word of its caption, and for half of the caption.
    longest = [max(*map(_visible, [*caption.split(), ""]), _visible(caption) / 2) for caption in captions]
    widths = [max(width, 1.6, CHARACTER * most) for (width, _), most in zip(sizes, longest, strict=True)]
    lines = [_wrap(caption, width) for caption, width in zip(captions, widths, strict=True)]
    height = max(height for _, height in sizes)
    below = LINE_HEIGHT * max(map(len, lines)) + 0.15
    total = sum(widths) + GAP * (len(widths) - 1) + 2 * MARGIN, height + below + 2 * MARGIN
    figure = Figure(figsize=total, facecolor="white")
    axes, left = [], MARGIN
    for (inner, outer), width, text in zip(sizes, widths, lines, strict=True):
        lift = (height - outer) / 2 if middle else height - outer
        corner = (left + (width - inner) / 2) / total[0], (MARGIN + below + lift) / total[1]
        panel = figure.add_axes((*corner, inner / total[0], outer / total[1]), xlim=(0, inner), ylim=(-outer, 0))
        panel.set_axis_off()
        axes.append(panel)
        for row, line in enumerate(text):
            # One text per line: a superscript must not push its line below those of other captions.
            y = (MARGIN + below - 0.22 - row * LINE_HEIGHT) / total[1]
            x = (left + width / 2) / total[0]
            figure.text(x, y, line, ha="center", va="baseline", fontsize=CAPTION_SIZE, color=INK)
        left += width + GAP
    return figure, axes


def _visible(text: str) -> int:
    """Count the characters without the marks of mathematical text."""
    return sum(character not in "$_^{}" for character in text)


def _wrap(caption: str, width: float) -> list[str]:
    """Break a caption into as few lines as possible, of nearly equal lengths."""
    hidden = len(caption) - _visible(caption)
    least = len(wrap(caption, max(int(width / CHARACTER) + hidden, 8), break_long_words=False))
    lines = (wrap(caption, room, break_long_words=False) for room in range(8, len(caption) + 1))
    return next((found for found in lines if len(found) <= least), [caption])


def draw_disc(
    axes: Any,
    at: tuple[float, float],
    label: str,
    *,
    fill: str = PLAIN,
    radius: float = RADIUS,
    faded: bool = False,
) -> None:
    """Draw a vertex above all lines, as a disc with its label."""
    from matplotlib.patches import Circle

    style: dict[str, Any] = {"linestyle": (0, (2, 1.5)), "edgecolor": "#8A8A8A"} if faded else {"edgecolor": INK}
    axes.add_patch(Circle(at, radius, facecolor=fill, linewidth=0.9, zorder=3, **style))
    color = "white" if fill in (INK, WARM, COOL) else "#6A6A6A" if faded else "black"
    # A label of three characters must fit into the disc; 72 points are one inch.
    size = 72 * radius * (0.86 if len(label) <= 6 else 0.7)
    axes.text(*at, label, ha="center", va="center_baseline", fontsize=size, color=color, zorder=4)


def vertex_labels(num_nodes: int, labels: Sequence[str] | None = None) -> list[str]:
    """Return the given labels, or the labels of the paper: vertex 0 is v1."""
    if labels is None:
        return [f"$v_{{{v + 1}}}$" for v in range(num_nodes)]
    if len(labels) != num_nodes:
        raise ValueError(f"labels has {len(labels)} entries: expected one for each vertex, num_nodes={num_nodes}.")
    return list(labels)


def lettered(captions: Sequence[str]) -> list[str]:
    """Put (a), (b), ... before the captions if there are at least two."""
    if len(captions) < 2:
        return list(captions)
    return [f"({letter}) {caption}" for letter, caption in zip(cycle(ascii_lowercase), captions, strict=False)]


def svg(figure: Figure, name: str = "pathnn", style: Mapping[str, Any] | None = None, **options: Any) -> str:
    """Return a figure as an SVG element; another `name` gives it other ids than those of other figures on a page."""
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({**(style or {}), "svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None}, **options)
    found = text.getvalue()
    return found[found.index("<svg") :]
