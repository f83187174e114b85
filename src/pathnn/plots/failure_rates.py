"""A bar chart of failure rates: one group of bars per family of graphs, one bar per test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pathnn.plots.page import INK, LINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_failure_rates(families: Sequence[str], rates: Mapping[str, Sequence[float | None]]) -> Figure:
    """Bars of `rates[test][family]`, in percent, with the value on top; None draws nothing.

    >>> figure = draw_failure_rates(["SR(16,6,2,2)"], {"network": [0.0], "3-WL": [100.0]})
    >>> len(figure.axes[0].patches)
    2
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.5, 1.6 * len(families)), 3.4), layout="constrained")
    axes = figure.add_subplot()
    width = 0.84 / max(len(rates), 1)
    for i, (test, values) in enumerate(rates.items()):
        places = [j + (i - (len(rates) - 1) / 2) * width for j in range(len(families))]
        shown = [(x, value) for x, value in zip(places, values, strict=True) if value is not None]
        bars = axes.bar([x for x, _ in shown], [value for _, value in shown], width * 0.92, color=LINES[i], label=test)
        axes.bar_label(bars, [_short(value) for _, value in shown], fontsize=6.5, color=INK, padding=1)
    axes.set_xticks(range(len(families)), families, fontsize=8)
    axes.set_ylabel("pairs confused, %")
    axes.set_ylim(0, 108)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(rates), fontsize=8, frameon=False)
    return figure


def _short(value: float) -> str:
    """Few digits.

    >>> _short(0.0), _short(77.56), _short(0.0098), _short(0.02)
    ('0', '78', '<.01', '0.02')
    """
    digits = 0 if value >= 10 or value == 0 else 1 if value >= 0.1 else 2
    return f"{value:.{digits}f}" if value == 0 or value >= 0.01 else "<.01"
