"""Draw the losses and scores of a run."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathnn.training.run_folder import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, BLUE, ORANGE = "#333333", "#0072B2", "#D55E00"


def draw_curves(epochs: Sequence[Mapping[str, Any]], *, metric_name: str) -> Figure:
    """Draw the lines of `metrics.jsonl`: losses, and the validation score with its best epoch.

    >>> epoch = {"epoch": 1, "train_loss": 2.0, "val_loss": 2.1, "val_score": 10.0, "best": True}
    >>> len(draw_curves([epoch], metric_name="accuracy").axes)
    2
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    FigureCanvasAgg(figure)  # without a display
    losses, scores = figure.subplots(1, 2)
    numbers = [epoch["epoch"] for epoch in epochs]
    marker = "o" if len(epochs) < 3 else None
    for name, color, label in (("train_loss", BLUE, "training"), ("val_loss", ORANGE, "validation")):
        losses.plot(numbers, _column(epochs, name), color=color, label=label, marker=marker)
    losses.set(xlabel="epoch", ylabel="loss")
    losses.legend(frameon=False)
    scores.plot(numbers, _column(epochs, "val_score"), color=ORANGE, marker=marker)
    best = [epoch for epoch in epochs if epoch["best"] and epoch["val_score"] is not None]
    if best:
        scores.plot(best[-1]["epoch"], best[-1]["val_score"], "o", color=INK, label="best")
        scores.legend(frameon=False)
    scores.set(xlabel="epoch", ylabel=f"validation {metric_name}")
    for axes in (losses, scores):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def save_curves(path: Path, epochs: Sequence[Mapping[str, Any]], *, metric_name: str) -> bool:
    """Write the curves as PNG; return False if matplotlib (extra `plot`) is not installed."""
    try:
        figure = draw_curves(epochs, metric_name=metric_name)
    except ImportError:
        return False
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120, metadata={"Software": None})
    write_file(path, content.getvalue())
    return True


def _column(epochs: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float("nan") if epoch[name] is None else epoch[name] for epoch in epochs]
