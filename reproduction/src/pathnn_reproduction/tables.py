"""Rows of the paper's tables: the paper's number, ours, and how they compare, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from pathnn_reproduction.paper import PATHNNS, TABLES, PaperTable, RowKey, Score, maximizes
from pathnn_reproduction.results import Line, Results
from pathnn_reproduction.spec import Experiment, RunSpec


@dataclass(frozen=True)
class Measured:
    """Ours in one cell.

    Attributes:
        mean, std: over seeds, or over folds where there are folds; `std` is None for one alone.
        count, planned: how many seeds or folds the mean is over, and how many the protocol asks for.
        unit: "seeds" or "folds".
        runs: trainings behind the number, those that chose the grid points included.
        seconds: of all these trainings together.
        devices: where they ran.
    """

    mean: float
    std: float | None
    count: int
    planned: int
    unit: str
    runs: int
    seconds: float
    parameters: int | None
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """A cell of a table: the paper's number, ours, or why one is missing."""

    dataset: str
    model: str
    collection: str | None
    k: int | None
    paper: Score
    ours: Measured | None

    def difference(self, *, maximize: bool) -> float | None:
        """How much better ours is, in the paper's standard deviations; None where that means nothing."""
        if self.ours is None or self.paper.mean is None or not self.paper.std:
            return None
        return (self.ours.mean - self.paper.mean) / self.paper.std * (1 if maximize else -1)


def compare(experiment: Experiment, results_file: Results) -> dict[str, list[Compared]]:
    """By dataset, the rows of the paper's table with ours, then baselines of ours that it does not have."""
    found: dict[str, list[Compared]] = {}
    for table in TABLES.values():
        if table.target == experiment.name:
            found[table.dataset] = [
                _compare(experiment, results_file, table, cell) for cell in _cells(experiment, table)
            ]
    return found


def _cells(experiment: Experiment, table: PaperTable) -> list[RowKey]:
    """The rows: other methods, baselines of ours, PathNNs as in the text, PathNNs as released."""
    ours = dict.fromkeys((run.model, run.collection, run.k) for run in experiment.runs if run.dataset == table.dataset)
    everything = dict.fromkeys([*table.rows, *ours])
    return sorted(everything, key=lambda cell: PATHNNS.index(cell[0]) if cell[0] in PATHNNS else -1)


def _compare(experiment: Experiment, results_file: Results, table: PaperTable, cell: RowKey) -> Compared:
    runs = [run for run in experiment.runs if run.cell == (table.dataset, *cell)]
    paper = table.rows.get(cell, Score(note="not in the paper"))
    return Compared(table.dataset, *cell, paper, measure(experiment, runs, results_file))


def measure(experiment: Experiment, runs: Sequence[RunSpec], results_file: Results) -> Measured | None:
    """Ours in the cell of `runs`, None before the first run that counts.

    Where grid points are chosen, only the winners' runs count. A fold's score is the mean of its runs; a fold
    that lacks one does not count.
    """
    done = experiment.done(runs, results_file)
    chosen = any(run.assess for run in runs)
    several = len({run.fold for run in runs}) > 1
    seeds = {run.seed for run in runs if run.assess or not chosen}
    counting = [(run, line) for run, line in done if run.assess or not chosen]
    scores = [line["test"] for _, line in counting]
    if several:
        folds = sorted({run.fold for run, _ in counting})
        by_fold = [[line["test"] for run, line in counting if run.fold == fold] for fold in folds]
        scores = [fmean(tests) for tests in by_fold if len(tests) == len(seeds)]
    if not scores:
        return None
    return Measured(
        mean=fmean(scores),
        std=stdev(scores) if len(scores) > 1 else None,
        count=len(scores),
        planned=len({run.fold if several else run.seed for run in runs}),
        unit="folds" if several else "seeds",
        runs=len(done),
        seconds=sum(line["seconds"] for _, line in done),
        parameters=max((line["parameters"] for _, line in counting if line.get("parameters")), default=None),
        devices=tuple(sorted({line["device"] for _, line in done})),
    )


def best_line(experiment: Experiment, runs: Sequence[RunSpec], results_file: Results) -> tuple[RunSpec, Line] | None:
    """The finished run of the best validation score (the first of equal ones), None where there is none."""
    done = experiment.done(runs, results_file)
    return max(done, key=lambda item: item[1]["val"] * (1 if maximizes(item[0].dataset) else -1), default=None)


