"""Cells as text: what a row of a table says, for terminals, Markdown and LaTeX."""

from __future__ import annotations

from pathnn_reproduction.cells import Compared
from pathnn_reproduction.published import PublishedTable

NOT_MEASURED = "not measured"
NO_TARGETS = "not measured: targets could not be fetched"
PAPER_NOTES = {"OOM": "out of memory", "NA": "not available", "-": "not applicable", "not in the paper": "—"}
NAMES = {"gin": "GIN", "gcn": "GCN", "mlp": "MLP (no structure)"}


def row_label(cell: Compared) -> str:
    """What the model of a row is called; at K = 1 the collections are one.

    >>> from pathnn_reproduction.published import Score
    >>> row_label(Compared("zinc", "pathnn", "sp+", 4, Score(0.1, 0.0), None))
    'PathNN-SP+ (K=4)'
    """
    if cell.collection is None:
        return NAMES.get(cell.model, cell.model)
    released = ", as released" if cell.model == "pathnn-released" else ""
    return f"PathNN-{'P' if cell.k == 1 else cell.collection.upper()} (K={cell.k}){released}"


def paper_text(cell: Compared, table: PublishedTable) -> str:
    """The paper's number, or why it has none."""
    paper = cell.paper
    if paper.mean is None:
        return PAPER_NOTES[paper.note]
    return score_text(paper.mean, paper.std, table.decimals)


def ours_text(cell: Compared, table: PublishedTable) -> str:
    """Our number, or that there is none."""
    if cell.ours is not None:
        return score_text(cell.ours.mean, cell.ours.std, table.decimals + 1)
    if cell.paper.note == "-":
        return PAPER_NOTES["-"]
    if cell.collection is None and cell.model not in NAMES:
        return "—"  # a method that is not ours to run
    return NO_TARGETS if table.dataset == "peptides-struct" else NOT_MEASURED


def score_text(mean: float, std: float | None, decimals: int) -> str:
    """A mean and its deviation.

    >>> score_text(0.0929, 0.004, 3), score_text(10.0, None, 1)
    ('0.093 ± 0.004', '10.0')
    """
    return f"{mean:.{decimals}f}" + ("" if std is None else f" ± {std:.{decimals}f}")


def count_text(cell: Compared) -> str:
    """How many seeds or folds are behind our number; "7 of 10 folds" where some are missing."""
    ours = cell.ours
    if ours is None:
        return ""
    return f"{ours.count} {ours.unit}" if ours.count == ours.planned else f"{ours.count} of {ours.planned} {ours.unit}"


def difference_text(cell: Compared, table: PublishedTable) -> str:
    """Ours against the paper's, in its standard deviations; where it has none, whether the means are equal."""
    difference = cell.difference(maximize=table.maximize)
    if difference is not None:
        return f"{round(difference, 1) + 0.0:+.1f} σ"  # + 0.0: not -0.0
    if cell.ours is None or cell.paper.mean is None:
        return ""
    better = (cell.ours.mean - cell.paper.mean) * (1 if table.maximize else -1)
    # A metric in float32 times 100 is not the number that it stands for.
    return "equal" if abs(better) < 1e-5 else f"{better:+.3g}"


def seconds_text(cell: Compared) -> str:
    """The seconds behind our number, and whether they are a CPU's: those of a GPU cannot be compared with them."""
    if cell.ours is None:
        return ""
    cpu = "cpu" in cell.ours.devices
    where = "" if not cpu else " (CPU)" if len(cell.ours.devices) == 1 else " (CPU, GPU)"
    return f"{cell.ours.seconds:,.0f}{where}"


def row_texts(cell: Compared, table: PublishedTable) -> tuple[str, str, str, str, str]:
    """Paper, ours, how many, seconds and difference."""
    return (
        paper_text(cell, table),
        ours_text(cell, table),
        count_text(cell),
        seconds_text(cell),
        difference_text(cell, table),
    )
