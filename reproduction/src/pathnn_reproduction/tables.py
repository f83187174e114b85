"""Tables: the rows of an experiment next to the numbers of the paper, as text, Markdown, LaTeX and plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from pathnn_reproduction.paper import PATHNNS, TABLES, PaperTable, RowKey, Score, maximizes
from pathnn_reproduction.results import Results, Row

if TYPE_CHECKING:
    from pathnn_reproduction.spec import Experiment, RunSpec


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    values: Sequence[Row] = field(default=(), repr=False)  # the rows as plain values, for `--json`
    left: int = 1  # so many columns hold words, the others numbers
    error: str = ""  # a difference from the paper that must not be there


@dataclass(frozen=True)
class Measured:
    """Our number in an entry of a table: a mean over seeds, or over folds if there are several."""

    mean: float
    std: float | None  # None for a single seed or fold
    count: int  # of seeds or folds
    planned: int  # how many the protocol asks for
    unit: str  # "seeds" or "folds"
    runs: int  # training runs behind the number, including those that chose grid points
    seconds: float  # the sum over these runs
    parameters: int | None
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """An entry of an accuracy table: the number of the paper, and ours."""

    dataset: str
    model: str
    collection: str | None
    k: int | None
    paper: Score
    ours: Measured | None

    @property
    def table(self) -> PaperTable:
        """The table that the entry is in."""
        return TABLES[self.dataset]

    @property
    def better(self) -> float | None:
        """How much better ours is than the paper's number; None if there is none."""
        if self.ours is None or self.paper.mean is None:
            return None
        return (self.ours.mean - self.paper.mean) * (1 if self.table.maximize else -1)

    @property
    def difference(self) -> float | None:
        """How much better ours is, in standard deviations of the paper; None if there are none."""
        return None if self.better is None or not self.paper.std else self.better / self.paper.std