def plain_cell(cell: Compared, *, maximize: bool) -> dict[str, Any]:
    """A cell as plain values."""
    ours = cell.ours
    return {
        "dataset": cell.dataset, "model": cell.model, "collection": cell.collection, "k": cell.k,
        "paper": cell.paper.mean, "paper_std": cell.paper.std, "paper_note": cell.paper.note,
        "ours": None if ours is None else ours.mean, "ours_std": None if ours is None else ours.std,
        "count": 0 if ours is None else ours.count, "unit": None if ours is None else ours.unit,
        "runs": 0 if ours is None else ours.runs, "seconds": 0.0 if ours is None else ours.seconds,
        "difference": cell.difference(maximize=maximize),
    }  # fmt: skip


NOT_MEASURED = "not measured"
NO_TARGETS = "not measured: targets could not be fetched"
PAPER_NOTES = {"OOM": "out of memory", "NA": "not available", "-": "not applicable", "not in the paper": "—"}
NAMES = {"gin": "GIN", "gcn": "GCN", "mlp": "MLP (no structure)"}


def row_label(cell: Compared) -> str:
    """What the model of a row is called; at K = 1 the collections are one.

    >>> from pathnn_reproduction.paper import Score
    >>> row_label(Compared("zinc", "pathnn", "sp+", 4, Score(0.1, 0.0), None))
    'PathNN-SP+ (K=4)'
    """
    if cell.collection is None:
        return NAMES.get(cell.model, cell.model)
    released = ", as released" if cell.model == "pathnn-released" else ""
    return f"PathNN-{'P' if cell.k == 1 else cell.collection.upper()} (K={cell.k}){released}"


def paper_text(cell: Compared, table: PaperTable) -> str:
    """The paper's number, or why it has none."""
    paper = cell.paper
    if paper.mean is None:
        return PAPER_NOTES[paper.note]
    return score_text(paper.mean, paper.std, table.decimals)


def ours_text(cell: Compared, table: PaperTable) -> str:
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


def difference_text(cell: Compared, table: PaperTable) -> str:
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


def row_texts(cell: Compared, table: PaperTable) -> tuple[str, str, str, str, str]:
    """Paper, ours, how many, seconds and difference."""
    return (
        paper_text(cell, table),
        ours_text(cell, table),
        count_text(cell),
        seconds_text(cell),
        difference_text(cell, table),
    )


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "|" + "|".join(line) + "|" if line[0] == "---" else "| " + " | ".join(line) + " |" for line in lines
    )


LATEX = r"""\begin{{table}}
\centering
\caption{{{caption}}}
\begin{{tabular}}{{lcccr}}
\toprule
model & paper & ours & over & difference \\
\midrule
{body}
\bottomrule
\end{{tabular}}
\end{{table}}"""
DEVIATIONS = "Deviations are sample standard deviations."
HEAD = ("model", "parameters", "paper", "ours", "over", "runs", "seconds", "difference")


def cells_of_row(cell: Compared, table: PaperTable) -> list[str]:
    """The texts of a row, in the order of `HEAD`."""
    ours = cell.ours
    parameters = "" if ours is None or ours.parameters is None else f"{ours.parameters:,}"
    runs = "" if ours is None else str(ours.runs)
    return [
        row_label(cell), parameters, paper_text(cell, table), ours_text(cell, table), count_text(cell), runs,
        seconds_text(cell), difference_text(cell, table),
    ]  # fmt: skip


def latex_table(table: PaperTable, cells: Sequence[Compared]) -> str:
    """Return a table as LaTeX (`booktabs`)."""
    rows = [
        f"{row_label(c)} & {paper_text(c, table)} & {ours_text(c, table)} & {count_text(c)} & "
        f"{difference_text(c, table)} \\\\"
        for c in cells
    ]
    caption = latex_text(f"{table.title}: {table.metric}. {table.protocol} {DEVIATIONS}")
    return LATEX.format(caption=caption, body="\n".join(map(latex_text, rows)))


def latex_text(text: str) -> str:
    """Text with LaTeX's signs for what it cannot take as it is.

    >>> latex_text("82.3 ± 1.9, % — σ")
    '82.3 $\\\\pm$ 1.9, \\\\% --- $\\\\sigma$'
    """
    for sign, latex in (("%", "\\%"), ("±", "$\\pm$"), ("σ", "$\\sigma$"), ("—", "---"), ("SP+", "SP$^+$")):
        text = text.replace(sign, latex)
    return text
