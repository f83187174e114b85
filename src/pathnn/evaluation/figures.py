"""Draw predictions, learning curves and comparisons as SVG for light and dark pages. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pathnn.evaluation.predictions import Array
from pathnn.training.run_folder import plot_epochs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pathnn.evaluation.comparison import Comparison

GREY, BLUE, ORANGE = "#808080", "#3a87c8", "#d9701e"
"""Colours that can be read on white and on black."""

STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10, "text.color": GREY, "axes.edgecolor": GREY,
    "axes.labelcolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False,
}  # fmt: skip

MANY = 3000
"""More points are drawn as one image."""


def one_plot(draw: Callable[..., None]) -> Callable[..., Figure]:
    """Turn a function that draws on axes into one that returns a figure with them."""

    @wraps(draw)
    def make(*args: Any, **options: Any) -> Figure:
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        with rc_context(STYLE):
            figure = Figure(figsize=(3.6, 3.2), layout="constrained")
            axes = figure.add_subplot()
            draw(axes, *args, **options)
            axes.locator_params(axis="x", nbins=6)
        return figure

    return make


@one_plot
def scatter(axes: Axes, x: Array, y: Array, xlabel: str, ylabel: str, *, diagonal: bool = False) -> None:
    """Draw points, and the diagonal or a line at 0."""
    ends = [min(x.min(), y.min()), max(x.max(), y.max())] if diagonal else [x.min(), x.max()]
    axes.plot(ends, ends if diagonal else [0.0, 0.0], color=GREY, linewidth=1)
    axes.scatter(x, y, s=14, alpha=0.6, color=BLUE, linewidths=0, rasterized=len(x) > MANY)
    axes.set(xlabel=xlabel, ylabel=ylabel)


def roc_curve(y: Array, out: Array) -> tuple[Array, Array]:
    """Return the rates of false and of true positives at each threshold, from the strictest to the loosest."""
    from torchmetrics.functional.classification import binary_roc

    false, true, _ = binary_roc(torch.tensor(out).sigmoid(), torch.tensor(y).long())
    return false.numpy(), true.numpy()


def calibration_curve(y: Array, probability: Array, *, bins: int = 10) -> tuple[Array, Array]:
    """Return the mean probability and the share of positives of about equally many molecules each, from low to high."""
    parts = np.array_split(np.argsort(probability, kind="stable"), min(bins, len(y)))
    return np.array([probability[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])


Curves = Mapping[str, tuple[Array, Array]]


@one_plot
def draw_curves(axes: Axes, curves: Curves, xlabel: str, ylabel: str, *, marker: str = "") -> None:
    """Draw curves from 0 to 1 by name, next to the diagonal."""
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")
    _lines(axes, curves, marker)
    axes.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))


@one_plot
def draw_precision_recall(axes: Axes, curves: Curves) -> None:
    """Draw curves of precision over recall by name; the dotted line is the share of positives."""
    from torchmetrics.functional.classification import binary_precision_recall_curve

    if len(curves) == 1:
        axes.axhline(float(np.mean(next(iter(curves.values()))[0])), color=GREY, linewidth=1, linestyle=":")
    lines = {}
    for name, (y, out) in curves.items():
        precision, recall, _ = binary_precision_recall_curve(torch.tensor(out).sigmoid(), torch.tensor(y).long())
        lines[name] = recall[:-1].numpy(), precision[:-1].numpy()  # the last has no threshold
    _lines(axes, lines)
    axes.set(xlabel="recall", ylabel="precision", ylim=(-0.02, 1.02))


def _lines(axes: Axes, curves: Curves, marker: str = "") -> None:
    for name, (x, y) in curves.items():
        axes.plot(x, y, color=BLUE if len(curves) == 1 else None, label=name, marker=marker)
    if len(curves) > 1:
        axes.legend()


@one_plot
def learning_curves(axes: Axes, runs: Sequence[Sequence[Mapping[str, Any]]], field: str, label: str) -> None:
    """Draw a field of `metrics.jsonl` over the epochs, one line for each run; "loss" draws both losses."""
    fields = {"train_loss": "training", "val_loss": "validation"} if field == "loss" else {field: ""}
    for (name, title), color in zip(fields.items(), (BLUE, ORANGE), strict=False):
        style = {"color": color, "linewidth": 1.2, "alpha": 1.0 if len(runs) == 1 else 0.6}
        for i, epochs in enumerate(runs):
            plot_epochs(axes, epochs, name, label=title if i == 0 and title else None, **style)
    axes.set(xlabel="epoch", ylabel=label)
    if len(fields) > 1:
        axes.legend()


@one_plot
def draw_comparison(axes: Axes, found: Comparison) -> None:
    """Draw the scores of models with their intervals, the first on top."""
    figure: Any = axes.figure
    figure.set_size_inches(7.0, 1.0 + 0.4 * len(found.models))
    for place, model in enumerate(found.models):
        color = BLUE if place == 0 else ORANGE if model.difference and model.difference.distinguishable else GREY
        axes.plot([model.low, model.high], [-place, -place], color=color, linewidth=2)
        axes.plot(model.score, -place, "o", color=color)
    axes.set_yticks([-place for place in range(len(found.models))], [model.name for model in found.models])
    axes.set_ylim(-len(found.models) + 0.5, 0.5)
    axes.axvline(found.models[0].score, color=GREY, linewidth=1, linestyle=":")
    direction = "larger" if found.maximize else "smaller"
    axes.set(xlabel=f"{found.metric} with 95 % intervals ({direction} is better)")