def accuracy_tables(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> list[Table]:
    """Return the tables of the datasets of `specs`."""
    chosen, columns = {spec.dataset for spec in specs}, ("model", "paper", "ours", "over", "seconds", "difference")
    return [
        Table(f"{TABLES[dataset].title}: {TABLES[dataset].metric}", columns,
              [texts(entry, columns) for entry in entries], list(map(plain_entry, entries)))
        for dataset, entries in compare(experiment, results).items() if dataset in chosen
    ]  # fmt: skip


def compare(experiment: Experiment, results: Results) -> dict[str, list[Entry]]:
    """Return, by dataset, the entries of the paper's table with ours, and baselines of ours that it does not have."""
    found: dict[str, list[Entry]] = {}
    for table in TABLES.values():
        if table.target == experiment.name:
            by_row: dict[RowKey, list[RunSpec]] = {row: [] for row in table.rows}
            for spec in experiment.specs:
                if spec.dataset == table.dataset:
                    by_row.setdefault(spec.entry[1:], []).append(spec)  # type: ignore[arg-type]
            # other methods and baselines, PathNNs as in the text, PathNNs as released
            order = sorted(by_row, key=lambda row: PATHNNS.index(row[0]) if row[0] in PATHNNS else -1)
            new = Score(note="not in the paper")
            found[table.dataset] = [
                Entry(table.dataset, *row, table.rows.get(row, new), measure(experiment, by_row[row], results))
                for row in order
            ]
    return found


def measure(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> Measured | None:
    """Return our number for an entry, or None before the first run that counts.

    Where grid points are chosen, only the runs of the winners count. The score of a fold is the mean of its runs; a
    fold that lacks one does not count.
    """
    done = experiment.done(specs, results)
    chosen = any(spec.assess for spec in specs)
    several = len({spec.key["fold"] for spec in specs}) > 1
    seeds = {spec.key["seed"] for spec in specs if spec.assess or not chosen}
    counting = [row for spec, row in done if spec.assess or not chosen]
    scores = [row["test"] for row in counting]
    if several:
        folds = sorted({row["fold"] for row in counting})
        by_fold = [[row["test"] for row in counting if row["fold"] == fold] for fold in folds]
        scores = [fmean(tests) for tests in by_fold if len(tests) == len(seeds)]
    if not scores:
        return None
    return Measured(
        mean=fmean(scores),
        std=stdev(scores) if len(scores) > 1 else None,
        count=len(scores),
        planned=len({spec.key["fold" if several else "seed"] for spec in specs}),
        unit="folds" if several else "seeds",
        runs=len(done),
        seconds=sum(row["seconds"] for _, row in done),
        parameters=max((row["parameters"] for row in counting if row.get("parameters")), default=None),
        devices=tuple(sorted({row["device"] for _, row in done})),
    )


def best_run(experiment: Experiment, specs: Sequence[RunSpec], results: Results) -> tuple[RunSpec, Row] | None:
    """Return the finished run with the best validation score (the first of equal ones), or None."""
    done = experiment.done(specs, results)
    return max(done, key=lambda item: item[1]["val"] * (1 if maximizes(item[0].dataset) else -1), default=None)


def plain_entry(entry: Entry) -> Row:
    """Return an entry as plain values."""
    ours: Row = {"mean": None, "std": None, "count": 0, "unit": None, "runs": 0, "seconds": 0.0}
    ours |= {} if entry.ours is None else {name: getattr(entry.ours, name) for name in ours}
    return {
        "dataset": entry.dataset, "model": entry.model, "collection": entry.collection, "k": entry.k,
        "paper": entry.paper.mean, "paper_std": entry.paper.std, "paper_note": entry.paper.note,
        "ours": ours.pop("mean"), "ours_std": ours.pop("std"), **ours, "difference": entry.difference,
    }  # fmt: skip


HEAD = ("model", "parameters", "paper", "ours", "over", "runs", "seconds", "difference")
"""The columns of an accuracy table."""

NOT_MEASURED = "not measured"
PAPER_NOTES = {"OOM": "out of memory", "NA": "not available", "-": "not applicable", "not in the paper": "—"}
NAMES = {"gin": "GIN", "gcn": "GCN", "mlp": "MLP (no structure)"}


def texts(entry: Entry, columns: Sequence[str] = HEAD) -> list[str]:
    """Return the texts of an entry in some columns of `HEAD`."""
    ours, found = entry.ours, dict.fromkeys(HEAD, "")
    found |= {"model": row_label(entry), "paper": paper_text(entry), "ours": ours_text(entry)}
    found |= {"over": count_text(entry), "difference": difference_text(entry)}
    if ours is not None:
        where = "" if "cpu" not in ours.devices else " (CPU)" if len(ours.devices) == 1 else " (CPU, GPU)"
        found |= {"runs": str(ours.runs), "seconds": f"{ours.seconds:,.0f}{where}"}
        found["parameters"] = "" if ours.parameters is None else f"{ours.parameters:,}"
    return [found[column] for column in columns]


def row_label(entry: Entry) -> str:
    """Return the name of a row; at K = 1 the collections are one.

    >>> from pathnn_reproduction.paper import Score
    >>> row_label(Entry("zinc", "pathnn", "sp+", 4, Score(0.1, 0.0), None))
    'PathNN-SP+ (K=4)'
    """
    if entry.collection is None:
        return NAMES.get(entry.model, entry.model)
    released = ", as released" if entry.model == "pathnn-released" else ""
    return f"PathNN-{'P' if entry.k == 1 else entry.collection.upper()} (K={entry.k}){released}"


def paper_text(entry: Entry) -> str:
    """Return the number of the paper, or why it has none."""
    paper = entry.paper
    if paper.mean is None:
        return PAPER_NOTES[paper.note]
    return score_text(paper.mean, paper.std, entry.table.decimals)


def ours_text(entry: Entry) -> str:
    """Return our number, or why there is none."""
    if entry.ours is not None:
        return score_text(entry.ours.mean, entry.ours.std, entry.table.decimals + 1)
    if entry.paper.note == "-":
        return PAPER_NOTES["-"]
    if entry.collection is None and entry.model not in NAMES:
        return "—"  # a method that we do not run
    return NOT_MEASURED


def score_text(mean: float, std: float | None, decimals: int) -> str:
    """Return a mean and its deviation.

    >>> score_text(0.0929, 0.004, 3), score_text(10.0, None, 1)
    ('0.093 ± 0.004', '10.0')
    """
    return f"{mean:.{decimals}f}" + ("" if std is None else f" ± {std:.{decimals}f}")


def count_text(entry: Entry) -> str:
    """Return how many seeds or folds are behind our number, such as "7 of 10 folds"."""
    if (ours := entry.ours) is None:
        return ""
    return f"{ours.count} {ours.unit}" if ours.count == ours.planned else f"{ours.count} of {ours.planned} {ours.unit}"


def difference_text(entry: Entry) -> str:
    """Return ours minus the paper's in its standard deviations, or the plain difference if it prints none."""
    if entry.difference is not None:
        return f"{round(entry.difference, 1) + 0.0:+.1f} σ"  # + 0.0: not -0.0
    if entry.better is None:
        return ""
    return "equal" if abs(entry.better) < 1e-5 else f"{entry.better:+.3g}"  # scores were computed in float32


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = ["| " + " | ".join(line) + " |" for line in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


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


def latex_table(table: PaperTable, entries: Sequence[Entry]) -> str:
    """Return a table as LaTeX (`booktabs`)."""
    columns = ("model", "paper", "ours", "over", "difference")
    rows = [" & ".join(texts(entry, columns)) + " \\\\" for entry in entries]
    about = f"{table.title}: {table.metric}. {table.protocol} Deviations are sample standard deviations."
    return LATEX.format(caption=latex_text(about), body="\n".join(map(latex_text, rows)))


def latex_text(text: str) -> str:
    """Return a text with LaTeX's commands for special characters.

    >>> latex_text("82.3 ± 1.9, % — σ")
    '82.3 $\\\\pm$ 1.9, \\\\% --- $\\\\sigma$'
    """
    for sign, latex in (("%", "\\%"), ("±", "$\\pm$"), ("σ", "$\\sigma$"), ("—", "---"), ("SP+", "SP$^+$")):
        text = text.replace(sign, latex)
    return text
