"""The results page, the LaTeX tables and the README's table, written from `results/*.jsonl`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pathnn.files import atomic_write
from pathnn_reproduction.cells import Compared, compare
from pathnn_reproduction.experiment import Experiment
from pathnn_reproduction.experiments.targets import TARGETS, experiment
from pathnn_reproduction.ledger import Ledger, Line
from pathnn_reproduction.markdown import between
from pathnn_reproduction.markdown import table as markdown_table
from pathnn_reproduction.published import TABLES, PublishedTable
from pathnn_reproduction.report_notes import INTRO, NOTES, TABLE_NOTES
from pathnn_reproduction.summary import summary_table
from pathnn_reproduction.table_text import count_text, difference_text, ours_text, paper_text, row_label, seconds_text

BEGIN, END = "<!-- results: written by pathnn reproduce TARGET --report -->", "<!-- end of results -->"
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


def write_report(results: Path, root: Path) -> list[Path]:
    """Write the LaTeX tables beside the results, and in the project's folder `root` the page and the README's table.

    Returns the files written. Where `root` has no folder `docs`, the page is written beside the results too. A folder
    without results is refused: empty tables would take the place of those that are there.
    """
    if not any((results / f"{name}.jsonl").exists() for name in TARGETS):
        files = ", ".join(f"{name}.jsonl" for name in TARGETS)
        raise ValueError(f"{results} holds no results: expected a folder with one of {files}, which runs write.")
    written = {results / f"{name}.tex": latex_tables(name, results) for name in TARGETS}
    page = root / "docs" / "results.md" if (root / "docs").is_dir() else results / "results.md"
    written[page] = results_page(results)
    readme = root / "README.md"
    if readme.exists() and BEGIN in readme.read_text():
        written[readme] = with_block(readme.read_text(), summary_table(results))
    for path, text in written.items():
        with atomic_write(path) as file:
            file.write(text.encode())
    return list(written)


def results_page(results: Path) -> str:
    """All tables as Markdown."""
    parts = [INTRO]
    for name in TARGETS:
        plan, ledger = experiment(name), open_results(name, results)
        parts.append(f"## {plan.title}\n\n{NOTES[name]}\n")
        for dataset, cells in compare(plan, ledger).items():
            parts.append(_section(TABLES[dataset], cells) + _origin(dataset, plan, ledger))
    return "\n".join(parts)


def open_results(name: str, results: Path) -> Ledger:
    """The results of a target."""
    return Ledger.open(results / f"{name}.jsonl")


def _section(table: PublishedTable, cells: Sequence[Compared]) -> str:
    text = markdown_table(HEAD, [cells_of_row(cell, table) for cell in cells])
    note = f"\n{TABLE_NOTES[table.dataset]}\n" if table.dataset in TABLE_NOTES else ""
    return f"### {table.title}\n\n{table.metric} ({'larger' if table.maximize else 'smaller'} is better). " + (
        f"{table.protocol}\n\n{text}\n{note}"
    )


def cells_of_row(cell: Compared, table: PublishedTable) -> list[str]:
    """The texts of a row, in the order of `HEAD`."""
    ours = cell.ours
    parameters = "" if ours is None or ours.parameters is None else f"{ours.parameters:,}"
    runs = "" if ours is None else str(ours.runs)
    return [
        row_label(cell), parameters, paper_text(cell, table), ours_text(cell, table), count_text(cell), runs,
        seconds_text(cell), difference_text(cell, table),
    ]  # fmt: skip


def _origin(dataset: str, plan: Experiment, ledger: Ledger) -> str:
    """Where the numbers of a table come from."""
    lines = [line for _, line in plan.done(plan.runs, ledger) if line["dataset"] == dataset]
    if not lines:
        return ""
    days = sorted(str(line.get("time", ""))[:10] for line in lines)
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    commits = ", ".join(sorted({_short(str(line["commit"])) for line in lines}))
    return f"\n*{len(lines)} runs in `results/{plan.name}.jsonl`; {_devices(lines)}; {span}; commits {commits}.*\n"


def _short(commit: str) -> str:
    """Twelve digits of a commit, and the + of a tree that had changes."""
    return commit.rstrip("+")[:12] + "+" * commit.endswith("+")


def _devices(lines: Sequence[Line]) -> str:
    names = [str(line["device"]) for line in lines]
    counts = {name: names.count(name) for name in sorted(set(names))}
    return ", ".join(f"{count} on {'a CPU' if name == 'cpu' else name}" for name, count in counts.items())


def latex_tables(name: str, results: Path) -> str:
    """The tables of a target as LaTeX (`booktabs`)."""
    plan, ledger = experiment(name), open_results(name, results)
    parts = [f"% Written by pathnn reproduce {name} --report."]
    for dataset, cells in compare(plan, ledger).items():
        table = TABLES[dataset]
        rows = [
            f"{row_label(c)} & {paper_text(c, table)} & {ours_text(c, table)} & {count_text(c)} & "
            f"{difference_text(c, table)} \\\\"
            for c in cells
        ]
        body = "\n".join(map(latex_text, rows))
        caption = latex_text(f"{table.title}: {table.metric}. {table.protocol} {DEVIATIONS}")
        parts.append(LATEX.format(caption=caption, body=body))
    return "\n\n".join(parts) + "\n"


def latex_text(text: str) -> str:
    """Text with LaTeX's signs for what it cannot take as it is.

    >>> latex_text("82.3 ± 1.9, % — σ")
    '82.3 $\\\\pm$ 1.9, \\\\% --- $\\\\sigma$'
    """
    for sign, latex in (("%", "\\%"), ("±", "$\\pm$"), ("σ", "$\\sigma$"), ("—", "---"), ("SP+", "SP$^+$")):
        text = text.replace(sign, latex)
    return text


def with_block(text: str, block: str) -> str:
    """A text with what lies between the marks replaced."""
    return between(text, BEGIN, END, block)
